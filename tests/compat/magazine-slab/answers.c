/*
 * answers.c: bad input to each function of magazine-slab. The answers have to be those of
 * magazine-slab, or a report where it continued with corrupted memory. This program runs with
 * checks and without.
 */
#include "compat/compat.h"

#include <slab.h>
#include <vmem.h>

static void *volatile none; /* NULL, which the compiler cannot know */
static struct slab_cache *cache, *other;
static vmem_t *arena;
static uintptr_t value, held;
static uint64_t memory[8];

static bool makes(const char *name, size_t size, size_t align, uint32_t flags) {
    return slab_alloc(slab_cache_create(name, size, align, flags, NULL, NULL)) != NULL;
}

static bool reports(void *object) {
    slab_free(cache, object);
    return reported();
}

static void *freed(void) {
    void *object = slab_alloc(cache);
    slab_free(cache, object);
    return object;
}

/* An object that was freed with its size is checked when it returns to its slab, at the latest. */
static bool sized_reports(void *object, size_t size) {
    slab_kfree(object, size);
    sy_thread_flush();
    return faults > 0;
}

static void *freed_sized(void) {
    void *object = slab_kmalloc(100);
    slab_kfree(object, 100);
    return object;
}

static bool arena_makes(uintptr_t base, size_t size, size_t quantum) {
    return vmem_create("arena", base, size, quantum) != NULL;
}

/* Calls vmem_xalloc with 0 for each argument that may be 0. */
static int xalloc(vmem_t *vm, size_t size, uintptr_t *addrp) {
    return vmem_xalloc(vm, size, 0, 0, 0, 0, 0, addrp);
}

static bool arena_reports(void (*frees)(vmem_t *, uintptr_t, size_t), uintptr_t addr, size_t size) {
    faults = 0;
    frees(arena, addr, size);
    return faults > 0 && sy_vmem_size(arena->arena, SY_VMEM_ALLOCATED) == 0x100;
}

static uintptr_t freed_value(void) {
    EXPECT(vmem_alloc(arena, 16, &value) == 0);
    vmem_free(arena, value, 16);
    return value;
}

#define ANSWERS(A)                                                                                \
    A(slab_cache_create, NOTHING, makes(NULL, 8, 0, 0))                                           \
    A(slab_cache_create, ZERO, !makes("empty", 0, 0, 0) && makes("any", 8, 0, 0))                 \
    A(slab_cache_create, HUGE_SIZE,                                                               \
      !makes("huge", SIZE_MAX, 0, 0) && !makes("huge", PTRDIFF_MAX, 0, 0) &&                      \
          !makes("aligned", 8, SIZE_MAX, 0) && !makes("aligned", 8, SIZE_MAX / 2 + 1, 0) &&       \
          !makes("flags", 8, 0, UINT32_MAX))                                                      \
    A(slab_cache_destroy, NOTHING, (slab_cache_destroy(none), true))                              \
    A(slab_alloc, NOTHING, !slab_alloc(none))                                                     \
    A(slab_free, NOTHING,                                                                         \
      (slab_free(cache, NULL), slab_free(none, memory), slab_free(none, NULL), memory[0] == 0))   \
    A(slab_free, FOREIGN, reports(memory) && (faults = 0, reports(slab_alloc(other))))            \
    A(slab_free, STALE, reports(freed()))                                                         \
    A(slab_cache_shrink, NOTHING, slab_cache_shrink(none) == 0)                                   \
    A(slab_cache_stats, NOTHING, (slab_cache_stats(none), true))                                  \
    A(slab_system_init, OTHER, (slab_system_init(), slab_system_init(), slab_alloc(cache)))       \
    A(slab_system_fini, OTHER, (slab_system_fini(), slab_system_fini(), slab_alloc(cache)))       \
    A(slab_kmalloc, ZERO, (slab_kfree(slab_kmalloc(0), 0), faults == 0))                          \
    A(slab_kmalloc, HUGE_SIZE, !slab_kmalloc(4097) && !slab_kmalloc(SIZE_MAX))                    \
    A(slab_kfree, NOTHING, (slab_kfree(none, 0), slab_kfree(none, 100), faults == 0))             \
    A(slab_kfree, ZERO, sized_reports(slab_kmalloc(100), 0))                                      \
    A(slab_kfree, HUGE_SIZE, sized_reports(slab_kmalloc(100), SIZE_MAX))                          \
    A(slab_kfree, FOREIGN, sized_reports(memory, 8))                                              \
    A(slab_kfree, STALE, sized_reports(freed_sized(), 100))                                       \
    A(vmem_create, NOTHING, vmem_create(NULL, 0, 8, 1))                                           \
    A(vmem_create, ZERO,                                                                          \
      xalloc(vmem_create("empty", 0, 0, 1), 1, &value) == -1 && arena_makes(0, 8, 0))             \
    A(vmem_create, HUGE_SIZE,                                                                     \
      !arena_makes(2, SIZE_MAX, 1) && !arena_makes(UINTPTR_MAX - 7, 16, 8) &&                     \
          !arena_makes(0, 8, SIZE_MAX) && !arena_makes(0, 8, SIZE_MAX / 2 + 1))                   \
    A(vmem_destroy, NOTHING, (vmem_destroy(none), true))                                          \
    A(vmem_add, NOTHING, vmem_add(none, 0x8000, 8) == -1)                                         \
    A(vmem_add, ZERO, vmem_add(arena, 0x8000, 0) == -1)                                           \
    A(vmem_add, HUGE_SIZE,                                                                        \
      vmem_add(arena, 0x8000, SIZE_MAX) == -1 && vmem_add(arena, UINTPTR_MAX, 2) == -1)           \
    A(vmem_alloc, NOTHING, vmem_alloc(arena, 1, none) == -1 && vmem_alloc(none, 1, &value) == -1) \
    A(vmem_alloc, ZERO, vmem_alloc(arena, 0, &value) == -1)                                       \
    A(vmem_alloc, HUGE_SIZE, vmem_alloc(arena, SIZE_MAX, &value) == -1 && value == 7)             \
    A(vmem_free, NOTHING, (vmem_free(none, 1, 1), vmem_free(none, 0, 0), faults == 0))            \
    A(vmem_free, ZERO, arena_reports(vmem_free, held, 0))                                         \
    A(vmem_free, HUGE_SIZE, arena_reports(vmem_free, held, SIZE_MAX))                             \
    A(vmem_free, FOREIGN,                                                                         \
      arena_reports(vmem_free, held + 1, 1) && arena_reports(vmem_free, (uintptr_t)memory, 8))    \
    A(vmem_free, STALE, arena_reports(vmem_free, freed_value(), 16))                              \
    A(vmem_xalloc, NOTHING, xalloc(arena, 1, none) == -1 && xalloc(none, 1, &value) == -1)        \
    A(vmem_xalloc, ZERO, xalloc(arena, 0, &value) == -1 && xalloc(arena, 1, &value) == 0)         \
    A(vmem_xalloc, HUGE_SIZE,                                                                     \
      xalloc(arena, SIZE_MAX, &value) == -1 &&                                                    \
          vmem_xalloc(arena, 1, SIZE_MAX, 0, 0, 0, 0, &value) == -1 &&                            \
          vmem_xalloc(arena, 1, 8, SIZE_MAX, 0, 0, 0, &value) == -1 &&                            \
          vmem_xalloc(arena, 1, 0, 0, SIZE_MAX, 0, 0, &value) == -1 &&                            \
          vmem_xalloc(arena, 1, 0, 0, 0, UINTPTR_MAX, UINTPTR_MAX, &value) == -1 && value == 7)   \
    A(vmem_xfree, NOTHING, (vmem_xfree(none, 1, 1), vmem_xfree(none, 0, 0), faults == 0))         \
    A(vmem_xfree, ZERO, arena_reports(vmem_xfree, held, 0))                                       \
    A(vmem_xfree, HUGE_SIZE, arena_reports(vmem_xfree, held, SIZE_MAX))                           \
    A(vmem_xfree, FOREIGN,                                                                        \
      arena_reports(vmem_xfree, held + 1, 1) && arena_reports(vmem_xfree, (uintptr_t)memory, 8))  \
    A(vmem_xfree, STALE, arena_reports(vmem_xfree, freed_value(), 16))                            \
    A(vmem_stats, NOTHING, (vmem_stats(none), true))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    size_t count = sizeof answers / sizeof *answers;
    sy_set_fault_handler(note_fault);
    cache = slab_cache_create("cache", 64, 0, 0, NULL, NULL);
    other = slab_cache_create("other", 64, 0, 0, NULL, NULL);
    arena = vmem_create("arena", 0x1000, 0x1000, 1);
    EXPECT(cache && other && arena && vmem_alloc(arena, 0x100, &held) == 0);
    value = 7;
    return check_header(COMPAT "slab.h", answers, count) +
           check_header(COMPAT "vmem.h", answers, count) + check_answers(answers, count);
}
