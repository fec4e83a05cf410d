/* SLABYARD=redzone
 * slabyard: overflow: ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   8 bytes damaged from offset 64:
 *     +64  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON); /* in addition to the option's checks */
    char *object = told(sy_cache_alloc(cache));
    scribble(object + 64, 8);
    sy_cache_free(cache, object);
}
