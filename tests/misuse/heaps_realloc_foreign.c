/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "tenant"
 *   points to: PLACE
 *   seen by thread THREAD:
 *     STACK main
 *   next: see where the pointer comes from: another allocator, the stack, a variable, or memory
 * that was freed and returned to the system */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    static char local[64];
    sy_heap_realloc(heap, told(local), 100);
}
