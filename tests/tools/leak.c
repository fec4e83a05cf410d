/*
 * asan: nothing
 *
 * memcheck: 60 bytes in 1 blocks are definitely lost; make_order
 *
 * asan-malloc: detected memory leaks; 60 byte(s) in 1 object(s); make_order
 *
 * memcheck-malloc: 60 bytes in 1 blocks are definitely lost; make_order
 */
#include "tools.h"

char *volatile kept;  /* the slab's first object, to which its descriptor points */
void *volatile block; /* memcheck searches for leaks only if there is a block of malloc */

int main(void) {
    open_orders();
    block = malloc(1);
    kept = make_order();
    make_order()[0] = 1;
    for (int i = 0; i < 10; i++) drop_order(make_order()); /* overwrites the lost address */
    return 0;
}
