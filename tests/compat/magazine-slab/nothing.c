/*
 * nothing.c: what magazine-slab answers to NULL and 0, function by function.
 */
#include <slab.h>
#include <vmem.h>

#include "../compat.h"

static void *volatile none; /* so that no compiler knows */
static struct slab_cache *cache;
static vmem_t *arena;
static uintptr_t value;
static uint64_t object;

static struct slab_cache *create(const char *name, size_t size, size_t align) {
    return slab_cache_create(name, size, align, 0, NULL, NULL);
}

/* With all that may be 0. */
static int xalloc(vmem_t *vm, size_t size, uintptr_t *addrp) {
    return vmem_xalloc(vm, size, 0, 0, 0, 0, 0, addrp);
}

#define ANSWERS(A)                                                                     \
    A(create_empty, create("empty", 0, 0) == NULL)                                     \
    A(create_unnamed, create(NULL, 8, 0) != NULL)                                      \
    A(destroy, (slab_cache_destroy(none), true))                                       \
    A(alloc, slab_alloc(none) == NULL)                                                 \
    A(free_nothing, (slab_free(cache, NULL), sy_cache_in_use(cache->cache) == 0))      \
    A(free_nowhere, (slab_free(none, &object), object == 0))                           \
    A(free_both, (slab_free(none, NULL), true))                                        \
    A(shrink, slab_cache_shrink(none) == 0)                                            \
    A(stats, (slab_cache_stats(none), true))                                           \
    A(init_twice, (slab_system_init(), slab_system_init(), slab_alloc(cache) != NULL)) \
    A(fini_without_init, (slab_system_fini(), true))                                   \
    A(kfree_nothing, (slab_kfree(NULL, 0), slab_kfree(NULL, 100), true))               \
    A(kmalloc_empty, (slab_kfree(slab_kmalloc(0), 0), true))                           \
    A(arena_empty, xalloc(vmem_create("empty", 0, 0, 1), 1, &value) == -1)             \
    A(arena_quantum, vmem_alloc(vmem_create("ones", 0, 8, 0), 8, &value) == 0)         \
    A(arena_unnamed, vmem_create(NULL, 0, 8, 1) != NULL)                               \
    A(arena_destroy, (vmem_destroy(none), true))                                       \
    A(arena_alloc_empty, vmem_alloc(arena, 0, &value) == -1)                           \
    A(arena_alloc_unsaid, vmem_alloc(arena, 1, none) == -1)                            \
    A(arena_alloc_nowhere, vmem_alloc(none, 1, &value) == -1)                          \
    A(arena_xalloc_empty, xalloc(arena, 0, &value) == -1)                              \
    A(arena_xalloc_unsaid, xalloc(arena, 1, none) == -1)                               \
    A(arena_xalloc_nowhere, xalloc(none, 1, &value) == -1)                             \
    A(arena_free, (vmem_free(none, 1, 1), vmem_free(none, 0, 0), true))                \
    A(arena_xfree, (vmem_xfree(none, 1, 1), vmem_xfree(none, 0, 0), true))             \
    A(arena_stats, (vmem_stats(none), true))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    cache = create("cache", 64, 0);
    arena = vmem_create("arena", 0x1000, 0x1000, 1);
    EXPECT(cache && arena);
    return check_answers(answers, sizeof answers / sizeof *answers);
}
