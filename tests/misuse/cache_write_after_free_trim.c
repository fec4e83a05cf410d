/* slabyard: write after free: ADDRESS in cache "order" (64 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object, 8);
    sy_cache_trim(cache);
}
