/* slabyard: free to the wrong cache: ADDRESS freed to cache "order" (64 bytes), belongs to cache
 * "trade" (48 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_trade main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

static __attribute__((noinline)) void *make_trade(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

int main(void) {
    sy_cache *orders = cache_of("order", 64, SY_AUDIT), *trades = cache_of("trade", 48, SY_AUDIT);
    sy_cache_free(orders, make_trade(trades));
}
