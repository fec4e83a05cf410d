/* slabyard: free of a pointer that is not the start of an object: ADDRESS+8 in cache "order" (64
 * bytes)
 *   offset 8: inside, 8 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_AUDIT);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_cache_free(cache, object + 8);
}
