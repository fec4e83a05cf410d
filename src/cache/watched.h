/*
 * watched.h: caches with SY_CHECKED (the kind `checked`). Each allocation and each free takes the
 * slow path and is checked there.
 *
 *     sy_cache_alloc_slow --> sy_watched_alloc --> sy_cache_take_item (slabs; no magazines)
 *     sy_cache_free_slow  --> sy_watched_free  --> quarantine --> sy_client_free (slabs)
 *     handles             --> sy_watched_alloc, sy_watched_put
 *
 * The records of a slab's slots lie behind its bitmaps, in side memory, where a program that writes
 * beyond its objects does not reach them.
 *
 * Below: cache.h, debug/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_WATCHED_H
#define SY_CACHE_WATCHED_H

#include "cache/cache.h"
#include "debug/watch.h"

enum { SY_EDGE_BYTES = 64 }; /* of a pattern at each end of a slab, with SY_EDGES */

static inline bool sy_cache_checks(const sy_cache *cache) { return cache->flags & SY_CHECKED; }

static inline sy_record *sy_watched_records(const sy_cache *cache, const sy_slab *slab) {
    return (sy_record *)(slab->free + (size_t)2 * cache->layout.words);
}

/* Calls `visit` for each live object of a cache with SY_AUDIT: for guarded ones without a lock, for
 * the others under the cache's. In other caches it does nothing. */
typedef void sy_watched_visit(void *arg, const sy_cache *cache, const void *object,
                              const sy_live *live);
void sy_watched_each(sy_cache *cache, sy_watched_visit *visit, void *arg);

/* Raises a fault of an object with a handle. */
void sy_watched_raise(const sy_cache *cache, uint32_t ordinal, sy_fault_kind kind);

/* Adds to the fault what is known of the object around its address, of any cache: where the object
 * begins, its size, and with audit where it was allocated and freed. A foreign pointer at which one
 * of the last large objects began becomes a double free. Any address; locks may be held. */
void sy_watched_describe(sy_fault *fault);

/* Undoes the work of an allocation whose constructor failed. */
typedef void sy_undo(const void *work);

/* Constructs an object by `construct`. If that fails (false, with the errno that it left) or
 * throws, undo(work) is called. */
bool sy_watched_construct(sy_cache *cache, int (*construct)(void *object, void *arg), void *object,
                          sy_undo *undo, const void *work);

/* In a cache that constructs at each allocation: constructs an object, likewise, and destructs it.
 * In other caches they do nothing. */
bool sy_watched_build(sy_cache *cache, void *object, sy_undo *undo, const void *work);
void sy_watched_unbuild(sy_cache *cache, void *object);

/* Moves the objects in quarantine back to the slabs; whether there were any. In caches without a
 * quarantine it does nothing. */
bool sy_watched_drain(sy_cache *cache);

/* Called before the memory of these slots is given back; NULL: before the whole slab is, with its
 * edges and with what tools know of it. Verifies free objects; destructs live objects that were
 * constructed at their allocation. No lock is held. */
void sy_watched_forget(sy_cache *cache, sy_slab *slab, const uint64_t *slots);

/* Called before a slab is used, and when it is not used any more. */
void sy_watched_begin_slab(sy_cache *cache, sy_slab *slab);
void sy_watched_end_slab(sy_cache *cache, sy_slab *slab);

/* The granules (a bit each) that have edges. The slab keeps their memory as long as it is used. */
uint64_t sy_watched_edges(const sy_cache *cache, const sy_slab *slab);

/* How many objects and edges are damaged at present; each is reported. */
size_t sy_watched_verify(sy_cache *cache);
/* From now on the poisoned free objects of all caches are verified when the process ends by exit()
 * or from main(), unless the option `exit-check` says no. Damage raises a fault. Otherwise objects
 * in quarantine, and objects that are never allocated again, would not be verified. 0, or -1 with
 * ENOMEM. Any thread, any number of times. (For pools: pool/checked.c.) */
int sy_watched_verify_at_exit(void);

/* From now on adds the object at the reported address to the reports of Valgrind or
 * AddressSanitizer, if the program runs under one of them. */
void sy_watched_explain(void);

#endif
