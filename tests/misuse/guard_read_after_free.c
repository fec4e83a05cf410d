/* slabyard: read after free (guard page): ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK follow main
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
    follow(object);
}
