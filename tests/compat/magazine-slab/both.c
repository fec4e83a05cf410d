/*
 * both.c: the example of magazine-slab's document, unchanged: caches, objects of any size, and an
 * arena.
 */
#include "compat/compat.h"

#include "slab.h"

static void caches(void) {
    /* Create a cache for 64-byte objects */
    struct slab_cache *cache = slab_cache_create("my_cache", 64, 0, 0, NULL, NULL);
    void *obj = slab_alloc(cache);
    EXPECT(cache && obj);
    memset(obj, 1, 64);
    slab_free(cache, obj);
    slab_cache_shrink(cache);
    slab_cache_stats(cache);
    slab_cache_destroy(cache);

    void *buf = slab_kmalloc(100);
    EXPECT(buf);
    memset(buf, 1, 100);
    slab_kfree(buf, 100);
}

#include "vmem.h"

/* The second allocation overwrites `addr`, so the first one is still live at the end. */
static void arena(void) {
    vmem_t *vm = vmem_create("my_arena", 0x10000, 0x100000, 4096);
    uintptr_t addr = 0;
    vmem_alloc(vm, 8192, &addr);
    EXPECT(addr >= 0x10000 && addr < 0x110000);
    vmem_xalloc(vm, 4096, 4096, 0, 0, 0, SIZE_MAX, &addr);
    EXPECT(addr >= 0x10000 && addr < 0x110000 && addr % 4096 == 0);
    vmem_free(vm, addr, 4096);
    vmem_destroy(vm);
}

int main(void) {
    caches();
    arena();
    return 0;
}
