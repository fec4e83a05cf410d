/*
 * hint.c: sy_should_move and sy_try_move, for programs that can change all pointers to an object.
 * The answer takes no lock: other threads change what it reads, so it is a guess, which is right
 * while they change little.
 *
 * The free slots of a cache have room for the objects of some slabs, which should become empty: the
 * sparsest, by their bins. In the last bin of which slabs are needed, as many are chosen by their
 * addresses as there is room for. The choice changes when a part of them has become full: otherwise
 * those that are left would be those that are never chosen.
 *
 * Refills take from the fullest slabs, and among these from the one at the lowest address. So
 * objects that are allocated anew lie there, until less than a slab's worth of slots is free.
 */
#include <errno.h>

#include <slabyard/reclaim.h>

#include "base/bits.h"
#include "cache/cache.h"
#include "cache/kind.h"
#include "cache/mixed.h"

/* Reads what other threads change under the cache's lock. */
#define GUESSES __attribute__((no_sanitize("thread")))

/* The slab from which the next refill takes. */
GUESSES static bool is_best(const sy_cache *cache, const sy_slab *slab) {
    uint32_t occupied = *(const volatile uint32_t *)&cache->bins.occupied;
    if (!occupied) return false;
    return cache->bins.heap[__builtin_ctz(occupied)] == &slab->node;
}

enum {
    CHOICES = 1 << 16,
    FEW = 16,   /* slabs that are chosen at least, so that it is never none */
    ROUNDS = 8, /* slabs of a bin, for each that becomes full in a round */
};

/* Whether the slab is one of some `chosen` of its bin, by a number that stays for a round. */
GUESSES static bool is_chosen(const sy_cache *cache, const sy_slab *slab, unsigned bin,
                              size_t chosen) {
    size_t count = cache->bins.count[bin];
    uint32_t unit = (uint32_t)(slab->first >> SY_UNIT_SHIFT);
    uint32_t round = (uint32_t)(cache->bins.filled >> sy_highest_bit(count / ROUNDS | 1));
    uint32_t number = (unit ^ round * UINT32_C(0x85ebca6b)) * UINT32_C(0x9e3779b1) >> 16;
    return number * count < (chosen > FEW ? chosen : FEW) * CHOICES;
}

GUESSES static bool is_sparse(const sy_cache *cache, const sy_slab *slab) {
    unsigned bin = *(const volatile uint8_t *)&slab->bin;
    if (slab->bins != &cache->bins || bin >= SY_BINS || is_best(cache, slab)) return false;
    size_t slots = cache->layout.slots, used = cache->slab_count - cache->bins.count[SY_BIN_EMPTY];
    size_t can_empty = (used * slots - cache->out) / slots, sparser = 0;
    for (unsigned i = bin + 1; i < SY_BINS; i++) sparser += cache->bins.count[i];
    return sparser < can_empty && is_chosen(cache, slab, bin, can_empty - sparser);
}

/* The cache of an object that should move, or NULL. */
static sy_cache *cache_to_move_in(const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    sy_cache *cache = slab && !sy_is_mixed(slab) ? sy_slab_owner(slab) : NULL;
    return cache && is_sparse(cache, slab) ? cache : NULL;
}

bool sy_should_move(const void *object) { return cache_to_move_in(object); }

void *sy_try_move(void *object) {
    sy_cache *cache = cache_to_move_in(object);
    bool plain = cache && cache->kind == &sy_kind_plain && !cache->construct;
    if (!plain) return NULL;
    int error = errno;
    void *moved = sy_cache_move(cache, object);
    sy_turn();
    errno = error;
    return moved;
}
