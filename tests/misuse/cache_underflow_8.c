/* slabyard: underflow: ADDRESS-8 in cache "order" (64 bytes)
 *   offset -8: 8 bytes before its start
 *   8 bytes damaged from offset -8:
 *     -8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE);
    char *object = told(sy_cache_alloc(cache));
    scribble(object - 8, 8);
    sy_cache_free(cache, object);
}
