/*
 * asan: use-after-poison; READ of size 1; in read_order; slabyard: 0x; into a freed object of
 * 300000 bytes; allocated; make_text; freed; drop_text
 *
 * memcheck: Invalid read of size 1; read_order; 299,999 bytes inside a block of size 300,000
 * free'd; drop_text; alloc'd; make_text
 *
 * asan-malloc: heap-use-after-free; READ of size 1; in read_order; freed by; drop_text; allocated
 * by; make_text
 */
#include "tools.h"

IN_REPORT char *make_text(size_t size);
IN_REPORT void drop_text(char *text);

char *make_text(size_t size) {
    char *text = sy_malloc(size);
    must(text != NULL);
    return text;
}

void drop_text(char *text) {
    sy_free(text);
    sink = 0;
}

int main(void) {
    char *text = make_text(300000);
    memset(text, 1, 300000);
    drop_text(text);
    read_order(text, 299999);
    return 0;
}
