#include "compat/together/together.h"

#include "slab.h"
#include "vmem.h"

static int bring(void *arg, size_t size, uintptr_t *addr, size_t *actual) {
    uintptr_t *next = static_cast<uintptr_t *>(arg);
    *addr = *next;
    *next += *actual = size;
    return 0;
}

/* Runs after with_magazine_slab_1_2, and finds its tag: C and C++ use one table of tags. */
int with_magazine_slab_1_2_in_cpp(void) {
    const pool_tag_entry *both = slab_pool_tag_find(MAKE_POOL_TAG('b', 'o', 't', 'h'));
    uintptr_t next = 64, value = 0;
    vmem_t *vm = vmem_create("brought", 0, 0, 1, bring, nullptr, &next, 100);
    if (!vm || vmem_alloc(vm, 1, &value) != 0 || value != 64 || next != 164) return 1;
    vmem_free(vm, value, 1);
    vmem_destroy(vm);
    return !both || both->allocs != 1 || both->active_bytes != 0;
}
