/*
 * hint.c: sy_should_move, for programs that move their objects themselves. It takes no lock: other
 * threads change what it reads, so the answer is a guess, which is right while they change little.
 *
 * The free slots of a cache have room for the objects of some slabs, which should become empty. The
 * sparsest pay most: slabs with more free slots than the average of those that are neither full nor
 * empty. If many slabs are as full as the average, as many of them are chosen by their addresses as
 * there is room for. The choice changes when some slabs have become full: otherwise those that are
 * left would be those that are never chosen.
 *
 * Refills take from the fullest slabs, and among these from the one at the lowest address. So
 * objects that are allocated anew lie there, until less than a slab's worth of slots is free.
 */
#include <slabyard/reclaim.h>

#include "base/bits.h"
#include "cache/cache.h"
#include "cache/mixed.h"

/* The slab from which the next refill takes. */
static bool is_best(const sy_cache *cache, const sy_slab *slab) {
    uint32_t occupied = *(const volatile uint32_t *)&cache->bins.occupied;
    if (!occupied) return false;
    return cache->bins.heap[__builtin_ctz(occupied)] == &slab->node;
}

enum {
    CHOICES = 256,
    ROUND = 4, /* slabs that become full in a round */
    FEW = 8,   /* slabs, of which none might be chosen in a round */
};

/* A number below CHOICES for each slab, the same one for a round. */
static size_t choice_of(const sy_cache *cache, const sy_slab *slab) {
    uint32_t unit = (uint32_t)(slab->first >> SY_UNIT_SHIFT);
    uint32_t round = (uint32_t)(cache->bins.filled / ROUND);
    return (unit ^ round * UINT32_C(0x85ebca6b)) * UINT32_C(0x9e3779b1) >> 24;
}

__attribute__((no_sanitize("thread"))) static bool is_sparse(const sy_cache *cache,
                                                             const sy_slab *slab) {
    if (slab->bins != &cache->bins || slab->bin >= SY_BINS || is_best(cache, slab)) return false;
    size_t slots = cache->layout.slots, used = cache->slab_count - cache->bins.count[SY_BIN_EMPTY];
    size_t partial = used - cache->bins.count[SY_BIN_FULL];
    size_t free = used * slots - cache->out;
    if (free < slots) return false;
    size_t here = slab->free_count * partial * 8;
    if (here > free * 9) return true;
    if (partial <= FEW) return here >= free * 8;
    return here >= free * 7 && choice_of(cache, slab) * partial * slots < free * CHOICES;
}

bool sy_should_move(const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab && !sy_is_mixed(slab) ? sy_slab_owner(slab) : NULL;
    return cache && is_sparse(cache, slab);
}
