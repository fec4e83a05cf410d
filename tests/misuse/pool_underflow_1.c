/* slabyard: underflow: ADDRESS-1 in cache "node" (48 bytes)
 *   offset -1: 1 byte before its start
 *   1 byte damaged from offset -1:
 *     -1  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_REDZONE);
    char *object = told(sy_pool_alloc(pool));
    scribble(object - 1, 1);
    sy_pool_free(pool, object);
}
