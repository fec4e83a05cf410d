/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "tenant"
 *   offset 16: inside, 16 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_CHECKED);
    char *object = sy_heap_alloc(heap, 100);
    sy_heap_free(heap, told(object + 16));
}
