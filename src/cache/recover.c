/*
 * recover.c: caches around a fork. The parent holds the lock of each cache during the fork. The
 * child repairs caches that another thread of the parent was changing.
 */
#include "base/bits.h"
#include "cache/blocks.h"
#include "cache/epoch.h"
#include "cache/guarded.h"

/* ---- fork: the lock of each cache, by rising client number ---- */

static void hold_caches(void) {
    sy_client *client;
    if (!sy_threads_are_held()) return;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number) {
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) sy_lock_hold(&cache->lock);
    }
}

static void drop(sy_cache *cache) {
    if (sy_lock_drop(&cache->lock)) cache->torn = true;
}

static void drop_caches(void) {
    sy_client *client;
    if (!sy_threads_are_held()) return;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number) {
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) drop(cache);
    }
}

/* ---- rebuilding a cache ---- */

/* Computes the slab's free count and watermark from its bitmap. */
static void count_again(sy_slab *slab, const sy_layout *layout) {
    uint32_t count = 0, last = 0;
    for (uint32_t word = 0; word < layout->words; word++) {
        uint64_t slots = sy_low_bits(layout->slots - word * 64), out = slots & ~slab->free[word];
        slab->free[word] &= slots;
        count += sy_count_bits(slab->free[word]);
        if (out) last = word * 64 + sy_highest_bit(out) + 1;
    }
    slab->free_count = (uint16_t)count;
    slab->first_word = 0;
    if (last > slab->watermark) slab->watermark = (uint16_t)last;
}

/* Whether the run is a slab of the cache. A slab that was being made is none: it has no slots. A
 * slab that was being released is none: if this thread was releasing it, it goes on with that. */
static bool is_of(const sy_slab *run, const sy_cache *cache) {
    return run->owner == cache && run->slots == cache->layout.slots && run->free && run->bins &&
           run->bin != SY_BIN_GONE;
}

static void empty_bins(sy_bins *bins) {
    *bins = (sy_bins){.filled = bins->filled,
                      .opened = bins->opened,
                      .reused = bins->reused,
                      .counted = bins->counted};
}

static void empty_view(sy_view *view) {
    empty_bins(&view->bins);
    view->out = 0;
}

static void add_again(sy_slab *run, void *arg) {
    sy_cache *cache = arg;
    if (!is_of(run, cache)) return;
    count_again(run, &cache->layout);
    size_t out = run->slots - run->free_count;
    if (!sy_cache_is_aside(run)) sy_bins_insert(run->bins, run);
    sy_cache_append_slab(cache, run);
    cache->slab_count++;
    cache->out += out;
    if (sy_cache_has_view(cache, run->bins)) sy_view_of(run->bins)->out += out;
}

/*
 * Another thread may have changed half of the cache's lists and counts. They are built again from
 * the slabs. Slots that the thread was taking out of the slabs or putting back, at most as many as
 * fill a magazine, may stay out permanently.
 */
static void make_anew(sy_cache *cache) {
    cache->torn = false;
    cache->slabs = cache->last_slab = NULL;
    cache->slab_count = cache->out = 0;
    atomic_store(&cache->moving, 0);
    empty_bins(&cache->bins);
    sy_bins *apart = atomic_load(&cache->apart);
    if (apart) empty_bins(apart);
    sy_epochs_each_view(cache, empty_view);
    sy_run_each(cache->memory, add_again, cache);
}

static void recover(sy_cache *cache) {
    bool torn = cache->torn;
    if (torn) make_anew(cache);
    sy_blocks_recover(cache, torn);
    cache->trims = 0;
    atomic_store(&cache->tries, NULL); /* unlist_call of the forking thread finds the list empty */
    if (sy_cache_guards(cache))
        cache->guarded = sy_guard_live(cache->watch) + sy_guarded_own(cache);
}

/* Whether another thread was opening this cache of a size class. Classes are opened under the lock
 * of the start, and recovery waits until this thread does not hold that lock. */
static bool is_half_open(const sy_cache *cache) {
    return cache->class_number && !sy_cache_is_open(cache);
}

static void recover_caches(void) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number) {
        sy_cache *cache = sy_cache_of_client(client);
        if (cache && is_half_open(cache))
            sy_client_forget(client);
        else if (cache)
            recover(cache);
    }
}

const sy_part sy_caches_part = {
    .hold = hold_caches, .drop = drop_caches, .recover = recover_caches};
