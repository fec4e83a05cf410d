/* slabyard: overflow: ADDRESS+1000000 in cache "heap-1048576" (1048576 bytes)
 *   offset 1000000: the first byte past the end of the 1000000 asked for
 *   1 byte damaged from offset 1000000:
 *     +1000000  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    char *object = told(sy_malloc(1000000));
    scribble(object + 1000000, 1);
    sy_free(object);
}
