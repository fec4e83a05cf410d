/* slabyard: write after free (guard page): ADDRESS+50000 in cache "heap-106496" (106496 bytes)
 *   offset 50000: inside, 50000 bytes from its start
 *   seen by thread THREAD:
 *     STACK scribble main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: see the stack of this access: a pointer was kept after the free
 * ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    char *object = told(sy_malloc(100000));
    sy_free(object);
    scribble(object + 50000, 8);
}
