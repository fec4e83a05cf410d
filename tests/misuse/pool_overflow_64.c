/* slabyard: overflow: ADDRESS+48 in cache "node" (48 bytes)
 *   offset 48: the first byte past the end
 *   64 bytes damaged from offset 48:
 *     +48  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +64  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +80  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +96  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_REDZONE);
    char *object = told(sy_pool_alloc(pool));
    scribble(object + 48, 64);
    sy_pool_free(pool, object);
}
