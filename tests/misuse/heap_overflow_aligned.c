/* slabyard: overflow: ADDRESS+200 in cache "heap-256" (256 bytes)
 *   offset 200: the first byte past the end of the 200 asked for
 *   1 byte damaged from offset 200:
 *     +200  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    char *object = told(sy_aligned_alloc(256, 200));
    scribble(object + 200, 1);
    sy_free(object);
}
