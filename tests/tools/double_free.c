/*
 * asan: slabyard: double free; in cache "order"; allocated; make_order; freed; drop_order
 *
 * memcheck: Invalid free; drop_order; 0 bytes inside a block of size 60 free'd; drop_order;
 * alloc'd; make_order; slabyard: double free; in cache "order"
 *
 * asan-malloc: attempting double-free; drop_order; freed by; drop_order; allocated by; make_order
 *
 * memcheck-malloc: Invalid free; drop_order; 0 bytes inside a block of size 60 free'd; drop_order;
 * alloc'd; make_order
 */
#include "tools.h"

int main(void) {
    open_orders();
    char *order = make_order();
    drop_order(order);
    drop_order(order);
    return 0;
}
