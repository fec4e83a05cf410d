/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

static sy_cache *cache;

static void *end_of(void *object) {
    sy_cache_free(cache, object);
    return hidden(object);
}

int main(void) {
    cache = cache_of("order", 64, 0);
    void *object = told(sy_cache_alloc(cache));
    elsewhere(end_of, object); /* now two magazines hold the object */
    elsewhere(end_of, object);
    sy_cache_trim(cache);
}
