/* slabyard: underflow: ADDRESS+130 in cache "order" (64 bytes)
 *   offset -62: 62 bytes before its start
 *   4 bytes damaged from offset -62:
 *     -62  42 42 42 42                                      BBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE);
    char *object = told(sy_cache_alloc(cache));
    char *next = sy_cache_alloc(cache);
    scribble(object + 130, 4); /* behind the object's own red zone */
    sy_cache_free(cache, object);
    sy_cache_free(cache, next);
}
