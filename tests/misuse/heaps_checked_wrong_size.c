/* slabyard: free with the wrong size: ADDRESS in cache "tenant-112" (112 bytes), freed with size
 * 99, allocated with size 100
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_CHECKED);
    char *object = told(sy_heap_alloc(heap, 100));
    sy_heap_free_sized(heap, object, 99);
}
