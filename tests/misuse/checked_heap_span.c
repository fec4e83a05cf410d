/* slabyard: free to the wrong cache: ADDRESS freed to cache "order" (64 bytes), belongs to
 * sy_malloc's heap
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    sy_cache_free(cache, told(sy_malloc(1 << 20)));
}
