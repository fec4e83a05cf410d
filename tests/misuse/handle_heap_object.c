/* slabyard: free to the wrong cache: ADDRESS in cache "order" (64 bytes), belongs to "heap-64" */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_HANDLES);
    sy_cache_free(cache, told(sy_malloc(64)));
}
