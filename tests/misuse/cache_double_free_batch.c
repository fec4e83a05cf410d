/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    void *object = told(sy_cache_alloc(cache));
    sy_cache_free_batch(cache, (void *[]){object, object}, 2);
}
