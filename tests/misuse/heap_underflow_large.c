/* slabyard: underflow: ADDRESS-4 in cache "heap-1048576" (1048576 bytes)
 *   offset -4: 4 bytes before its start
 *   4 bytes damaged from offset -4:
 *     -4  42 42 42 42                                      BBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    char *object = told(sy_malloc(1000000));
    scribble(object - 4, 4);
    sy_free(object);
}
