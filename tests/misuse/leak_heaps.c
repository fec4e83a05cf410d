/* SLABYARD=leaks=all
 * slabyard: 1 object leaked: 100 bytes in cache "tenant-112", allocated TIME ago by:
 *     STACK main
 *   total: 1 object, 100 bytes
 * ends with 0 */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_AUDIT);
    (void)told(sy_heap_alloc(heap, 100));
    sy_heap_destroy_all(heap);
    return 0;
}
