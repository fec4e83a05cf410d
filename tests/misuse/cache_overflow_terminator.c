/* slabyard: overflow: ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   1 byte damaged from offset 64:
 *     +64  00                                               .
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE);
    char *object = told(sy_cache_alloc(cache));
    object[64] = 0; /* the 0 at the end of a text of 64 characters */
    sy_cache_free(cache, object);
}
