/* slabyard: write after free: ADDRESS+63 in cache "order" (64 bytes)
 *   offset 63: inside, 63 bytes from its start
 *   1 byte damaged from offset 63:
 *     +63  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object + 63, 1);
    sy_cache_alloc(cache);
}
