/* slabyard: free to the wrong cache: ADDRESS freed to cache "order" (64 bytes), belongs to cache
 * "trade" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_cache *orders = cache_of("order", 64, SY_HANDLES),
             *trades = cache_of("trade", 64, SY_HANDLES);
    sy_cache_free(orders, told(sy_cache_alloc(trades)));
}
