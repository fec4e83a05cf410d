/* ends with 0 */
#include <errno.h>

#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", 0);
    char *object = told(sy_heap_alloc(heap, 100));
    if (sy_heap_destroy(heap) != -1 || errno != EBUSY) return 1;
    sy_heap_free(heap, object);
    return sy_heap_destroy(heap);
}
