/* SLABYARD=leaks
 * slabyard: 1 object leaked: 64 bytes in cache "order", allocated TIME ago by:
 *     STACK make_order main
 *   total: 1 object, 64 bytes
 * ends with 0 */
#include "misuse.h"

static __attribute__((noinline)) void *make_order(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    void *order = make_order(cache);
    make_order(cache);
    sy_cache_free(cache, order);
    return 0;
}
