#include "compat/together/together.h"

#include <string.h>
/* The headers may be included in either order, and twice. */
#include "slab.h"
#include "vmem.h"

int with_magazine_slab(void) {
    struct slab_cache *cache = slab_cache_create("my_cache", 64, 0, 0, NULL, NULL);
    void *obj = slab_alloc(cache);
    if (!obj) return 1;
    memset(obj, 1, 64);
    slab_free(cache, obj);
    slab_cache_shrink(cache);
    slab_cache_destroy(cache);

    void *buf = slab_kmalloc(100);
    if (!buf) return 2;
    slab_kfree(buf, 100);

    vmem_t *vm = vmem_create("my_arena", 0x10000, 0x100000, 4096);
    uintptr_t addr;
    if (vmem_xalloc(vm, 4096, 4096, 0, 0, 0, SIZE_MAX, &addr) != 0) return 3;
    vmem_free(vm, addr, 4096);
    vmem_destroy(vm);
    return 0;
}
