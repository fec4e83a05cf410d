/* slabyard: read after free (guard page): ADDRESS in cache "heap-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK follow main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   freed TIME ago by thread THREAD:
 *     STACK main
 *   next: see the stack of this access: a pointer was kept after the free
 * ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    void **object = told(sy_malloc(100));
    sy_realloc(object, 200);
    follow(object);
}
