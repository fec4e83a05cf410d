/*
 * trim.c: gives memory back to the OS in bounded steps, for sy_cache_trim and for passes. Empty
 * slabs go back to the chunks. In other slabs, pages whose slots are all free are discarded.
 */
#include "base/fork.h"
#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/epoch.h"
#include "cache/movable.h"
#include "cache/watched.h"
#include "debug/tools.h"
#include "os/os.h"

enum {
    STEP_EMPTIES = 4, /* the most slabs that one step releases, */
    STEP_SLABS = 64,  /* and the most that it looks at */
};

/* Sets *left to how many slabs there are to look at. A trim that is not by age ends a reserve. The
 * lock is held. */
static void begin_trim_of_cache(sy_cache *cache, size_t *left, bool aged) {
    SY_HOLDS(&cache->lock);
    uint64_t exchanges = cache->counts.refills + cache->counts.flushes;
    *left = cache->slab_count;
    if (!aged) {
        cache->empties_max = 0;
        atomic_store(&cache->promise, 0);
        return;
    }
    cache->idle = exchanges == cache->seen;
    cache->seen = exchanges;
}

/* By age all empty slabs are released if the cache was idle and has no reserve, else none: flushes
 * release the surplus of a cache in use. */
bool sy_cache_release_step(sy_cache *cache, size_t *left, bool aged) {
    for (int i = 0; i < STEP_EMPTIES; i++) {
        sy_lock_acquire(&cache->lock);
        if (*left == SIZE_MAX) begin_trim_of_cache(cache, left, aged);
        bool may = !aged || (cache->idle && !cache->empties_max);
        sy_slab *slab = may ? sy_cache_unlink_any_empty(cache, 0) : NULL;
        sy_lock_release(&cache->lock);
        if (!slab) return false;
        sy_cache_release_slab(cache, slab);
    }
    return true;
}

/* A slab that a step works on. No slab has more slots than one of 8-byte slots, which has one unit
 * (8,192 slots): slabs of several units have larger slots. This sizes `slots`. */
typedef struct sy_claim {
    sy_slab *slab;
    bool aged;                                        /* a pass by age works */
    uint64_t granules;                                /* 0: the slab is empty, and to be released */
    uint64_t slots[SY_UNIT_BYTES / SY_SLOT_MIN / 64]; /* in these granules, to be destructed */
} sy_claim;

/* The slabs that this thread has set aside in its trims. */
static SY_TLS sy_own own_slabs_aside;

bool sy_cache_is_aside(const sy_slab *slab) { return sy_own_times(&own_slabs_aside, slab); }

/* Whether pages of slabs that are in use can go back to the system. */
static bool discards(const sy_cache *cache) {
    if (cache->flags & SY_LOCKED && !sy_os_has(SY_OS_LOCKED_RETURNS)) return false;
    return sy_memory_discards(cache->memory);
}

/* Sets the granules of the claim, and their slots: all granules in which no slot is used or, by
 * age, only those that the last pass found so too. The others are marked, for the next pass. The
 * lock is held, and a step looks at many slabs. So slots are found only in claimed granules. */
static void claim_granules(sy_cache *cache, bool aged, sy_claim *claim) {
    SY_HOLDS(&cache->lock);
    sy_slab *slab = claim->slab;
    uint64_t kept = cache->watch ? sy_watched_edges(cache, slab) : 0;
    uint64_t unused = sy_slab_unused(slab, &cache->layout, kept, NULL);
    claim->granules = aged ? unused & slab->idle : unused;
    uint64_t returned = aged && !sy_early_ends() ? slab->holes & slab->idle : 0;
    slab->idle = (unused & ~claim->granules) | returned;
    if (claim->granules) sy_slab_unused(slab, &cache->layout, ~claim->granules, claim->slots);
}

/* Whether memory of the slab can be given back. Then the slab is set aside or, if it is an empty
 * slab of a view, unlinked. Its slots keep their free bits, so a second free is noticed. The lock
 * is held. */
static bool claim_slab(sy_cache *cache, sy_slab *slab, bool aged, sy_claim *claim) {
    SY_HOLDS(&cache->lock);
    bool of_view = sy_cache_has_view(cache, slab->bins), idle = slab->idle != 0;
    if (slab->bin > SY_BIN_EMPTY || (slab->bin == SY_BIN_EMPTY && !of_view)) return false;
    claim->slab = slab;
    claim->aged = aged;
    claim->granules = 0;
    if (slab->bin == SY_BIN_EMPTY) {
        slab->idle = ~UINT64_C(0);
        if (aged && !idle) return false;
        sy_cache_unlink_slab(cache, slab);
        return true;
    }
    if (!discards(cache)) return false;
    claim_granules(cache, aged, claim);
    if (!claim->granules) return false;
    for (uint32_t word = 0; slab->built && word < cache->layout.words; word++) {
        claim->slots[word] &= slab->built[word];
        slab->built[word] &= ~claim->slots[word];
    }
    sy_own_replace(&own_slabs_aside, NULL, slab);
    sy_bins_set_aside(slab->bins, slab);
    return true;
}

/* Looks at the next few slabs, and claims the first whose memory can be given back; false: none of
 * them has any. Empty slabs of epochs are claimed here; the cache's own empty slabs were released
 * by sy_cache_release_step. The lock is held. */
static bool claim_next(sy_cache *cache, size_t *left, bool aged, sy_claim *claim) {
    SY_HOLDS(&cache->lock);
    for (int looked = 0; looked < STEP_SLABS && *left && cache->slabs; looked++) {
        sy_slab *slab = cache->slabs;
        sy_cache_remove_slab(cache, slab);
        sy_cache_append_slab(cache, slab);
        --*left;
        if (claim_slab(cache, slab, aged, claim)) return true;
    }
    return false;
}

/* The program's function for it may write to the memory, which is hidden under a tool. */
static bool discard_part(const sy_cache *cache, const sy_slab *slab, char *start, size_t bytes) {
    if (cache->flags & SY_TOLD) sy_tool_lend(start, bytes);
    bool discarded = sy_run_discard(slab, start, bytes) == 0;
    if (cache->flags & SY_TOLD) sy_tool_take_back(start, bytes);
    return discarded;
}

/* Discards the claimed granules, by one system call for each run of them; returns those that were
 * discarded. */
static uint64_t discard_granules(const sy_cache *cache, const sy_claim *claim, size_t *bytes) {
    size_t granule = sy_slab_granule(claim->slab);
    uint64_t done = 0;
    for (unsigned first = 0; first < 64;) {
        if (!(claim->granules >> first & 1)) {
            first++;
            continue;
        }
        unsigned end = first;
        while (end < 64 && claim->granules >> end & 1) end++;
        if (discard_part(cache, claim->slab, (char *)claim->slab->start + first * granule,
                         (end - first) * granule)) {
            *bytes += (end - first) * granule;
            for (unsigned i = first; i < end; i++) done |= UINT64_C(1) << i;
        }
        first = end;
    }
    return done;
}

/* Discards the claimed granules. Returns whether the slab is to be released now: it belongs to a
 * view, and its last object was freed while it was set aside, so the flush did not release it. The
 * lock is not held. */
static bool give_granules(sy_cache *cache, const sy_claim *claim, size_t *bytes) {
    sy_slab *slab = claim->slab;
    if (slab->built) sy_cache_destruct(cache, slab, claim->slots);
    if (cache->watch) sy_watched_forget(cache, slab, claim->slots);
    uint64_t holes = discard_granules(cache, claim, bytes);
    sy_chunk_punched(slab);
    sy_lock_acquire(&cache->lock);
    slab->holes |= holes;
    if (claim->aged) slab->idle |= holes; /* a use soon was too early (chunk.h) */
    sy_own_replace(&own_slabs_aside, slab, NULL);
    sy_bins_remove(slab->bins, slab); /* a child's recovery has inserted it, if it was not noted */
    sy_bins_insert(slab->bins, slab);
    bool emptied = slab->bin == SY_BIN_EMPTY && sy_cache_has_view(cache, slab->bins);
    if (emptied) sy_cache_unlink_slab(cache, slab);
    sy_lock_release(&cache->lock);
    return emptied;
}

/* Whether giving memory back may call the program's functions: destructors, or a handler of faults
 * if watched objects turn out to be corrupt. */
static bool calls_program(const sy_cache *cache) { return cache->destruct || cache->watch; }

/* Gives back the claimed memory. The lock is held before and after the call, not in between. If the
 * work calls no function of the program, allocating threads that find no room wait for it. */
static void give_back(sy_cache *cache, const sy_claim *claim, size_t *bytes) {
    SY_HOLDS(&cache->lock);
    bool awaited = !calls_program(cache);
    if (awaited) sy_memory_begin_trim(cache->memory);
    sy_lock_release(&cache->lock);
    if (!claim->granules || give_granules(cache, claim, bytes))
        sy_cache_release_slab(cache, claim->slab);
    if (awaited) sy_memory_end_trim(cache->memory);
    sy_lock_acquire(&cache->lock);
}

static bool punch_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes) {
    sy_claim claim;
    sy_lock_acquire(&cache->lock);
    bool may = discards(cache) || cache->flags & SY_EPOCHS;
    if (!may || (aged && (cache->empties_max || cache->trims))) *left = 0;
    if (claim_next(cache, left, aged, &claim)) give_back(cache, &claim, bytes);
    bool more = *left && cache->slabs;
    sy_lock_release(&cache->lock);
    return more;
}

bool sy_cache_trim_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes) {
    return sy_cache_release_step(cache, left, aged) || punch_step(cache, left, aged, bytes);
}

static void count_trim(sy_cache *cache, int more) {
    sy_lock_acquire(&cache->lock);
    /* In the child of a fork the count was reset to 0 while this trim was at work. */
    if (more > 0 || cache->trims) cache->trims += (unsigned)more;
    sy_lock_release(&cache->lock);
}

size_t sy_cache_trim_slabs(sy_cache *cache) {
    size_t bytes = 0, left = SIZE_MAX;
    sy_watched_drain(cache); /* the program wants its memory back */
    sy_client_drain(&cache->client);
    count_trim(cache, 1);
    bytes += sy_cache_compact_all(cache);
    while (sy_cache_trim_step(cache, &left, false, &bytes)) {}
    while (sy_cache_release_step(cache, &left, false)) {}
    count_trim(cache, -1);
    return bytes;
}

size_t sy_cache_trim_rest(sy_memory *memory, bool handles) {
    size_t bytes = handles ? sy_directory_trim() : 0;
    sy_memory_hold(memory); /* the trim may call the program, which may destroy the cache */
    bytes += sy_chunk_trim(memory);
    sy_memory_let_go(memory);
    return bytes + sy_magazine_trim();
}

size_t sy_cache_trim(sy_cache *cache) {
    if (!sy_client_pin(&cache->client)) return 0;
    size_t bytes = sy_cache_trim_slabs(cache);
    bytes += sy_cache_trim_rest(cache->memory, cache->flags & SY_HANDLES);
    sy_client_unpin(&cache->client);
    return bytes;
}
