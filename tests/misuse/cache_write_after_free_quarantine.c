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
    sy_cache *cache = cache_of("order", 64, SY_POISON | SY_QUARANTINE);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    for (int i = 0; i < 100; i++) {
        void *other = sy_cache_alloc(cache);
        if (other == object) return 1; /* the object must wait in the quarantine */
        sy_cache_free(cache, other);
    }
    scribble(object, 8);
    for (int i = 0; i < 10000; i++)
        sy_cache_free(cache, sy_cache_alloc(cache)); /* the quarantine holds 256 objects */
}
