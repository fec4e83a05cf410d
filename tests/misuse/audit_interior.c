/* slabyard: free of a pointer that is not the start of an object: ADDRESS+8 in cache "order" (64
 * bytes)
 *   offset 8: inside, 8 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_order main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

static __attribute__((noinline)) char *make_order(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_AUDIT);
    char *object = make_order(cache);
    sy_cache_free(cache, object + 8);
}
