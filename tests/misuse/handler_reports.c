/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK tell
 *   next: run with SLABYARD=audit to see where it was freed before
 * ends with 0 */
#include "misuse.h"

static void tell(const sy_fault *fault) {
    sy_report_fault(fault);
    sy_free(sy_malloc(fault->object_size)); /* a handler may use Slabyard */
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    sy_set_fault_handler(tell);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
    return sy_cache_destroy(cache);
}
