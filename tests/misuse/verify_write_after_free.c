/* SLABYARD=exit-check=no
 * slabyard: write after free: ADDRESS+8 in cache "tenant-112" (112 bytes)
 *   offset 8: inside, 8 bytes from its start
 *   1 byte damaged from offset 8:
 *     +8  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself
 * ends with 0 */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_POISON);
    char *object = told(sy_heap_alloc(heap, 100));
    sy_heap_free(heap, object);
    scribble(object + 8, 1);
    return sy_verify() == 1 ? 0 : 1;
}
