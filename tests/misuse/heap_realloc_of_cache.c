/* slabyard: free to the wrong cache: ADDRESS freed by sy_free, belongs to cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_cache *orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    sy_realloc(told(sy_cache_alloc(orders)), 100);
}
