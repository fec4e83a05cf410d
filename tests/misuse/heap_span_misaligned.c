/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "heap"
 *   offset 65536: inside, 65536 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    char *object = sy_malloc(1 << 20);
    sy_free(told(object + 65536));
}
