/* SLABYARD=leaks,leak-status=23
 * ends with 5 */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    sy_cache_free(cache, told(sy_cache_alloc(cache)));
    return 5;
}
