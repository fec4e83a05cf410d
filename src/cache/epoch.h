/*
 * epoch.h: views. A view is the set of slabs, in bins, that a cache has for one epoch. In an epoch,
 * a refill takes slots from the view's bins instead of the cache's own bins.
 *
 *     cache ---- bins                slabs of no epoch
 *       \------- view of epoch A     bins, and a count of the slots out of its slabs
 *        \------ view of epoch B
 *
 * A view is made by the first allocation from a cache in an epoch. It is freed with the epoch,
 * which exists as long as it is open, a thread is in it, or one of its views has a slab. The
 * descriptor of a slab leads to its bins, and so to the view. A view keeps no empty slab.
 *
 * Below: cache.h. Used by the rest of cache/ alone.
 */
#ifndef SY_CACHE_EPOCH_H
#define SY_CACHE_EPOCH_H

#include <slabyard/epoch.h>
#include <stdatomic.h>

#include "cache/cache.h"

typedef struct sy_view {
    sy_bins bins; /* guarded by the cache's lock, as is `out` */
    size_t out;   /* slots out of its slabs */
    sy_epoch *epoch;
    _Atomic(sy_cache *) cache; /* NULL: destroyed; written under the lock of the epochs */
    struct sy_view *next;      /* of the epoch */
} sy_view;

/* The view that these bins are part of. They must not be a cache's own bins. */
static inline sy_view *sy_view_of(const sy_bins *bins) {
    return (sy_view *)((char *)(uintptr_t)bins - offsetof(sy_view, bins));
}

/* The bins of the cache from which this thread allocates: its own, or those of the view of the
 * thread's epoch. NULL with ENOMEM. No lock is held. */
sy_bins *sy_epoch_bins(sy_cache *cache);

/* Whether an object of the cache belongs to an epoch that was closed. The cache's lock is held. */
bool sy_epoch_is_over(const sy_cache *cache, const void *object);

/* sy_view_hold: a slab comes to the view. sy_view_let_go: a slab has left the view; no lock is
 * held, and the view may be freed by the call. */
void sy_view_hold(sy_view *view);
void sy_view_let_go(sy_view *view);

/* Before a cache is destroyed: takes it out of all views. When the call returns, no epoch uses the
 * cache any more. */
void sy_epochs_forget(sy_cache *cache);

/* In the child of a fork: calls `visit` for each view of the cache. */
void sy_epochs_each_view(const sy_cache *cache, void (*visit)(sy_view *view));

#endif
