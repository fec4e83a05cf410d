/* slabyard: overflow: ADDRESS+100 in cache "tenant-112" (112 bytes)
 *   offset 100: the first byte past the end of the 100 asked for
 *   64 bytes damaged from offset 100:
 *     +100  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +116  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +132  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +148  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_REDZONE);
    char *object = told(sy_heap_alloc(heap, 100));
    scribble(object + 100, 64);
    sy_heap_free(heap, object);
}
