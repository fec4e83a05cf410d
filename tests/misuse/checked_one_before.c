/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "order" (64
 * bytes)
 *   offset 63: inside, 63 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, told(object + 64 - 1)); /* one byte before the next object */
}
