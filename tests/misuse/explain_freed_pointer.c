/* slabyard: access by a pointer read from freed memory: 0xdeadbeefdeadbeef in register REGISTER
 *   seen by thread THREAD:
 *     STACK follow main
 *   next: run with SLABYARD=guard=all to stop where the freed object is read
 * ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("poison,explain");
    sy_cache *cache = cache_of("order", 64, 0);
    void **object = told(sy_cache_alloc(cache));
    *object = object;
    sy_cache_free(cache, object);
    follow(object);
}
