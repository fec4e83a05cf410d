/*
 * asan: use-after-poison; WRITE of size 1; in write_order; slabyard: 0x; 8 bytes into a freed
 * object of 60 bytes in cache "order"; allocated; make_order; freed; drop_order
 *
 * memcheck: Invalid write of size 1; write_order; 8 bytes inside a block of size 60 free'd;
 * drop_order; alloc'd; make_order
 *
 * asan-malloc: heap-use-after-free; WRITE of size 1; in write_order; freed by; drop_order;
 * allocated by; make_order
 */
#include "tools.h"

int main(void) {
    open_orders();
    char *order = make_order();
    drop_order(order);
    write_order(order, 8);
    return 0;
}
