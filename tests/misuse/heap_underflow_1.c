/* slabyard: underflow: ADDRESS-1 in cache "heap-112" (112 bytes)
 *   offset -1: 1 byte before its start
 *   1 byte damaged from offset -1:
 *     -1  42                                               B
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    char *object = told(sy_malloc(100));
    scribble(object - 1, 1);
    sy_free(object);
}
