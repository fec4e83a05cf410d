/* slabyard: write after free: ADDRESS in cache "order" (64 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_order main
 *   freed TIME ago by thread THREAD:
 *     STACK close_order main
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
    sy_cache *cache = cache_of("order", 64, SY_AUDIT | SY_POISON);
    void *order = make_order(cache);
    close_order(cache, order);
    scribble(order, 8);
    sy_cache_alloc(cache);
}
