/* slabyard: overflow: ADDRESS+100 in cache "tenant-112" (112 bytes)
 *   offset 100: the first byte past the end of the 100 asked for
 *   1 byte damaged from offset 100:
 *     +100  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_row main
 *   next: run with SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

static __attribute__((noinline)) void *make_row(sy_heap *heap) {
    return told(sy_heap_alloc(heap, 100));
}

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_AUDIT | SY_REDZONE);
    char *row = make_row(heap);
    scribble(row + 100, 1);
    sy_heap_free(heap, row);
}
