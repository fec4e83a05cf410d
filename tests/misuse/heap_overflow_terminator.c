/* slabyard: overflow: ADDRESS+16 in cache "heap-16" (16 bytes)
 *   offset 16: the first byte past the end
 *   1 byte damaged from offset 16:
 *     +16  00                                               .
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=redzone,audit to see where the object was allocated, with
 * SLABYARD=guard=all to stop at the write itself */
#include "misuse.h"

int main(void) {
    sy_set_options("redzone");
    static const char text[] = "sixteen letters.";
    char *object = told(sy_malloc(strlen(text)));
    strcpy(hidden(object), text); /* the 0 behind the text is one byte too many */
    sy_free(object);
}
