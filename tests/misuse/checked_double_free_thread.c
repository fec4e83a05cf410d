/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK end_of
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

static sy_cache *cache;

static void *end_of(void *object) {
    sy_cache_free(cache, object);
    return hidden(object);
}

int main(void) {
    cache = cache_of("order", 64, SY_CHECKED);
    void *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    elsewhere(end_of, object);
}
