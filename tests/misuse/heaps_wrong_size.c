/* slabyard: free with the wrong size: ADDRESS in cache "tenant" */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_heap_free_sized(heap, told(sy_heap_alloc(heap, 100)), 200);
}
