/* SLABYARD=check,report=report
 * slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
}
