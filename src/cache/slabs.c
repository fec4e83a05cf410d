/*
 * slabs.c: makes a slab when a refill finds none with a free slot, links it into its cache, and
 * releases it. A slab is a run of units with tables beside them: bitmaps, records, ordinals.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/flag.h"
#include "cache/epoch.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/watched.h"
#include "chunk/huge.h"
#include "chunk/pressure.h"
#include "chunk/side.h"
#include "debug/callback.h"
#include "magazine/budget.h"
#include "os/invariant.h"
#include "os/os.h"

/* ---- the tables of a slab ---- */

static size_t bitmap_bytes(const sy_cache *cache) { return cache->layout.words * sizeof(uint64_t); }

static void give_bitmaps(const sy_cache *cache, sy_slab *slab) {
    if (slab->free && slab->free != slab->bits) sy_side_give(slab->free, bitmap_bytes(cache));
    if (slab->built) sy_side_give(slab->built, bitmap_bytes(cache));
}

static bool take_bitmaps(const sy_cache *cache, sy_slab *slab) {
    bool inside = cache->layout.words <= SY_SLAB_BITMAP_WORDS;
    slab->free = inside ? slab->bits : sy_side_take(bitmap_bytes(cache));
    slab->built = cache->construct && slab->free ? sy_side_take(bitmap_bytes(cache)) : NULL;
    if (slab->free && (slab->built || !cache->construct)) return true;
    give_bitmaps(cache, slab);
    return false;
}

/* A slab without records can still have edges, which are watched. */
static void begin_plain_slab(sy_cache *cache, sy_slab *slab) {
    if (cache->watch) sy_watched_begin_slab(cache, slab);
}

static void end_plain_slab(sy_cache *cache, sy_slab *slab) {
    if (cache->watch) sy_watched_end_slab(cache, slab);
}

const sy_slab_kind sy_slabs_plain = {
    .take_tables = take_bitmaps,
    .give_tables = give_bitmaps,
    .begin = begin_plain_slab,
    .end = end_plain_slab,
    .populate = sy_run_populate,
};

static void fill_slab(sy_cache *cache, sy_slab *slab, uint32_t colour) {
    const sy_layout *layout = &cache->layout;
    slab->first = slab->start + colour * layout->colour_step + layout->lead;
    slab->slots = slab->free_count = (uint16_t)layout->slots;
    for (uint32_t word = 0; word < layout->words; word++)
        slab->free[word] = sy_low_bits(layout->slots - word * 64);
    sy_slab_kind_of(cache)->begin(cache, slab);
}

/* With SY_LOCKED locks the slab's memory, with SY_NO_DUMP leaves it out of core dumps. 0, or -1: it
 * cannot be locked. */
static int protect_slab(const sy_cache *cache, const sy_slab *slab) {
    void *start = (void *)slab->start;
    if (cache->flags & SY_LOCKED && sy_os_lock(start, slab->bytes, true) != 0) return -1;
    if (cache->flags & SY_NO_DUMP) (void)sy_os_dump(start, slab->bytes, false);
    return 0;
}

/* Undoes protect_slab before the memory gets another owner. With SY_ZERO it also overwrites the
 * slots if some are out: objects that are live when their cache is destroyed were never freed. */
static void unprotect_slab(const sy_cache *cache, const sy_slab *slab) {
    void *start = (void *)slab->start;
    int error = errno;
    if (cache->flags & SY_ZERO && slab->free_count < slab->slots)
        memset((void *)slab->first, 0, slab->slots * cache->layout.slot - cache->layout.zone);
    if (cache->flags & SY_LOCKED) (void)sy_os_lock(start, slab->bytes, false);
    if (cache->flags & SY_NO_DUMP) (void)sy_os_dump(start, slab->bytes, true);
    errno = error;
}

static bool take_tables_and_protect(const sy_cache *cache, sy_slab *slab) {
    const sy_slab_kind *kind = sy_slab_kind_of(cache);
    if (!kind->take_tables(cache, slab)) return false;
    if (protect_slab(cache, slab) == 0) return true;
    kind->give_tables(cache, slab);
    return false;
}

/* ---- growth ---- */

enum {
    GROWTH_LEAST = 1 << 20, /* bytes of slabs made, */
    GROWTH_SHARE = 16,      /* or this part of all slabs, if that is more */
};

static _Atomic size_t grown; /* bytes of slabs made since sy_caches_grew was due last */
static sy_flag grew;

void sy_caches_note_growth(size_t bytes) {
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    sy_budget_note_memory(units * SY_UNIT_BYTES);
    size_t most = units * SY_UNIT_BYTES / GROWTH_SHARE;
    if (most < GROWTH_LEAST) most = GROWTH_LEAST;
    if (atomic_fetch_add_explicit(&grown, bytes, memory_order_relaxed) + bytes < most) return;
    atomic_store_explicit(&grown, 0, memory_order_relaxed);
    atomic_store_explicit(&grew, true, memory_order_relaxed);
    atomic_store_explicit(&sy_turn_wanted, true, memory_order_relaxed);
}

bool sy_caches_grew(void) {
    return atomic_load_explicit(&grew, memory_order_relaxed) &&
           atomic_exchange_explicit(&grew, false, memory_order_relaxed);
}

/* Huge pages are for caches of which at least so many bytes (sy_huge_least) are in slabs. Since
 * such a cache needs another slab, all of these are full. */
enum { DENSE_LEAST = 4 << 20 };

/* Whether the slabs of a cache can be expected to use all their pages: each page has the first byte
 * of an object. Slabs that are locked, or left out of core dumps, are mappings of their own, which
 * a huge page cannot span. */
static bool is_dense(sy_cache *cache) {
    const sy_layout *layout = &cache->layout;
    if (layout->slot > sy_os_page_size() || cache->flags & (SY_LOCKED | SY_NO_DUMP)) return false;
    sy_lock_acquire(&cache->lock);
    size_t bytes = cache->slab_count * layout->slab_bytes;
    sy_lock_release(&cache->lock);
    return bytes >= sy_huge_least(DENSE_LEAST);
}

/* ---- a slab comes and goes ---- */

bool sy_cache_add_slab(sy_cache *cache, sy_bins *bins) {
    const sy_layout *layout = &cache->layout;
    bool clean;
    sy_quota *refused;
    sy_slab *slab = sy_quota_take_run(cache->quota, cache->memory, layout->slab_bytes,
                                      layout->align, 0, &clean, &refused);
    sy_refuse_run(refused);
    if (!slab) return false;
    if (clean && slab->bytes > SY_UNIT_BYTES) sy_chunk_exchange(cache->memory, slab->bytes);
    if (sy_chunk_grows(cache->memory) && is_dense(cache)) sy_chunk_back_ahead(slab, clean);
    if (!take_tables_and_protect(cache, slab)) {
        unprotect_slab(cache, slab);
        sy_quota_give_run(cache->quota, slab);
        errno = ENOMEM;
        return false;
    }
    if (layout->slots > 1) sy_caches_note_growth(slab->bytes);
    if (cache->class_number && bins == &cache->bins)
        sy_map_set_class(slab->start, slab->bytes / SY_UNIT_BYTES, cache->class_number);
    if (sy_cache_has_view(cache, bins))
        sy_view_hold(sy_view_of(bins)); /* before the slab is in the view */
    sy_lock_acquire(&cache->lock);
    fill_slab(cache, slab, cache->next_colour);
    const uint32_t colour = cache->next_colour + 1; /* one store: a fork may come between two */
    cache->next_colour = colour == layout->colours ? 0 : colour;
    slab->owner = cache;
    sy_cache_append_slab(cache, slab);
    cache->slab_count++;
    cache->counts.slabs_made++;
    sy_bins_insert(bins, slab);
    SY_INVARIANT(sy_slab_is_valid(slab, layout));
    sy_lock_release(&cache->lock);
    return true;
}

void sy_cache_append_slab(sy_cache *cache, sy_slab *slab) {
    slab->next = NULL;
    slab->previous = cache->last_slab;
    if (cache->last_slab)
        cache->last_slab->next = slab;
    else
        cache->slabs = slab;
    cache->last_slab = slab;
}

void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab) {
    if (slab->previous)
        slab->previous->next = slab->next;
    else
        cache->slabs = slab->next;
    if (slab->next)
        slab->next->previous = slab->previous;
    else
        cache->last_slab = slab->previous;
}

void sy_cache_unlink_slab(sy_cache *cache, sy_slab *slab) {
    sy_bins_remove(slab->bins, slab);
    slab->bin = SY_BIN_GONE;
    sy_cache_remove_slab(cache, slab);
    cache->slab_count--;
    cache->counts.slabs_released++;
}

sy_slab *sy_cache_unlink_empty(sy_cache *cache, sy_bins *bins, size_t keep) {
    if (bins->count[SY_BIN_EMPTY] <= keep) return NULL;
    sy_slab *slab = sy_slab_of_node(bins->heap[SY_BIN_EMPTY]);
    sy_cache_unlink_slab(cache, slab);
    return slab;
}

sy_slab *sy_cache_unlink_any_empty(sy_cache *cache, size_t keep) {
    sy_slab *slab = sy_cache_unlink_empty(cache, &cache->bins, keep);
    sy_bins *apart = atomic_load_explicit(&cache->apart, memory_order_acquire);
    return slab || !apart ? slab : sy_cache_unlink_empty(cache, apart, 0);
}

void sy_cache_destruct(sy_cache *cache, const sy_slab *slab, const uint64_t *slots) {
    size_t count = 0;
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    for (uint32_t word = 0; word < cache->layout.words; word++)
        for (uint64_t left = slots[word]; left; left &= left - 1, count++)
            if (cache->destruct)
                cache->destruct(
                    (void *)(slab->first + (word * 64 + sy_lowest_bit(left)) * cache->layout.slot),
                    cache->arg);
    call.returned = true;
    sy_lock_acquire(&cache->lock);
    cache->counts.destructed += count;
    sy_lock_release(&cache->lock);
}

void sy_cache_release_slab(sy_cache *cache, sy_slab *slab) {
    if (slab->built) sy_cache_destruct(cache, slab, slab->built);
    sy_slab_kind_of(cache)->end(cache, slab);
    if (cache->class_number) sy_map_set_class(slab->start, slab->bytes / SY_UNIT_BYTES, 0);
    unprotect_slab(cache, slab);
    sy_slab_kind_of(cache)->give_tables(cache, slab);
    sy_bins *bins = slab->bins;
    slab->first = 0; /* the run is neither a slab nor a span of the heap now */
    __atomic_store_n(&slab->owner, NULL, __ATOMIC_RELEASE);
    if (slab->holes) sy_pressure_note(sy_count_bits(slab->holes) * sy_slab_granule(slab));
    sy_quota_give_run(cache->quota, slab);
    if (sy_cache_has_view(cache, bins)) sy_view_let_go(sy_view_of(bins));
}

bool sy_cache_release_empty(sy_cache *cache) {
    for (bool any = false;; any = true) {
        sy_lock_acquire(&cache->lock);
        sy_slab *slab = sy_cache_unlink_any_empty(cache, cache->empties_max);
        sy_lock_release(&cache->lock);
        if (!slab) return any;
        sy_cache_release_slab(cache, slab);
    }
}
