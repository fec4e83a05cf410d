/* slabyard: free with the wrong size: ADDRESS in cache "tenant"
 *   seen by thread THREAD:
 *     STACK main
 *   next: free with the size that was asked for, or without one */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_heap_free_sized(heap, told(sy_heap_alloc(heap, 100)), 200);
}
