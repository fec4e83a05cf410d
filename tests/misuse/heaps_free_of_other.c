/* slabyard: free to the wrong cache: ADDRESS freed by sy_free, belongs to cache "tenant-112" (112
 * bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_free(told(sy_heap_alloc(heap, 100)));
}
