/* slabyard: overflow: ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   1 byte damaged from offset 64:
 *     +64  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_REDZONE | SY_HANDLES);
    sy_handle handle;
    char *object = told(sy_handle_alloc(cache, &handle));
    scribble(object + 64, 1);
    sy_handle_free(cache, handle);
}
