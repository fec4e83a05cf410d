/* slabyard: write after free: ADDRESS in cache "node" (48 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_POISON | SY_QUARANTINE);
    char *object = told(sy_pool_alloc(pool));
    sy_pool_free(pool, object);
    for (int i = 0; i < 100; i++) {
        void *other = sy_pool_alloc(pool);
        if (other == object) return 1; /* the object must wait in the quarantine */
        sy_pool_free(pool, other);
    }
    scribble(object, 8);
    for (int i = 0; i < 10000; i++)
        sy_pool_free(pool, sy_pool_alloc(pool)); /* the quarantine holds 256 objects */
}
