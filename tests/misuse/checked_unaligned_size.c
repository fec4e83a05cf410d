/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "odd" (100
 * bytes)
 *   offset 100: the first byte past the end
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("odd", 100, SY_CHECKED); /* slots are 112 bytes apart */
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, told(object + 100));
}
