/* slabyard: overflow: ADDRESS+61 in cache "line" (61 bytes)
 *   offset 61: the first byte past the end
 *   1 byte damaged from offset 61:
 *     +61  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("line", 61, SY_REDZONE);
    char *object = told(sy_cache_alloc(cache));
    scribble(object + 61, 1); /* into the bytes that alignment adds */
    sy_cache_free(cache, object);
}
