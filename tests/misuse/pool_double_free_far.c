/* slabyard: double free: ADDRESS in cache "node" (48 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_CHECKED);
    void *others[1000], *object = told(sy_pool_alloc(pool));
    for (int i = 0; i < 1000; i++) others[i] = sy_pool_alloc(pool);
    sy_pool_free(pool, object);
    for (int i = 0; i < 1000; i++) sy_pool_free(pool, others[i]);
    sy_pool_free(pool, object);
}
