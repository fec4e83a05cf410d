/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "heap"
 *   points to: PLACE
 *   seen by thread THREAD:
 *     STACK main
 *   next: see where the pointer comes from: another allocator, the stack, a variable, or memory
 * that was freed and returned to the system */
#include <stdlib.h>

#include "misuse.h"

int main(void) {
    sy_set_options("check");
    sy_free(told(malloc(100)));
}
