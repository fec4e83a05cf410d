/* slabyard: free to the wrong cache: ADDRESS in cache "heap", belongs to "tenant-112"
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

int main(void) {
    sy_set_options("check");
    sy_free(told(sy_heap_alloc(heap_of("tenant", 0), 100)));
}
