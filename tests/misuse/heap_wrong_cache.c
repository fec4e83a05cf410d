/* slabyard: free to the wrong cache: ADDRESS freed by sy_free, belongs to cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    sy_free(told(sy_cache_alloc(cache)));
}
