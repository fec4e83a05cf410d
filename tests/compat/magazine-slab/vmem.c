#include "compat/compat.h"

#include <vmem.h>

/* ---- what the document shows ---- */

static void an_arena_and_its_life(void) {
    vmem_t *vm = vmem_create("my_arena", 0x10000, 0x100000, 4096);
    uintptr_t addr, aligned;
    EXPECT(vmem_alloc(vm, 8192, &addr) == 0);
    EXPECT(addr >= 0x10000 && addr + 8192 <= 0x110000 && addr % 4096 == 0);
    EXPECT(vmem_xalloc(vm, 4096, 4096, 0, 0, 0, SIZE_MAX, &aligned) == 0);
    EXPECT(aligned % 4096 == 0);
    vmem_stats(vm);
    vmem_free(vm, aligned, 4096);
    vmem_xfree(vm, addr, 8192);
    vmem_destroy(vm);
    vmem_destroy(NULL);
}

static void constraints_hold(void) {
    vmem_t *vm = vmem_create("constrained", 0x1000, 0x100000, 0x100);
    uintptr_t value;
    EXPECT(vmem_xalloc(vm, 0x300, 0x1000, 0x200, 0, 0, 0, &value) == 0);
    EXPECT(value % 0x1000 == 0x200);
    EXPECT(vmem_xalloc(vm, 0x800, 0, 0, 0x1000, 0, 0, &value) == 0);
    EXPECT(value / 0x1000 == (value + 0x7ff) / 0x1000);
    EXPECT(vmem_xalloc(vm, 0x100, 0, 0, 0, 0x80000, 0x800ff, &value) == 0);
    EXPECT(value == 0x80000);
    EXPECT(vmem_xalloc(vm, 0x100, 0, 0, 0, 0x80000, 0x800ff, &value) == -1);
    sy_vmem_stats stats;
    EXPECT(sy_vmem_get_stats((sy_vmem *)vm, &stats) == 0 && stats.segments_allocated == 3);
    EXPECT(sy_vmem_verify((sy_vmem *)vm) == 0);
    vmem_destroy(vm); /* refused: three are live */
    EXPECT(sy_vmem_verify((sy_vmem *)vm) == 0);
}

/* ---- what was found ---- */

static void what_fits_is_found(void) {
    vmem_t *vm = vmem_create("full but for the end", 0, 1024, 1);
    uintptr_t values[1024], value;
    for (unsigned i = 0; i < 1024; i++) EXPECT(vmem_alloc(vm, 1, &values[i]) == 0);
    EXPECT(vmem_alloc(vm, 1, &value) == -1);
    for (unsigned i = 0; i < 1024; i++)
        if (values[i] >= 896 || values[i] % 2) vmem_free(vm, values[i], 1);
    EXPECT(vmem_alloc(vm, 128, &value) == 0 && value >= 895);
    EXPECT(vmem_alloc(vm, SIZE_MAX, &value) == -1);
    EXPECT(vmem_alloc(vm, 0, &value) == -1);
}

static void a_wrong_free_is_named(void) {
    vmem_t *vm = vmem_create("ids", 1, 1000, 1);
    uintptr_t value;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    EXPECT(vmem_alloc(vm, 10, &value) == 0);
    vmem_free(vm, value + 1, 10);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_NOT_ALLOCATED);
    vmem_free(vm, value, 11);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_SEGMENT_SIZE);
    EXPECT(strcmp(last_fault.cache, "ids") == 0);
    vmem_free(vm, value, 10);
    EXPECT(faults == 2);
    sy_set_fault_handler(before);
    vmem_destroy(vm);
}

int main(void) {
    an_arena_and_its_life();
    constraints_hold();
    what_fits_is_found();
    a_wrong_free_is_named();
    return 0;
}
