/* slabyard: slab edge overwritten: ADDRESS-8 in cache "order" (64 bytes)
 *   8 bytes damaged:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to find the object that was overrun */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_EDGES);
    char *object = told(sy_cache_alloc(cache));
    scribble(object - 8, 8); /* the first object of its slab */
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}
