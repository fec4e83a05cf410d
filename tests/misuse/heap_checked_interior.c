/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "heap-112" (112
 * bytes)
 *   offset 16: inside, 16 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    char *object = sy_malloc(100);
    sy_free(told(object + 16));
}
