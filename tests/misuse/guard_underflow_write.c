/* slabyard: write before an object (guard page): ADDRESS-1 in cache "order" (64 bytes)
 *   offset -1: 1 byte before its start
 *   seen by thread THREAD:
 *     STACK scribble main
 *   allocated TIME ago by thread THREAD:
 *     STACK placed main
 *   next: see the stack of this access: an index is negative, or a pointer was
 * moved back
 * ends with SIGSEGV */
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
    char *object = placed(cache, false);
    scribble(object - 1, 1);
}
