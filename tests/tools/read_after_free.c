/*
 * asan: use-after-poison; READ of size 1; in read_order; slabyard: 0x; 8 bytes into a freed object
 * of 60 bytes in cache "order"; allocated; make_order; freed; drop_order
 *
 * memcheck: Invalid read of size 1; read_order; 8 bytes inside a block of size 60 free'd;
 * drop_order; alloc'd; make_order
 *
 * asan-malloc: heap-use-after-free; READ of size 1; in read_order; freed by; drop_order; allocated
 * by; make_order
 *
 * memcheck-malloc: Invalid read of size 1; read_order; 8 bytes inside a block of size 60 free'd;
 * drop_order; alloc'd; make_order
 */
#include "tools.h"

int main(void) {
    open_orders();
    char *order = make_order();
    memset(order, 1, ORDER_BYTES);
    drop_order(order);
    read_order(order, 8);
    return 0;
}
