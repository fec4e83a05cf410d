/* ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all,explain=no");
    sy_cache *cache = cache_of("order", 64, 0);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    scribble(object, 1); /* ends the process without a report */
}
