/* slabyard: overflow: ADDRESS+100 in cache "heap-112" (112 bytes)
 *   offset 100: the first byte past the end of the 100 asked for
 *   28 bytes damaged from offset 100:
 *     +100  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +116  42 42 42 42 42 42 42 42 42 42 42 42              BBBBBBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone=16");
    char *object = told(sy_malloc(100));
    scribble(object + 100, 12 + 16);
    sy_free(object);
}
