/* slabyard: write after free: ADDRESS in cache "heap-1048576" (1048576 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("poison,quarantine=2");
    char *object = told(sy_malloc(1000000));
    sy_free(object);
    scribble(object, 8);
    for (int i = 0; i < 100; i++)
        sy_free(sy_malloc(1000000)); /* the object leaves the quarantine and is released */
}
