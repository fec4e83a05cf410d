/*
 * epoch.h: what epochs are to the rest of this layer: other bins.
 *
 *     cache ---- bins                slabs of no epoch
 *       \------- view of epoch A     bins, and a count of what is out of its slabs
 *        \------ view of epoch B
 *
 * A view is made when a cache is first allocated from in an epoch, and goes with the epoch, which
 * stays as long as it is open, a thread is in it, or a slab is its. The slabs' descriptors lead to
 * their bins, and so to the view. A view keeps no empty slab.
 *
 * Below: cache.h. Used by the rest of cache/ alone.
 */
#ifndef SY_CACHE_EPOCH_H
#define SY_CACHE_EPOCH_H

#include <slabyard/epoch.h>
#include <stdatomic.h>

#include "cache/cache.h"

typedef struct sy_view {
    sy_bins bins; /* guarded by the cache's lock, as is the next */
    size_t out;   /* slots out of its slabs */
    sy_epoch *epoch;
    _Atomic(sy_cache *) cache; /* NULL: destroyed; written under the lock of the epochs */
    struct sy_view *next;      /* of the epoch */
} sy_view;

/* Of a slab that is in no cache's own bins. */
static inline sy_view *sy_view_of(const sy_bins *bins) {
    return (sy_view *)((char *)(uintptr_t)bins - offsetof(sy_view, bins));
}

/* The bins from which this thread allocates; NULL with ENOMEM. No lock is held. */
sy_bins *sy_epoch_bins(sy_cache *cache);

/* Whether a live object is of an epoch that was closed. The lock is held. */
bool sy_epoch_is_over(const sy_cache *cache, const void *object);

/* A slab comes to a view, or has left it: no lock is held, and the view may be gone. */
void sy_view_hold(sy_view *view);
void sy_view_let_go(sy_view *view);

/* The cache is going to be destroyed: epochs forget it, and are not at work with it any more. */
void sy_epochs_forget(sy_cache *cache);

#endif
