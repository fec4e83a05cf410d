/* slabyard: free to the wrong cache: ADDRESS freed by sy_free, belongs to cache "tenant-1048576"
 * (1048576 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_free(told(sy_heap_alloc(heap, 1 << 20)));
}
