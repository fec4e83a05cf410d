/* slabyard: write after free (guard page): ADDRESS+8 in cache "order" (64 bytes)
 *   offset 8: inside, 8 bytes from its start
 *   seen by thread THREAD:
 *     STACK scribble main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: see the stack of this access: a pointer was kept after the free
 * ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object + 8, 1);
}
