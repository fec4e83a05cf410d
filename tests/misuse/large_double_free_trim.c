/* slabyard: double free: ADDRESS in cache "picture" (5000000 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("picture", 5000000, 0);
    void *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_trim();
    sy_cache_free(cache, object);
    sy_thread_flush();
}
