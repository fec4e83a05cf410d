/* slabyard: free to the wrong cache: ADDRESS freed by sy_free, belongs to cache "tenant-112" (100
 * bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    sy_free(told(sy_heap_alloc(heap_of("tenant", 0), 100)));
}
