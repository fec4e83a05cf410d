/* SLABYARD=redzone,only=order
 * slabyard: overflow: ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   8 bytes damaged from offset 64:
 *     +64  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *trades = cache_of("trade", 64, 0), *orders = cache_of("order", 64, 0);
    char *trade = sy_cache_alloc(trades), *order = told(sy_cache_alloc(orders));
    scribble(trade + 64, 8); /* `only` does not name this cache: no red zones */
    sy_cache_free(trades, trade);
    scribble(order + 64, 8);
    sy_cache_free(orders, order);
}
