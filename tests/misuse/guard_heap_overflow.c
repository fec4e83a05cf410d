/* slabyard: write behind an object (guard page): ADDRESS+96 in cache "heap-96" (96 bytes)
 *   offset 96: the first byte past the end
 *   seen by thread THREAD:
 *     STACK scribble main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   next: see the stack of this access: an index or a length is too large
 * ends with SIGSEGV */
#include <stdbool.h>
#include <stdint.h>

#include "misuse.h"

int main(void) {
    sy_set_options("guard=all");
    char *object = sy_malloc(96), *other = sy_malloc(96);
    bool right = ((uintptr_t)object + 96) % 4096 == 0;
    scribble((char *)told(right ? object : other) + 96, 1);
}
