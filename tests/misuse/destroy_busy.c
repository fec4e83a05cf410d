/* ends with 0 */
#include <errno.h>

#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    void *object = told(sy_cache_alloc(cache));
    if (sy_cache_destroy(cache) != -1 || errno != EBUSY) return 1;
    sy_cache_free(cache, object);
    return sy_cache_destroy(cache);
}
