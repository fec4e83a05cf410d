/* slabyard: free to the wrong cache: ADDRESS freed to cache "order" (64 bytes), belongs to cache
 * "tenant-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_cache_free(cache_of("order", 64, SY_CHECKED), told(sy_heap_alloc(heap, 100)));
}
