/* slabyard: write after free: ADDRESS+16 in cache "order" (64 bytes)
 *   offset 16: inside, 16 bytes from its start
 *   8 bytes damaged from offset 16:
 *     +16  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object + 16, 8);
    sy_cache_alloc(cache);
}
