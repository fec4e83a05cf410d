#include "compat/together/together.h"

#include "slab.h"
#include "vmem.h"

static void build(void *object) { *static_cast<int *>(object) = 7; }
static void unbuild(void *object) { *static_cast<int *>(object) = 0; }

int with_magazine_slab_in_cpp(void) {
    slab_system_init();
    slab_cache *cache = slab_cache_create("built", sizeof(int), 0, SLAB_DEBUG, build, unbuild);
    int *number = static_cast<int *>(slab_alloc(cache));
    int wrong = *number != 7;
    slab_free(cache, number);
    slab_cache_destroy(cache);
    slab_kfree(slab_kmalloc(4096), 4096);

    vmem_t *vm = vmem_create("ids", 1, 100, 1);
    uintptr_t id = 0;
    wrong |= vmem_alloc(vm, 1, &id) != 0 || id < 1 || id > 100;
    vmem_xfree(vm, id, 1);
    vmem_destroy(vm);
    slab_system_fini();
    return wrong;
}
