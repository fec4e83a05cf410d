/* slabyard: free to the wrong cache: ADDRESS in cache "heap", belongs to "order" */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    sy_free(told(sy_cache_alloc(cache)));
}
