/* slabyard: double free: ADDRESS in cache "tenant-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant", .flags = SY_CHECKED});
    void *object = told(sy_heap_alloc(heap, 100));
    sy_heap_free(heap, object);
    sy_heap_free(heap, object);
}
