/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_HANDLES);
    sy_handle handle;
    void *object = told(sy_handle_alloc(cache, &handle));
    sy_handle_pin(cache, handle);
    sy_handle_free(cache, handle);
    sy_cache_free(cache, object); /* a pinned object, which is still there */
}
