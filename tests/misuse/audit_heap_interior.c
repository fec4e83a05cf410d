/* slabyard: free of a pointer that is not the start of an object: ADDRESS+16 in cache "heap-112"
 * (112 bytes)
 *   offset 16: inside, 16 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    sy_set_options("audit");
    char *object = sy_malloc(100);
    sy_free(told(object) + 16);
}
