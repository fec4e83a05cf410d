/* SLABYARD=redzone=128
 * slabyard: overflow: ADDRESS+191 in cache "order" (64 bytes)
 *   offset 191: 127 bytes past the end
 *   1 byte damaged from offset 191:
 *     +191  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    scribble(object + 64 + 127, 1);
    sy_cache_free(cache, object);
}
