/*
 * slab.h: the bitmap of a slab, and bins, which order the slabs of a cache for refills.
 *
 * A set bit means that the slot is in the slab. A clear bit means that the slot is out: its object
 * is live or in a magazine. Nothing is written into or beside the slots.
 *
 * Slabs that are neither full nor empty wait in bins by how many slots are free. A refill takes
 * from the bin of the fullest slabs, and in it from the slab at the lowest address. So sparse and
 * high slabs become empty with time. A slab is moved only when its free count leaves the range of
 * its bin.
 *
 * All of this happens under the cache's lock. Below: chunk/. Above: the rest of cache/.
 */
#ifndef SY_CACHE_SLAB_H
#define SY_CACHE_SLAB_H

#include "cache/layout.h"
#include "chunk/chunk.h"

typedef struct sy_bins sy_bins;

enum {
    SY_BINS = 8,
    SY_BIN_EMPTY = SY_BINS, /* all slots are free */
    SY_BIN_FULL,            /* no slot is free: the slab is in no heap */
    SY_BIN_NONE,            /* the slab is set aside: not in the bins */
    SY_BIN_GONE,            /* the slab is not in its cache any more: it is being released */
};

struct sy_bins {
    sy_heap_node *heap[SY_BINS + 1]; /* the last: empty slabs */
    uint32_t occupied;               /* bit set: that heap has a slab */
    size_t count[SY_BINS + 2];       /* of slabs in each, full ones included */
    uint64_t filled, opened, reused; /* slabs that became full, ceased to be full, or to be empty */
    sy_bins *counted;                /* the bins whose three counters count; NULL: these */
};

/*
 * Whether the slab that sy_slab_at found belongs to the cache, whose lock is held. If it does, its
 * bitmap may be read. An unlinked slab is released without the lock; meanwhile its descriptor may
 * come to describe another slab. The owner is cleared before that, so it is read once more. (The
 * loads are not atomic ones: ThreadSanitizer reports those even in functions that it leaves out.)
 */
__attribute__((no_sanitize("thread"))) static inline bool sy_slab_is_in(const sy_slab *slab,
                                                                        const void *cache) {
    if (!slab || *(void *const volatile *)&slab->owner != cache) return false;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool gone = *(const volatile uint8_t *)&slab->bin == SY_BIN_GONE;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !gone && *(void *const volatile *)&slab->owner == cache;
}

/* The slab to take from next, or NULL when none has a free slot. */
sy_slab *sy_bins_best(const sy_bins *bins);

/* Put a slab in the bins; move it to the bin for its new free count; take it out of the bins. */
void sy_bins_insert(sy_bins *bins, sy_slab *slab);
void sy_bins_move(sy_bins *bins, sy_slab *slab);
void sy_bins_remove(sy_bins *bins, sy_slab *slab);

/* Takes a slab out of the bins while its memory is being changed without the lock. Meanwhile no
 * slot is taken from it, it is not released, and objects freed to it do not move it.
 * sy_bins_insert ends this. */
void sy_bins_set_aside(sy_bins *bins, sy_slab *slab);

static inline void sy_bins_update(sy_bins *bins, sy_slab *slab) {
    if (slab->free_count < slab->free_least || slab->free_count > slab->free_most)
        sy_bins_move(bins, slab);
}

/*
 * Takes `count` of the slab's free slots (it has as many), lowest first, and writes their addresses
 * downward from `end`: end[-1] is the lowest.
 */
void sy_slab_take(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count);

/* Takes slots in random order, with `random` as the state of the generator. */
void sy_slab_take_random(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count,
                         uint64_t *random);

/* Index of the slot that begins at `address`, or UINT32_MAX: none does. */
static inline uint32_t sy_slab_index(const sy_slab *slab, const sy_layout *layout,
                                     uintptr_t address) {
    uint64_t offset = address - slab->first;
    if (offset >= (uint64_t)layout->slots * layout->slot) return UINT32_MAX;
    if (layout->slots == 1) return offset == 0 ? 0 : UINT32_MAX;
    uint32_t index = (uint32_t)(offset * layout->reciprocal >> 32);
    return index * layout->slot == offset ? index : UINT32_MAX;
}

static inline bool sy_slab_bit(const uint64_t *bitmap, uint32_t index) {
    return bitmap[index / 64] >> index % 64 & 1;
}

/* The bytes of a granule: the part of a slab that one bit of `holes` stands for and that is
 * discarded as a whole. At least a page. */
size_t sy_slab_granule(const sy_slab *slab);

/* The granules, except those in `kept`, in which each slot is free and which may hold memory: a bit
 * each, as in holes; 0: none. `slots`, if it is not NULL, gets a bit for each slot in them. */
uint64_t sy_slab_unused(const sy_slab *slab, const sy_layout *layout, uint64_t kept,
                        uint64_t *slots);

/* Whether the free count agrees with the bitmap, no slot before `first_word` or behind the last
 * slot is free, and the slab is in the bin for its free count. The cache's lock is held. */
bool sy_slab_is_valid(const sy_slab *slab, const sy_layout *layout);

/* Violations of the slab's invariants, 0 when sound. */
size_t sy_slab_verify(const sy_slab *slab, const sy_layout *layout);

#endif
