/* slabyard: underflow: ADDRESS-1 in cache "order" (64 bytes)
 *   offset -1: 1 byte before its start
 *   1 byte damaged from offset -1:
 *     -1  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE);
    char *object = told(sy_cache_alloc(cache));
    scribble(object - 1, 1);
    sy_cache_free(cache, object);
}
