/* slabyard: underflow: ADDRESS-8 in cache "order" (64 bytes)
 *   offset -8: 8 bytes before its start
 *   8 bytes damaged from offset -8:
 *     -8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK close_order main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_order main
 *   next: run with SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

static __attribute__((noinline)) void *make_order(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

static __attribute__((noinline)) void close_order(sy_cache *cache, void *order) {
    sy_cache_free(cache, order);
    hidden(order);
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_AUDIT | SY_REDZONE);
    char *order = make_order(cache);
    scribble(order - 8, 8);
    close_order(cache, order);
}
