/*
 * watched.h: caches with SY_CHECKED, of which every operation is seen: the kind `checked`.
 *
 *     sy_cache_alloc_slow --> sy_watched_alloc --> sy_cache_take (slabs; there are no magazines)
 *     sy_cache_free_slow  --> sy_watched_free  --> quarantine --> sy_client_free (slabs)
 *     handles             --> sy_watched_alloc, sy_watched_put
 *
 * The records of a slab's slots lie behind its bitmaps, in side memory: out of reach of what the
 * program does to its objects.
 *
 * Below: cache.h, watch/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_WATCHED_H
#define SY_CACHE_WATCHED_H

#include "cache/cache.h"
#include "watch/watch.h"

enum { SY_EDGE_BYTES = 64 }; /* of a pattern at each end of a slab, with SY_EDGES */

static inline bool sy_cache_checks(const sy_cache *cache) { return cache->flags & SY_CHECKED; }

static inline sy_record *sy_watched_records(const sy_cache *cache, const sy_slab *slab) {
    return (sy_record *)(slab->free + (size_t)2 * cache->layout.words);
}

/* Raises a fault of an object with a handle. */
void sy_watched_raise(const sy_cache *cache, uint32_t ordinal, sy_fault_kind kind);

/* Adds what is known of the object that the fault's address lies in, whoever's it is: where it
 * begins, how large it is, and with audit who had it. A foreign pointer at which one of the last
 * large objects began is a double free. Any address; locks may be held. */
void sy_watched_describe(sy_fault *fault);

/* Takes back what an allocation has done before its object was to be constructed. */
typedef void sy_undo(const void *work);

/* Constructs an object by `construct`. If that fails (false, with the errno that it left) or
 * throws, undo(work) is called. */
bool sy_watched_construct(sy_cache *cache, int (*construct)(void *object, void *arg), void *object,
                          sy_undo *undo, const void *work);

/* Constructs, likewise, and destructs an object where that is done at each allocation and free. */
bool sy_watched_build(sy_cache *cache, void *object, sy_undo *undo, const void *work);
void sy_watched_unbuild(sy_cache *cache, void *object);

/* What waits in quarantine goes back to the slabs; whether anything did. */
bool sy_watched_drain(sy_cache *cache);

/* The memory of these slots goes (NULL: all of the slab, its edges, and what tools know of it):
 * what is free is verified, what is live destructed if it was constructed at its allocation. No
 * lock is held. */
void sy_watched_forget(sy_cache *cache, sy_slab *slab, const uint64_t *slots);

/* A slab is about to be used, and is not used any more. */
void sy_watched_begin_slab(sy_cache *cache, sy_slab *slab);
void sy_watched_end_slab(sy_cache *cache, sy_slab *slab);

/* The granules (a bit each) that the slab keeps as long as it is used: those with edges. */
uint64_t sy_watched_edges(const sy_cache *cache, const sy_slab *slab);

/* How many objects and edges are damaged at present; each is reported. */
size_t sy_watched_verify(sy_cache *cache);
/* From now on each cache's free objects that were filled by poison are verified when the process
 * ends by exit() or from main(), unless the option `exit-check` says no; damage is a fault: nobody
 * else verifies what waits in quarantine, or was never given out again. 0, or -1 with ENOMEM. Any
 * thread, any number of times. (Pools: pool/checked.c.) */
int sy_watched_verify_at_exit(void);

/* Has reports of the tool that is present say more, from now on. */
void sy_watched_explain(void);

#endif
