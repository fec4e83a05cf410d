/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "node" (48
 * bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_CHECKED);
    char *object = sy_pool_alloc(pool);
    sy_pool_free(pool, told(object + 16));
}
