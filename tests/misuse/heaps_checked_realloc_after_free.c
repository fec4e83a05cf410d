/* slabyard: double free: ADDRESS in cache "tenant-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_CHECKED);
    char *object = told(sy_heap_alloc(heap, 100));
    sy_heap_free(heap, object);
    sy_heap_realloc(heap, object, 200);
}
