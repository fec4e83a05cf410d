/*
 * kind.h: the kinds of caches. The kind of a cache says what its slow paths do: a constant table of
 * functions, chosen by the cache's flags when the cache is opened (sy_kind_choose).
 *
 *     kind      flags                                          file       an object is
 *     plain     none of those below                            plain.c    a slot
 *     zeroed    SY_ZERO                                        zeroed.c   a slot, cleared by a free
 *     checked   SY_CHECKED, with or without SY_ZERO            watched.c  a slot with a record
 *     passed    SY_PASSED                                      passed.c   a block of the C library
 *     guarded   SY_GUARD over plain, zeroed or checked         guarded.c  one in N on its own pages
 *     named     SY_HANDLES over plain, zeroed or checked       handle.c   a slot with an ordinal
 *     movable   SY_HANDLES | SY_MOVABLE over plain or zeroed   movable.c  an ordinal, in any slot
 *
 * The first four are basic kinds. A guarded or a named cache also has a basic kind
 * (`cache->basic`), and calls the functions of this kind with the same cache. So the functions of a
 * basic kind do not use `cache->kind`.
 *
 * A new kind is a file with its functions and its table, and a place in sy_kind_choose.
 *
 * Other flags choose no functions of this table. SY_EPOCHS chooses the bins (epoch.h) and SY_RANDOM
 * the order of slots (refill.c). SY_EDGES, SY_LOCKED and SY_NO_DUMP act on the memory of slabs.
 *
 * Below: cache.h. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_KIND_H
#define SY_CACHE_KIND_H

#include <errno.h>

#include "cache/cache.h"
#include "magazine/turn.h"

/* Functions for the tables that a slab has besides its units: bitmaps, records, ordinals. No lock
 * is held unless the function's comment says so. */
typedef struct sy_slab_kind {
    /* Takes the slab's bitmaps, and its records and ordinals if it has any. If there is no memory
     * for one of them it takes none, and returns false. */
    bool (*take_tables)(const sy_cache *cache, sy_slab *slab);
    void (*give_tables)(const sy_cache *cache, sy_slab *slab);
    /* The slab is about to be used: the address of its first slot is known. The lock is held. */
    void (*begin)(sy_cache *cache, sy_slab *slab);
    /* The slab is not in use any more. Its tables still exist. */
    void (*end)(sy_cache *cache, sy_slab *slab);
    /* Backs the slab and its tables with memory. 0, or -1 with ENOMEM. */
    int (*populate)(const sy_slab *slab);
} sy_slab_kind;

/* The objects of one call of sy_cache_alloc_batch. */
typedef struct sy_batch {
    sy_cache *cache;
    void **objects;
    size_t got; /* how many there are so far */
    bool done;
} sy_batch;

struct sy_kind {
    /* Allocates and constructs an object of `size` bytes, at `align` or the cache's alignment if
     * that is less, and takes the turn at the end of the slow path. False with errno. */
    bool (*alloc)(sy_cache *cache, size_t size, size_t align, uintptr_t *object);
    /* As `alloc`, called by a guarded cache of this basic kind, which has asked before whether the
     * allocation is to fail. */
    bool (*take)(sy_cache *cache, size_t size, size_t align, uintptr_t *object);
    /* Frees an object, or raises the fault of the free. `told`: the size that the program names;
     * SIZE_MAX: it names none. errno is kept. */
    void (*free)(sy_cache *cache, void *object, size_t told);
    /* Puts back an item that this thread alone owns, for a cache with handles of this basic kind:
     * an ordinal whose word is free. `retires`: the ordinal is not given out again. errno is
     * kept. */
    void (*put)(sy_cache *cache, uintptr_t item, bool retires);
    /* Frees an object; false: it is no live object of the cache. The caller takes the turn. */
    bool (*try_free)(sy_cache *cache, void *object);
    /* Whether an object of the cache begins at `object`, and its bytes that the program may use. A
     * kind that keeps no record of its objects returns true. */
    bool (*find)(const sy_cache *cache, const void *object, size_t *bytes);
    /* Allocates until the batch has `count` objects, or no more can be allocated. */
    void (*fill)(sy_batch *batch, size_t count);

    /* The client's callbacks. */
    size_t (*refill)(void *cache, uintptr_t *items, size_t count);
    void (*flush)(void *cache, uintptr_t *items, size_t count, _Atomic uint32_t *held);

    const sy_slab_kind *slabs; /* NULL: those of the basic kind */
};

/* Sets the cache's kind and basic kind, by its flags. */
void sy_kind_choose(sy_cache *cache);

static inline const sy_slab_kind *sy_slab_kind_of(const sy_cache *cache) {
    return cache->kind->slabs ? cache->kind->slabs : cache->basic->slabs;
}

/* ---- the kinds ---- */

extern SY_HIDDEN const sy_kind sy_kind_plain, sy_kind_zeroed, sy_kind_checked, sy_kind_passed;
extern SY_HIDDEN const sy_kind sy_kind_guarded, sy_kind_named, sy_kind_movable;

extern SY_HIDDEN const sy_slab_kind sy_slabs_plain, sy_slabs_watched; /* slabs.c, watched.c */

/* ---- functions that kinds share ---- */

/* plain.c */
/* The object was allocated while a profile is taken or threads count, and not inline. */
void sy_plain_profile(sy_cache *cache, size_t size, uintptr_t item);
bool sy_plain_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *item);
void sy_plain_free(sy_cache *cache, void *object, size_t told);
void sy_plain_put(sy_cache *cache, uintptr_t item, bool retires);
bool sy_plain_try_free(sy_cache *cache, void *object);
bool sy_plain_find(const sy_cache *cache, const void *object, size_t *bytes);
void sy_plain_fill(sy_batch *batch, size_t count);

/* cache.c: one after the other */
void sy_cache_fill_singly(sy_batch *batch, size_t count);

/* Turns at the end of a slow path, which keep errno. */
static inline void sy_cache_turn(void) {
    int error = errno;
    sy_turn();
    errno = error;
}

static inline void sy_cache_turn_of_alloc(void) {
    int error = errno;
    sy_turn_of_alloc();
    errno = error;
}

#endif
