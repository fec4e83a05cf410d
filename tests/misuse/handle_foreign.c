/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "order" (64
 * bytes) */
#include "misuse.h"

int main(void) {
    static char local[64];
    sy_cache *cache = cache_of("order", 64, SY_HANDLES);
    sy_cache_free(cache, told(local));
}
