/* slabyard: unpin without a pin: ADDRESS in cache "session" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK open_session main
 *   freed TIME ago by thread THREAD:
 *     STACK close_session main
 *   next: unpin a handle once for each pin of it that gave an object */
#include "misuse.h"

static __attribute__((noinline)) void *open_session(sy_cache *cache, sy_handle *handle) {
    return hidden(sy_handle_alloc(cache, handle));
}

static __attribute__((noinline)) void close_session(sy_cache *cache, sy_handle handle) {
    sy_handle_free(cache, handle);
    hidden(cache);
}

int main(void) {
    sy_cache *cache = cache_of("session", 64, SY_AUDIT | SY_HANDLES);
    sy_handle handle;
    told(open_session(cache, &handle));
    sy_handle_pin(cache, handle);
    sy_handle_unpin(cache, handle);
    close_session(cache, handle);
    sy_handle_unpin(cache, handle);
}
