/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
}
