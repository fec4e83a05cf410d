/* slabyard: overflow: ADDRESS+100 in cache "heap-112" (112 bytes)
 *   offset 100: the first byte past the end of the 100 asked for
 *   1 byte damaged from offset 100:
 *     +100  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    char *object = told(sy_malloc(100));
    scribble(object + 100, 1);
    sy_realloc(object, 200); /* the object moves */
}
