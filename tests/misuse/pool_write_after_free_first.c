/* slabyard: write after free: ADDRESS in cache "node" (48 bytes)
 *   offset 0: its start
 *   1 byte damaged from offset 0:
 *     +0  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_POISON);
    char *object = told(sy_pool_alloc(pool));
    sy_pool_free(pool, object);
    scribble(object, 1);
    return sy_pool_alloc(pool) != NULL;
}
