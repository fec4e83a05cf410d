/* SLABYARD=exit-check=no
 * ends with 0 */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON | SY_QUARANTINE);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object + 8, 8);
    return 0;
}
