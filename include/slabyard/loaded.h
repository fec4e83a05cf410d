/**
 * slabyard/loaded.h: the part of the magazine layer that is compiled into programs: access to the
 * free objects in a thread's loaded magazine. Included by slabyard/cache.h. Programs call only
 * sy_thread_idle and sy_thread_flush.
 *
 * Threads: any thread.
 */
#ifndef SLABYARD_LOADED_H
#define SLABYARD_LOADED_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

#if defined(__SANITIZE_THREAD__)
#    define SY_LOADED_ATOMIC
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define SY_LOADED_ATOMIC
#    endif
#endif

/**
 * Tells the library that the calling thread expects to be idle. Until the thread's next operation,
 * other threads may take the free objects in its magazines. Its next operation ends this state.
 *
 * A thread that waits for the next client:
 *
 *     sy_thread_idle();
 *     int socket = accept(listener, NULL, NULL);   may wait for long
 */
SY_API void sy_thread_idle(void);

/**
 * Puts the free objects in the calling thread's magazines back into their slabs.
 *
 *     sy_thread_flush();
 *     sy_cache_trim(orders);   also what this thread had freed
 */
SY_API void sy_thread_flush(void);

/*
 * A thread's loaded slot for one client of the layer (a cache, a size class). `base <= top <=
 * limit` delimit the free items of a magazine; the newest item is top[-1]. `top <= base` shuts
 * allocation and `top >= limit` shuts free: the operation then takes the slow path, which decides
 * everything else.
 *
 * Only the thread itself writes `top` and the items. The library may change `base` and `limit` of a
 * thread that sleeps, so each operation reads them anew (sy_loaded_begin). Other threads may read
 * the slot. The words that the fast path uses are at +32 to +55 of a cache line, where objects do
 * not begin. Otherwise a store to a new object with the same page offset could delay the loads of
 * these words.
 */
typedef struct sy_loaded_slot {
    uintptr_t reserved[32 / sizeof(uintptr_t)];
    uintptr_t *top, *base, *limit;
#if UINTPTR_MAX > UINT32_MAX
    uintptr_t reserved_too;
#else
    uintptr_t reserved_too[5];
#endif
} sy_loaded_slot;

/* This thread's loaded slots, indexed by client number. The name carries the number of the layout,
 * so that a program and a library with different layouts do not link. */
extern SY_API_THREAD SY_TLS_INLINE sy_loaded_slot *sy_abi_1;

/*
 * Begins an operation, by a compiler barrier, which is no instruction. It comes after the store of
 * `top` of the previous operation, and before the loads of this one. So no compiler reads a bound
 * once for several operations, as it could for those of a loop.
 */
static inline void sy_loaded_begin(sy_loaded_slot *slot) {
    __asm__ volatile("" : "+m"(slot->top), "+m"(slot->base), "+m"(slot->limit));
}

/* `base` or `limit`. ThreadSanitizer has to know that another thread may change it. */
static inline uintptr_t *sy_loaded_bound(uintptr_t *const *bound) {
#ifdef SY_LOADED_ATOMIC
    return __atomic_load_n(bound, __ATOMIC_RELAXED);
#else
    return *bound;
#endif
}

/* Takes the newest item. Returns false if allocation is shut. */
static inline bool sy_loaded_pop(sy_loaded_slot *slot, uintptr_t *item) {
    sy_loaded_begin(slot);
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top <= sy_loaded_bound(&slot->base))) return false;
    *item = top[-1];
    __atomic_store_n(&slot->top, top - 1, __ATOMIC_RELAXED);
    return true;
}

/* Stores an item at `top`, where there is room. A signal handler, a fork or a reader of statistics
 * between the two stores sees one item too few, and nothing worse. */
static inline void sy_loaded_store(sy_loaded_slot *slot, uintptr_t *top, uintptr_t item) {
    __atomic_store_n(top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&slot->top, top + 1, __ATOMIC_RELAXED);
}

/* Puts an item in. Returns false if free is shut. */
static inline bool sy_loaded_push(sy_loaded_slot *slot, uintptr_t item) {
    sy_loaded_begin(slot);
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= sy_loaded_bound(&slot->limit))) return false;
    sy_loaded_store(slot, top, item);
    return true;
}

/*
 * As sy_loaded_push, but also returns false if the item is the newest in the slot already, because
 * it was freed twice in a row. The slow path then reports the double free. The word before the
 * items of a magazine is 0, so the comparison may also read an empty magazine.
 *
 * If SY_NO_DOUBLE_FREE_CHECK is defined before Slabyard's headers are included, the inline frees of
 * caches and pools do not make this comparison. They then make no check at all.
 */
static inline bool sy_loaded_push_once(sy_loaded_slot *slot, uintptr_t item) {
    sy_loaded_begin(slot);
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= sy_loaded_bound(&slot->limit))) return false;
#ifndef SY_NO_DOUBLE_FREE_CHECK
    if (SY_UNLIKELY(top[-1] == item)) return false;
#endif
    sy_loaded_store(slot, top, item);
    return true;
}

/* Whether sy_loaded_push_once would put the item in. */
static inline bool sy_loaded_may_push_once(const sy_loaded_slot *slot, uintptr_t item) {
    const uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= sy_loaded_bound(&slot->limit))) return false;
#ifndef SY_NO_DOUBLE_FREE_CHECK
    if (SY_UNLIKELY(top[-1] == item)) return false;
#endif
    return (void)item, true;
}

SY_END_DECLS

#endif
