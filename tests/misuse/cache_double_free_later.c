/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    void *object = told(sy_cache_alloc(cache)), *other = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    sy_cache_free(cache, other);
    sy_cache_free(cache, object);
    sy_thread_flush(); /* empties the magazine into the slabs */
}
