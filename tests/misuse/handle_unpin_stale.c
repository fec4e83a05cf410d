/* slabyard: unpin without a pin: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: unpin a handle once for each pin of it that gave an object */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_HANDLES);
    sy_handle handle;
    told(sy_handle_alloc(cache, &handle));
    sy_handle_pin(cache, handle);
    sy_handle_free(cache, handle);
    sy_handle_unpin(cache, handle); /* the object is freed */
    sy_handle_unpin(cache, handle);
}
