/* slabyard: free to the wrong cache: ADDRESS freed to heap "two", belongs to cache "one-112" (100
 * bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_text main
 *   next: free the object to what it was allocated from */
#include "misuse.h"

static __attribute__((noinline)) void *make_text(sy_heap *heap) {
    return told(sy_heap_alloc(heap, 100));
}

int main(void) {
    sy_heap *one = heap_of("one", SY_AUDIT), *two = heap_of("two", SY_AUDIT);
    sy_heap_free(two, make_text(one));
}
