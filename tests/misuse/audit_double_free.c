/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK close_order main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_order main
 *   freed TIME ago by thread THREAD:
 *     STACK close_order main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

static __attribute__((noinline)) void *make_order(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

static __attribute__((noinline)) void close_order(sy_cache *cache, void *order) {
    sy_cache_free(cache, order);
    hidden(order);
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_AUDIT);
    void *order = make_order(cache);
    close_order(cache, order);
    close_order(cache, order);
}
