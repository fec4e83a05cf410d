/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

static void ignore(const sy_fault *fault) { (void)fault; }

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    sy_set_fault_handler(ignore);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
    sy_set_fault_handler(NULL);
    sy_cache_free(cache, object);
}
