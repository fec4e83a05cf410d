/*
 * slabyard/loaded.h: what a thread has at hand: the part of the magazine layer that is compiled
 * into programs. Included by slabyard/cache.h; programs need nothing of it but sy_thread_idle and
 * sy_thread_flush.
 */
#ifndef SLABYARD_LOADED_H
#define SLABYARD_LOADED_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/* This thread expects to be idle: others may take the free objects in its magazines until it is
 * back, which it is with its next operation. */
SY_API void sy_thread_idle(void);

/* Gives the free objects in this thread's magazines back to their slabs. */
SY_API void sy_thread_flush(void);

/*
 * A thread's loaded slot for one client of the layer (a cache, a size class): `base <= top <=
 * limit` delimit free items in a magazine, the newest at top[-1]. `top <= base` shuts allocation
 * and `top >= limit` shuts free: the slow path is taken, which decides all else. Only the thread
 * itself writes it; others read at most. The hot words lie at +32 to +55 of a cache line, where
 * objects do not begin: a store to a fresh object cannot delay their loads by having the same page
 * offset.
 */
typedef struct sy_loaded_slot {
    uintptr_t reserved[4];
    uintptr_t *top, *base, *limit;
    uintptr_t reserved_too;
} sy_loaded_slot;

/* This thread's loaded slots, by client number. The name carries the number of the layout, so that
 * a program and a library that disagree on it do not link. */
extern SY_API SY_TLS_DOOR sy_loaded_slot *sy_abi_1;

/* Takes the newest item; false if the slot is shut. */
static inline bool sy_loaded_pop(sy_loaded_slot *slot, uintptr_t *item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top <= slot->base)) return false;
    *item = top[-1];
    __atomic_store_n(&slot->top, top - 1, __ATOMIC_RELAXED);
    return true;
}

/* Stores an item at `top`, where there is room. A signal, a fork or a reader of statistics between
 * the two stores sees one item too few, no more. */
static inline void sy_loaded_store(sy_loaded_slot *slot, uintptr_t *top, uintptr_t item) {
    __atomic_store_n(top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&slot->top, top + 1, __ATOMIC_RELAXED);
}

/* Puts an item in; false if the slot is shut. */
static inline bool sy_loaded_push(sy_loaded_slot *slot, uintptr_t item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= slot->limit)) return false;
    sy_loaded_store(slot, top, item);
    return true;
}

/*
 * The same; false too if the item is the newest in the slot already: it was freed twice in a row.
 * The slow path then reports that. The word before the items of a magazine is 0, so an empty
 * magazine can be looked into as well.
 *
 * SY_NO_DOUBLE_FREE_CHECK, defined before Slabyard's headers are included, compiles the comparison
 * out of the inline frees of caches and pools: it is the only check that they have.
 */
static inline bool sy_loaded_push_once(sy_loaded_slot *slot, uintptr_t item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= slot->limit)) return false;
#ifndef SY_NO_DOUBLE_FREE_CHECK
    if (SY_UNLIKELY(top[-1] == item)) return false;
#endif
    sy_loaded_store(slot, top, item);
    return true;
}

SY_END_DECLS

#endif
