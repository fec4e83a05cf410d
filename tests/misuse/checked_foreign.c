/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "order" (64
 * bytes)
 *   points to: PLACE
 *   seen by thread THREAD:
 *     STACK main
 *   next: see where the pointer comes from: another allocator, the stack, a variable, or memory
 * that was freed and returned to the system */
#include "misuse.h"

int main(void) {
    static char local[64];
    sy_cache *cache = cache_of("order", 64, SY_CHECKED);
    sy_cache_free(cache, told(local));
}
