/*
 * sampled.h: guards one allocation in N of the drop-in malloc (the option `sample`), so that
 * overflows and uses after free are found in production, at a cost that is hardly noticeable.
 *
 *     malloc --> sy_sample_due --> sy_malloc_sampled --> sy_guarded_make
 *                or, if no sample is due, the heap
 *
 * With the option `guard`, the slow path of the heap's classes counts allocations, so each free has
 * to be a call. With `sample`, malloc itself counts down, which takes three instructions, and frees
 * stay as fast as without. A guarded object lies in no slab, so its free takes the slow path.
 * (As GWP-ASan counts in LLVM's scudo.)
 *
 * Sampled objects belong to a cache named "malloc". Above: shim/. Below: cache/guarded.h.
 */
#ifndef SY_HEAP_SAMPLED_H
#define SY_HEAP_SAMPLED_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocations that this thread makes before it calls sy_malloc_sampled again. */
extern SY_HIDDEN SY_TLS int64_t sy_sample_left;

/* Counts one allocation of this thread. True: the caller has to try sy_malloc_sampled first. */
static inline bool sy_sample_due(void) { return SY_UNLIKELY(--sy_sample_left < 0); }

/* Begins the next interval. Returns a guarded object of `size` bytes at `align`, to be freed by
 * sy_free. Returns NULL if the option is off, if the thread's first interval begins and is longer
 * than one allocation, if other options forbid it, or if there is no room; then the caller
 * allocates as usual. errno is kept. */
void *sy_malloc_sampled(size_t size, size_t align);

/* Whether the cache is the one of sampled objects. */
bool sy_sampled_owns(const void *cache);

#endif
