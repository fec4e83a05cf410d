/* slabyard: slab edge overwritten: ADDRESS+64 in cache "order" (64 bytes)
 *   8 bytes damaged:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to find the object that was overrun */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_EDGES);
    char *object = sy_cache_alloc(cache), *next;
    while ((next = sy_cache_alloc(cache)) == object + 64) object = next;
    scribble((char *)told(object) + 64, 8); /* the last object of its slab */
    sy_cache_destroy_all(cache);
}
