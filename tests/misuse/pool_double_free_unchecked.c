/* slabyard: double free: ADDRESS in cache "node" (48 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, 0);
    void *object = told(sy_pool_alloc(pool));
    sy_pool_free(pool, object);
    sy_pool_free(pool, object);
}
