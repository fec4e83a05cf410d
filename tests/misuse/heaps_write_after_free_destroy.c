/* slabyard: write after free: ADDRESS in cache "tenant-112" (112 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_POISON);
    char *object = told(sy_heap_alloc(heap, 100));
    sy_heap_free(heap, object);
    scribble(object, 8);
    sy_heap_destroy(heap);
}
