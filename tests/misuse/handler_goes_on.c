/* ends with 0 */
#include "misuse.h"

static int seen;

static void count(const sy_fault *fault) {
    static const sy_fault_kind expected[] = {SY_FAULT_UNDERFLOW, SY_FAULT_DOUBLE_FREE,
                                             SY_FAULT_WRITE_AFTER_FREE};
    if (seen < 3 && fault->kind == expected[seen]) seen++;
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE | SY_POISON);
    sy_set_fault_handler(count);
    char *object = told(sy_cache_alloc(cache));
    scribble(object - 8, 8);
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
    scribble(object, 8);
    if (sy_cache_alloc(cache) != object) return 1;
    sy_cache_free(cache, object);
    return seen == 3 && sy_cache_destroy(cache) == 0 ? 0 : 1;
}
