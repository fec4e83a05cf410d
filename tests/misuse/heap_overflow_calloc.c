/* slabyard: overflow: ADDRESS+40 in cache "heap-48" (48 bytes)
 *   offset 40: the first byte past the end of the 40 asked for
 *   4 bytes damaged from offset 40:
 *     +40  42 42 42 42                                      BBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    int *object = told(sy_calloc(10, sizeof *object));
    object[10] = 0x42424242;
    sy_free(object);
}
