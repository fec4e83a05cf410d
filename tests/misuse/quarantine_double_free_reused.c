/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK first_to_see main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

static __attribute__((noinline)) void first_to_see(sy_cache *cache, void *object) {
    char *other = sy_cache_alloc(cache); /* another object: the first waits in the quarantine */
    sy_cache_free(cache, object);
    sy_cache_free(cache, other);
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_QUARANTINE);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    first_to_see(cache, object);
}
