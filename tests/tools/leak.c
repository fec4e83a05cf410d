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

char *volatile kept;  /* the first of the slab, of which its descriptor knows */
void *volatile block; /* without any of malloc's, memcheck looks for no leak */

int main(void) {
    open_orders();
    block = malloc(1);
    kept = make_order();
    make_order()[0] = 1;
    for (int i = 0; i < 10; i++) drop_order(make_order()); /* where its address was, others are */
    return 0;
}
