/* ends with SIGSEGV */
#define SY_NO_INLINE /* frees are calls, which can be checked */
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 48, SY_POISON);
    void **object = told(sy_pool_alloc(pool));
    *object = object;
    sy_pool_free(pool, object);
    follow(object);
}
