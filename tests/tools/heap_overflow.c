/*
 * asan: use-after-poison; WRITE of size 1; in write_order; slabyard: 0x; 0 bytes behind a live
 * object of 100 bytes in cache "heap-112"; allocated; make_text
 *
 * memcheck: Invalid write of size 1; write_order; 0 bytes after a block of size 100
 * client-defined; make_text
 *
 * asan-malloc: heap-buffer-overflow; WRITE of size 1; in write_order; 100-byte region; allocated
 * by; make_text
 */
#include "tools.h"

IN_REPORT char *make_text(size_t size);

char *make_text(size_t size) {
    char *text = sy_malloc(size);
    must(text != NULL);
    return text;
}

int main(void) {
    write_order(make_text(100), 100);
    return 0;
}
