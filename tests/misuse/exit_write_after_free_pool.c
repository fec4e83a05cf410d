/* slabyard: write after free: ADDRESS+8 in cache "node" (64 bytes)
 *   offset 8: inside, 8 bytes from its start
 *   8 bytes damaged from offset 8:
 *     +8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 64, SY_POISON | SY_QUARANTINE);
    char *object = told(sy_pool_alloc(pool));
    sy_pool_free(pool, object);
    scribble(object + 8, 8); /* the object is not allocated again */
    return 0;
}
