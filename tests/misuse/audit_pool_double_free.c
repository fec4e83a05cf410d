/* slabyard: double free: ADDRESS in cache "node" (48 bytes)
 *   seen by thread THREAD:
 *     STACK drop_node main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_node main
 *   freed TIME ago by thread THREAD:
 *     STACK drop_node main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

static __attribute__((noinline)) void *make_node(sy_pool *pool) {
    return told(sy_pool_alloc(pool));
}

static __attribute__((noinline)) void drop_node(sy_pool *pool, void *node) {
    sy_pool_free(pool, node);
    hidden(node);
}

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_AUDIT);
    void *node = make_node(pool);
    drop_node(pool, node);
    drop_node(pool, node);
}
