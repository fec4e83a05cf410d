/* slabyard: free to the wrong cache: ADDRESS freed to cache "order" (64 bytes), belongs to cache
 * "trade" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    sy_cache *cache = cache_of("order", 64, 0);
    sy_cache *trades = cache_of("trade", 64, 0);
    sy_cache_free(cache, told(sy_cache_alloc(trades)));
}
