/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

static void *seen;

static int construct(void *object, void *arg) {
    (void)arg;
    seen = object;
    return -1;
}

int main(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "order", .size = 64, .construct = construct, .flags = SY_CHECKED});
    if (sy_cache_alloc(cache) || !seen) return 1;
    sy_cache_free(cache, told(seen)); /* the constructor failed: the object was never allocated */
}
