/* SLABYARD=redzone,poison,on-fault=continue
 * slabyard: overflow: ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   8 bytes damaged from offset 64:
 *     +64  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself
 * slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before
 * slabyard: write after free: ADDRESS in cache "order" (64 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself
 * ends with 0 */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    scribble(object + 64, 8);
    sy_cache_free(cache, object); /* an overflow, */
    sy_cache_free(cache, object); /* a double free, which is ignored, */
    scribble(object, 8);
    void *again = sy_cache_alloc(cache); /* a write after free */
    sy_cache_free(cache, again);
    return sy_cache_destroy(cache);
}
