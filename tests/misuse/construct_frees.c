/* slabyard: free to the wrong cache: ADDRESS freed to cache "other" (64 bytes), belongs to cache
 * "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK construct
 *   next: free the object to what it was allocated from */
#include "misuse.h"

static sy_cache *others;

/* Frees its object, which is not allocated yet, to another cache. */
static int construct(void *object, void *arg) {
    (void)arg;
    sy_cache_free(others, told(object));
    return 0;
}

int main(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "order", .size = 64, .construct = construct, .flags = SY_CHECKED});
    others = cache_of("other", 64, SY_CHECKED);
    sy_cache_alloc(cache);
}
