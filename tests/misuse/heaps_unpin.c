/* slabyard: unpin without a pin: ADDRESS in cache "tenant-112" (112 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: unpin a handle once for each pin of it that gave an object */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant", .flags = SY_HANDLES});
    sy_handle handle;
    told(sy_heap_alloc_handle(heap, 100, &handle));
    sy_heap_unpin(heap, handle);
}
