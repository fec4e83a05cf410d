/*
 * vmem.h: the arenas of magazine-slab, over Slabyard's (slabyard/vmem.h).
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab -lslabyard
 *
 * Where its document left a choice, or was not kept:
 *   - what fits is found: also what lies behind free segments that are too small;
 *   - sizes that overflow when they are rounded up to the quantum are refused; vmem_create and
 *     vmem_add refuse a size that is no multiple of it, instead of taking what lies behind, and
 *     integers that are in the arena already;
 *   - a free takes the same short time whatever is allocated; a value that is not allocated, or
 *     another size, is reported with the arena's name (slabyard/fault.h) and ends the process
 *     unless a handler says otherwise;
 *   - vmem_destroy with live segments, as in its example, says so on stderr and frees them: they
 *     are numbers, and nothing of theirs is unmapped;
 *   - `maxaddr` is the largest value that a segment may contain, SIZE_MAX and 0 for any.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_VMEM_H
#define SLABYARD_COMPAT_MAGAZINE_VMEM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <slabyard/heap.h>
#include <slabyard/memory.h>
#include <slabyard/vmem.h>

SY_BEGIN_DECLS

/* Version 1.0 uses the first field alone. */
typedef struct vmem {
    sy_vmem *arena;
    int (*import_fn)(void *arg, size_t size, uintptr_t *addrp, size_t *actual_size);
    void (*release_fn)(void *arg, uintptr_t addr, size_t size);
    void *import_arg;
    sy_memory *memory; /* over the arena, for caches; NULL: there were none yet */
} vmem_t;

/* An arena with the functions and the argument of `from`. */
static inline vmem_t *sy_magazine_vmem_create(const vmem_t *from, const sy_vmem_config *config) {
    sy_vmem_config own = *config;
    vmem_t *vm = (vmem_t *)sy_malloc(sizeof *vm);
    if (!vm) return NULL;
    *vm = *from;
    own.arg = vm;
    vm->arena = sy_vmem_create(&own);
    if (vm->arena) return vm;
    sy_free(vm);
    return NULL;
}

#ifndef SY_MAGAZINE_VMEM_IMPORTS /* version 1.2 has another one */
/* The integers from `base` on, `size` of them, in units of `quantum`, a power of two. NULL with
 * errno EINVAL or ENOMEM. */
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

/* All goes; nobody uses the arena any more. NULL is a no-op. (With caches over it, or without
 * memory to go through live segments, the arena stays.) */
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
        (void)sy_vmem_walk(vm->arena, SY_VMEM_ALLOCATED, sy_magazine_vmem_forget, vm->arena);
        if (sy_vmem_destroy(vm->arena) != 0) return;
    }
    sy_free(vm);
}

/* The integers from `addr` on, `size` of them, are in the arena too. 0; -1 with errno EINVAL (no
 * arena; size 0; one that is no multiple of the quantum, or past the end of the integers), EEXIST
 * (some of them are in it already) or ENOMEM. */
static inline int vmem_add(vmem_t *vm, uintptr_t addr, size_t size) {
    if (vm) return sy_vmem_add(vm->arena, addr, size);
    errno = EINVAL;
    return -1;
}

/* -1 with EINVAL if there is no arena, or nowhere to put a value; else 0. */
static inline int sy_magazine_vmem_check(const vmem_t *vm, const uintptr_t *addrp) {
    if (vm && addrp) return 0;
    errno = EINVAL;
    return -1;
}

/* 0, and where `size` units begin in *addrp; -1 with errno and *addrp as before. */
static inline int vmem_alloc(vmem_t *vm, size_t size, uintptr_t *addrp) {
    if (sy_magazine_vmem_check(vm, addrp) != 0) return -1;
    return sy_vmem_alloc(vm->arena, size, SY_VMEM_INSTANT, addrp);
}

/* Gives back what vmem_alloc or vmem_xalloc gave, with the size it was asked for. An arena that is
 * NULL is a no-op. */
static inline void vmem_free(vmem_t *vm, uintptr_t addr, size_t size) {
    if (vm) (void)sy_vmem_free(vm->arena, addr, size);
}

/* The same, where the value is `phase` more than a multiple of `align`, no multiple of `nocross`
 * lies within, and all of it from `minaddr` to `maxaddr`. 0 is: anything, for each. */
static inline int vmem_xalloc(vmem_t *vm, size_t size, size_t align, size_t phase, size_t nocross,
                              uintptr_t minaddr, uintptr_t maxaddr, uintptr_t *addrp) {
    sy_vmem_constraints wanted;
    if (sy_magazine_vmem_check(vm, addrp) != 0) return -1;
    wanted.align = align;
    wanted.phase = phase;
    wanted.nocross = nocross;
    wanted.min = minaddr;
    wanted.max = maxaddr && maxaddr != UINTPTR_MAX ? maxaddr + 1 : 0;
    return sy_vmem_xalloc(vm->arena, size, &wanted, SY_VMEM_BEST, addrp);
}

static inline void vmem_xfree(vmem_t *vm, uintptr_t addr, size_t size) {
    if (vm) (void)sy_vmem_xfree(vm->arena, addr, size);
}

/* Writes what the arena has to stderr; NULL is a no-op. */
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
