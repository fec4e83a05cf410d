/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "node" (48
 * bytes)
 *   points to: PLACE
 *   seen by thread THREAD:
 *     STACK main
 *   next: see where the pointer comes from: another allocator, the stack, a variable, or memory
 * that was freed and returned to the system */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_CHECKED);
    sy_pool_free(pool, told((char *)sy_pool_alloc(pool) - 1));
}
