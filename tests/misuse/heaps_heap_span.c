/* slabyard: free to the wrong cache: ADDRESS freed to heap "tenant", belongs to sy_malloc's heap
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_heap_free(heap, told(sy_malloc(1 << 20)));
}
