/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "heap-64" (64
 * bytes)
 *   offset 16: inside, 16 bytes from its start
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the pointer that the allocation gave, not one into the object */
#include "misuse.h"

int main(void) {
    char *object = sy_malloc(60);
    sy_free(told(object + 16));
    sy_thread_flush();
}
