/* slabyard: write after free: ADDRESS in cache "heap-112" (112 bytes)
 *   offset 0: its start
 *   8 bytes damaged from offset 0:
 *     +0  42 42 42 42 42 42 42 42                          BBBBBBBB
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=poison,audit to see where the object was freed, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("poison");
    char *object = told(sy_malloc(100));
    char *moved = sy_realloc(object, 200);
    scribble(object, 8); /* the object's old place */
    sy_malloc(100);
    sy_free(moved);
}
