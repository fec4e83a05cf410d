/* slabyard: free to the wrong cache: ADDRESS in cache "order" (64 bytes), belongs to "heap-64"
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    sy_cache_free(cache, told(sy_malloc(64)));
}
