/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "tenant"
 *   offset 8: inside, 8 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_heap_free(heap, told((char *)sy_heap_alloc(heap, 100) + 8));
}
