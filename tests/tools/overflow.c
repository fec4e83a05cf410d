/*
 * asan: use-after-poison; WRITE of size 1; in write_order; slabyard: 0x; 0 bytes behind a live
 * object of 60 bytes in cache "order"; allocated; make_order
 *
 * memcheck: Invalid write of size 1; write_order; 0 bytes after a block of size 60 client-defined;
 * make_order
 *
 * asan-malloc: heap-buffer-overflow; WRITE of size 1; in write_order; 60-byte region; allocated
 * by; make_order
 *
 * memcheck-malloc: Invalid write of size 1; write_order; 0 bytes after a block of size 60 alloc'd;
 * make_order
 */
#include "tools.h"

int main(void) {
    open_orders();
    char *order = make_order();
    write_order(order, ORDER_BYTES);
    return 0;
}
