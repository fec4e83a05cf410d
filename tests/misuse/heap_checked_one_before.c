/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "heap-112" (112
 * bytes)
 *   offset 111: 11 bytes past the end of the 100 asked for
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    char *object = sy_malloc(100);
    sy_free(told(object + 111));
}
