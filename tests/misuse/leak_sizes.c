/* SLABYARD=leaks=all
 * slabyard: 5 objects of 100 to 500 bytes leaked: 1.4 KiB in cache "tenant", allocated TIME ago by:
 *     STACK fill main
 *   total: 5 objects, 1.4 KiB
 * slabyard: 9 objects of 10 to 90 bytes leaked: 450 bytes in cache "heap", allocated TIME ago by:
 *     STACK fill main
 * slabyard: 1 object leaked: 300 bytes in cache "heap-320", allocated TIME ago by:
 *     STACK main
 *   total: 10 objects, 750 bytes
 * ends with 0 */
#include "misuse.h"

/* Each place has one group, whatever the sizes are. */
static __attribute__((noinline)) void fill(sy_heap *heap, size_t step, size_t most) {
    for (size_t size = step; size <= most; size += step)
        (void)told(heap ? sy_heap_alloc(heap, size) : (sy_malloc)(size));
}

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_AUDIT);
    fill(heap, 100, 500);
    fill(NULL, 10, 90);
    (void)told((sy_malloc)(300));
    sy_heap_destroy_all(heap);
    return 0;
}
