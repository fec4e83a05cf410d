/* slabyard: free to the wrong cache: ADDRESS in cache "heap", belongs to "tenant-1048576" */
#include "misuse.h"

int main(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_free(told(sy_heap_alloc(heap, 1 << 20)));
}
