/* slabyard: free of a segment with the wrong size: ADDRESS (size 16) in arena "ports", allocated
 * with size 8
 *   seen by thread THREAD:
 *     STACK main
 *   next: free the segment with the size that it was allocated with */
#include "misuse.h"

int main(void) {
    sy_vmem *arena =
        sy_vmem_create(&(sy_vmem_config){.name = "ports", .base = 0x50, .size = 0x100});
    uintptr_t value;
    if (sy_vmem_alloc(arena, 8, SY_VMEM_INSTANT, &value) != 0) return 1;
    sy_vmem_free(arena, (uintptr_t)told((void *)value), 16);
}
