/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "tenant"
 *   points to: PLACE
 *   seen by thread THREAD:
 *     STACK main
 *   next: see where the pointer comes from: another allocator, the stack, a variable, or memory
 * that was freed and returned to the system */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_CHECKED);
    sy_heap *other = heap_of("other", 0);
    void *object = told(sy_heap_alloc(other, 100));
    sy_heap_destroy_all(other);
    sy_heap_free(heap, object);
}
