/*
 * vmem.h: the arenas of magazine-slab, implemented by Slabyard's (slabyard/vmem.h).
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab -lslabyard
 *
 * In these points magazine-slab's document leaves a choice, or magazine-slab does not do what it
 * says. Here:
 *   - A segment that fits is always found, even if it lies behind free segments that are too small.
 *   - Sizes that overflow when they are rounded up to the quantum are refused. vmem_create and
 *     vmem_add refuse a size that is no multiple of the quantum, instead of taking the integers
 *     behind it. They also refuse integers that are in the arena already. The base of vmem_create
 *     may be any integer: segments then lie at `base` plus multiples of the quantum, as in
 *     magazine-slab.
 *   - A free takes the same short time however much is allocated. A value that is not allocated, or
 *     another size, is reported with the arena's name (slabyard/fault.h), and the process ends
 *     unless a fault handler returns.
 *   - vmem_destroy with live segments, as in magazine-slab's example, writes a message to stderr
 *     and frees them. They are numbers, so nothing is unmapped.
 *   - vmem_t has the fields below for reading. Those with numbers are exact when no other thread is
 *     in a function of the arena. Its lock is not used, and the lists of segments are not there.
 *   - `maxaddr` is the largest value that a segment may contain; SIZE_MAX and 0 mean any.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_VMEM_H
#define SLABYARD_COMPAT_MAGAZINE_VMEM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <slabyard/heap.h>
#include <slabyard/memory.h>
#include <slabyard/vmem.h>

SY_BEGIN_DECLS

#define VMEM_FREELISTS 32 /* lists of free segments in magazine-slab; not used here */

typedef struct vmem {
    const char *name;
    size_t quantum;
    size_t total_size, alloc_size, free_size;
    uint32_t n_spans, n_allocs;
    pthread_mutex_t lock; /* not used */

    sy_vmem *arena;
    /* Version 1.2: */
    int (*import_fn)(void *arg, size_t size, uintptr_t *addrp, size_t *actual_size);
    void (*release_fn)(void *arg, uintptr_t addr, size_t size);
    void *import_arg;
    size_t import_quantum;
    sy_memory *memory; /* over the arena, for caches; NULL: no cache yet */
} vmem_t;

/* Counts a span that has come (`sign` 1) or gone (-1). */
static inline void sy_magazine_vmem_span(vmem_t *vm, size_t size, int sign) {
    __atomic_fetch_add(&vm->total_size, sign > 0 ? size : -size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&vm->free_size, sign > 0 ? size : -size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&vm->n_spans, (uint32_t)sign, __ATOMIC_RELAXED);
}

/* Counts a segment that was allocated (`sign` 1) or freed (-1). */
static inline void sy_magazine_vmem_segment(vmem_t *vm, size_t size, int sign) {
    __atomic_fetch_add(&vm->alloc_size, sign > 0 ? size : -size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&vm->free_size, sign > 0 ? -size : size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&vm->n_allocs, (uint32_t)sign, __ATOMIC_RELAXED);
}

/* Returns the size rounded up to the quantum, or SIZE_MAX, which no arena has, if it overflows. */
static inline size_t sy_magazine_vmem_round(const vmem_t *vm, size_t size) {
    size_t rest = vm->quantum - 1;
    return size > SIZE_MAX - rest ? SIZE_MAX : (size + rest) & ~rest;
}

/* Creates an arena with the functions and the argument of `from`. The unit of Slabyard's arena
 * divides the quantum and the base; sizes are whole quanta, so values are too, counted from the
 * base. */
static inline vmem_t *sy_magazine_vmem_create(const vmem_t *from, const sy_vmem_config *config) {
    sy_vmem_config own = *config;
    size_t quantum = config->quantum ? config->quantum : 1;
    vmem_t *vm;
    if ((quantum & (quantum - 1)) || config->size % quantum) {
        errno = EINVAL;
        return NULL;
    }
    vm = (vmem_t *)sy_malloc(sizeof *vm);
    if (!vm) return NULL;
    *vm = *from;
    vm->name = config->name;
    vm->quantum = quantum;
    own.arg = vm;
    own.quantum = (config->base | quantum) & ~((config->base | quantum) - 1);
    own.import_min = sy_magazine_vmem_round(vm, config->import_min);
    vm->arena = sy_vmem_create(&own);
    if (vm->arena) {
        pthread_mutex_init(&vm->lock, NULL);
        if (own.size) sy_magazine_vmem_span(vm, own.size, 1);
        return vm;
    }
    sy_free(vm);
    return NULL;
}

#ifndef SY_MAGAZINE_VMEM_IMPORTS /* version 1.2 has another vmem_create */
/* Creates an arena of `size` integers from `base` on, in units of `quantum`, a power of two (0: 1).
 * The caller owns it until vmem_destroy. Returns NULL with errno EINVAL or ENOMEM. */
static inline vmem_t *vmem_create(const char *name, uintptr_t base, size_t size, size_t quantum) {
    sy_vmem_config config;
    vmem_t nothing;
    memset(&nothing, 0, sizeof nothing);
    memset(&config, 0, sizeof config);
    config.name = name;
    config.base = base;
    config.size = size;
    config.quantum = quantum;
    return sy_magazine_vmem_create(&nothing, &config);
}
#endif

static inline int sy_magazine_vmem_forget(void *arena, unsigned what, uintptr_t addr, size_t size) {
    (void)what;
    return sy_vmem_xfree((sy_vmem *)arena, addr, size);
}

/* Destroys the arena with all its segments. No other thread may be using it. NULL is allowed and
 * does nothing. If there are caches over the arena, or no memory to go through its live segments,
 * the arena stays. */
static inline void vmem_destroy(vmem_t *vm) {
    if (!vm) return;
    if (sy_memory_destroy(vm->memory) != 0) {
        fprintf(stderr, "vmem: arena destroyed with caches over it: it stays\n");
        return;
    }
    vm->memory = NULL;
    if (sy_vmem_destroy(vm->arena) != 0) {
        fprintf(stderr, "vmem: arena destroyed with %zu allocated\n",
                sy_vmem_size(vm->arena, SY_VMEM_ALLOCATED));
        (void)sy_vmem_each(vm->arena, SY_VMEM_ALLOCATED, sy_magazine_vmem_forget, vm->arena);
        if (sy_vmem_destroy(vm->arena) != 0) return;
    }
    vm->arena = NULL; /* a use of a destroyed arena does not reach the next arena's integers */
    pthread_mutex_destroy(&vm->lock);
    sy_free(vm);
}

/* Adds `size` integers from `addr` on to the arena. Returns 0; or -1 with errno EINVAL (no arena;
 * size 0; size no multiple of the quantum; address a multiple neither of the quantum nor of the
 * largest power of two that divides the base; past the end of the integers), EEXIST (some of them
 * are in the arena already) or ENOMEM. */
static inline int vmem_add(vmem_t *vm, uintptr_t addr, size_t size) {
    if (!vm || size % vm->quantum) {
        errno = EINVAL;
        return -1;
    }
    if (sy_vmem_add(vm->arena, addr, size) != 0) return -1;
    sy_magazine_vmem_span(vm, size, 1);
    return 0;
}

/* Returns -1 with EINVAL if there is no arena, or no place to write a value to; else 0. */
static inline int sy_magazine_vmem_check(const vmem_t *vm, const uintptr_t *addrp) {
    if (vm && addrp) return 0;
    errno = EINVAL;
    return -1;
}

/* Allocates `size` units and writes their first value to *addrp. Returns 0; or -1 with errno,
 * *addrp unchanged. */
static inline int vmem_alloc(vmem_t *vm, size_t size, uintptr_t *addrp) {
    if (sy_magazine_vmem_check(vm, addrp) != 0) return -1;
    size = sy_magazine_vmem_round(vm, size);
    if (sy_vmem_alloc(vm->arena, size, SY_VMEM_INSTANT, addrp) != 0) return -1;
    sy_magazine_vmem_segment(vm, size, 1);
    return 0;
}

/* Frees a segment of vmem_alloc or vmem_xalloc; pass the size that was asked for. If `vm` is NULL,
 * it does nothing. */
static inline void vmem_free(vmem_t *vm, uintptr_t addr, size_t size) {
    if (!vm) return;
    size = sy_magazine_vmem_round(vm, size);
    if (sy_vmem_free(vm->arena, addr, size) == 0) sy_magazine_vmem_segment(vm, size, -1);
}

/* As vmem_alloc, under constraints: the value is `phase` more than a multiple of `align`, no
 * multiple of `nocross` lies within the segment, and the whole segment lies from `minaddr` to
 * `maxaddr`. 0 means no constraint, for each of them. */
static inline int vmem_xalloc(vmem_t *vm, size_t size, size_t align, size_t phase, size_t nocross,
                              uintptr_t minaddr, uintptr_t maxaddr, uintptr_t *addrp) {
    sy_vmem_constraints wanted;
    if (sy_magazine_vmem_check(vm, addrp) != 0) return -1;
    size = sy_magazine_vmem_round(vm, size);
    wanted.align = align;
    wanted.phase = phase;
    wanted.nocross = nocross;
    wanted.min = minaddr;
    wanted.max = maxaddr && maxaddr != UINTPTR_MAX ? maxaddr + 1 : 0;
    if (sy_vmem_xalloc(vm->arena, size, &wanted, SY_VMEM_BEST, addrp) != 0) return -1;
    sy_magazine_vmem_segment(vm, size, 1);
    return 0;
}

static inline void vmem_xfree(vmem_t *vm, uintptr_t addr, size_t size) {
    if (!vm) return;
    size = sy_magazine_vmem_round(vm, size);
    if (sy_vmem_xfree(vm->arena, addr, size) == 0) sy_magazine_vmem_segment(vm, size, -1);
}

/* Writes the arena's statistics to stderr. NULL is allowed and does nothing. */
static inline void vmem_stats(const vmem_t *vm) {
    sy_vmem_stats stats;
    if (!vm || sy_vmem_get_stats(vm->arena, &stats) != 0) return;
    fprintf(
        stderr,
        "arena %s: %zu in all, %zu allocated in %zu segments, %zu free in %zu, the largest %zu\n",
        stats.name, stats.total, stats.allocated, stats.segments_allocated, stats.free,
        stats.segments_free, stats.largest_free);
}

SY_END_DECLS

#endif
