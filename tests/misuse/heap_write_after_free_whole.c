/* slabyard: write after free: ADDRESS in cache "heap-112" (112 bytes)
 *   offset 0: its start
 *   100 bytes damaged from offset 0:
 *     +0   42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +16  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +32  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     +48  42 42 42 42 42 42 42 42 42 42 42 42 42 42 42 42  BBBBBBBBBBBBBBBB
 *     ... 36 bytes more
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("poison");
    char *object = told(sy_malloc(100));
    sy_free(object);
    scribble(object, 100);
    sy_malloc(100);
}
