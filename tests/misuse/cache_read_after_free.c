/* ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON);
    void **object = told(sy_cache_alloc(cache));
    *object = object;
    sy_cache_free(cache, object);
    follow(object); /* the pointer is 0xdeadbeefdeadbeef */
}
