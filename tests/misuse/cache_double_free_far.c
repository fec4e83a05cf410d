/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    void *others[1000], *object = told(sy_cache_alloc(cache));
    for (int i = 0; i < 1000; i++) others[i] = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    for (int i = 0; i < 1000; i++) sy_cache_free(cache, others[i]);
    sy_cache_free(cache, object);
    sy_cache_trim(cache); /* empties the magazines into the slabs */
}
