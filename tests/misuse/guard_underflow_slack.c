/* slabyard: underflow: ADDRESS-8 in cache "order" (64 bytes)
 *   offset -8: 8 bytes before its start
 *   8 bytes damaged from offset -8:
 *     -8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK placed main
 *   next: no guard was hit: set a watchpoint on the damaged bytes in a debugger */
#include <stdbool.h>
#include <stdint.h>

#include "misuse.h"

/* Returns an object at the right end of its page (`right`) or at the left end. Objects are placed
 * at the two ends alternately. */
static char *placed(sy_cache *cache, bool right) {
    char *object = sy_cache_alloc(cache);
    bool is = right ? ((uintptr_t)object + 64) % 4096 == 0 : (uintptr_t)object % 4096 == 0;
    return told(is ? object : sy_cache_alloc(cache));
}

int main(void) {
    sy_set_options("guard=all");
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = placed(cache, true);
    scribble(object - 8, 8);
    sy_cache_free(cache, object);
}
