/* slabyard: underflow: ADDRESS-8 in cache "tenant-112" (112 bytes)
 *   offset -8: 8 bytes before its start
 *   8 bytes damaged from offset -8:
 *     -8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_REDZONE);
    char *object = told(sy_heap_alloc(heap, 100));
    scribble(object - 8, 8);
    sy_heap_free(heap, object);
}
