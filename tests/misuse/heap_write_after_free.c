/* slabyard: write after free: ADDRESS+8 in cache "heap-112" (112 bytes)
 *   offset 8: inside, 8 bytes from its start
 *   8 bytes damaged from offset 8:
 *     +8  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("poison");
    char *object = told(sy_malloc(100));
    sy_free(object);
    scribble(object + 8, 8);
    sy_malloc(100);
}
