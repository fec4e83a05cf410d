/* slabyard: free of a segment that is not allocated: 0x50 (size 16) in arena "ports"
 *   seen by thread THREAD:
 *     STACK main
 *   next: free a segment once, by the value that its allocation gave */
#include "misuse.h"

int main(void) {
    sy_vmem *arena = sy_vmem_create(
        &(sy_vmem_config){.name = "ports", .base = 0x50, .size = 0x100, .quantum = 16});
    uintptr_t value;
    if (sy_vmem_alloc(arena, 16, SY_VMEM_INSTANT, &value) != 0) return 1;
    told((void *)value);
    sy_vmem_free(arena, value, 16);
    sy_vmem_free(arena, value, 16);
}
