/* slabyard: read behind an object (guard page): ADDRESS+64 in cache "order" (64 bytes)
 *   offset 64: the first byte past the end
 *   seen by thread THREAD:
 *     STACK follow main
 *   allocated TIME ago by thread THREAD:
 *     STACK placed main
 *   next: see the stack of this access: an index or a length is too large
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
    char *object = placed(cache, true);
    follow(object + 64 - sizeof(void *) / 2);
}
