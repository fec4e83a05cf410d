/* slabyard: free of a segment that is not allocated: ADDRESS (size 2) in arena "ports"
 *   seen by thread THREAD:
 *     STACK main
 *   next: free a segment once, by the value that its allocation gave */
#include "misuse.h"

int main(void) {
    sy_vmem *arena = sy_vmem_create(
        &(sy_vmem_config){.name = "ports", .base = 0x50, .size = 0x100, .cached_max = 4});
    uintptr_t value;
    if (sy_vmem_alloc(arena, 2, SY_VMEM_INSTANT, &value) != 0) return 1;
    told((void *)value);
    sy_vmem_free(arena, value, 2);
    sy_vmem_free(arena, value, 2);
}
