/* ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_heap *heap = heap_of("tenant", SY_POISON);
    void **object = told(sy_heap_alloc(heap, 100));
    *object = object;
    sy_heap_free(heap, object);
    follow(object);
}
