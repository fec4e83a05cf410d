/*
 * memcheck: Invalid read of size 1; read_order; 8 bytes inside a block of size 60 free'd;
 * drop_order; alloc'd; make_order
 */
#include "tools.h"

IN_REPORT void make_and_drop_others(void);

/* Without the quarantine these addresses would be reused. memcheck would then show for an address
 * the first of its allocations and frees. */
void make_and_drop_others(void) {
    enum { COUNT = 3000 };
    for (int i = 0; i < COUNT; i++) {
        char *order = sy_cache_alloc(orders);
        must(order != NULL);
        sy_cache_free(orders, order);
    }
    sink = 0;
}

int main(void) {
    open_orders();
    make_and_drop_others();
    char *order = make_order();
    drop_order(order);
    read_order(order, 8);
    return 0;
}
