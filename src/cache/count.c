/*
 * count.c: statistics of one cache and of the process; sy_cache_verify, which checks the invariants
 * of a cache; and sy_cache_each. All of them walk the slabs of a cache under its lock.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/sized.h"
#include "cache/blocks.h"
#include "cache/guarded.h"
#include "cache/mixed.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "os/facts.h"
#include "os/os.h"

/* Objects in quarantine; the lock is held. */
static size_t in_quarantine(const sy_cache *cache) {
    SY_HOLDS(&cache->lock);
    return cache->watch ? cache->watch->waiting_count : 0;
}

size_t sy_cache_in_use(const sy_cache *cache_) {
    sy_cache *cache = (sy_cache *)(uintptr_t)cache_; /* not const: its lock is taken */
    size_t depot, loaded;
    sy_clients_lock(); /* under both locks items that a pass moves are counted once */
    sy_lock_acquire(&cache->lock);
    size_t out = sy_cache_out(cache) + sy_mixed_objects(cache) - in_quarantine(cache),
           elsewhere = cache->guarded + cache->passed;
    sy_client_held(&cache->client, &depot, &loaded);
    sy_lock_release(&cache->lock);
    sy_clients_unlock();
    size_t retired = atomic_load_explicit(&cache->retired, memory_order_relaxed);
    size_t free = depot + loaded + retired;
    return elsewhere + (out > free ? out - free : 0);
}

static void count_slabs(const sy_cache *cache, sy_cache_stats *stats) {
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        stats->mapped += slab->bytes;
        stats->empty += slab->bin == SY_BIN_EMPTY;
        stats->full += slab->bin == SY_BIN_FULL;
        stats->discarded += sy_count_bits(slab->holes) * sy_slab_granule(slab);
        stats->never_used += (slab->slots - slab->watermark) * cache->layout.slot;
    }
}

static void fill_cache_stats(const void *cache_, void *stats_) {
    sy_cache *cache = (sy_cache *)(uintptr_t)cache_;
    sy_cache_stats *stats = stats_;
    const sy_layout *layout = &cache->layout;
    *stats = (sy_cache_stats){
        .object_size = cache->size,
        .slot_size = layout->slot,
        .align = layout->align,
        .slab_bytes = layout->slab_bytes,
        .slots_per_slab = layout->slots,
        .colours = layout->colours,
        .magazine_items = (unsigned)cache->client.config.magazine_items,
        .limit = cache->limit == SIZE_MAX ? 0 : cache->limit,
    };
    memcpy(stats->name, cache->name, sizeof stats->name);

    sy_clients_lock();
    sy_lock_acquire(&cache->lock);
    size_t out = sy_cache_out(cache), mixed = sy_mixed_objects(cache), passed = cache->passed;
    sy_client_held(&cache->client, &stats->in_depot, &stats->in_loaded);
    sy_clients_unlock();
    stats->in_quarantine = in_quarantine(cache);
    stats->guarded = cache->guarded;
    stats->slabs = cache->slab_count;
    stats->refills = cache->counts.refills;
    stats->flushes = cache->counts.flushes;
    stats->slabs_made = cache->counts.slabs_made;
    stats->slabs_released = cache->counts.slabs_released;
    stats->slabs_filled = cache->bins.filled;
    stats->slabs_opened = cache->bins.opened;
    stats->slabs_reused = cache->bins.reused;
    stats->moves = cache->counts.moves;
    stats->moves_put_off = cache->counts.moves_put_off;
    stats->move_bytes = cache->counts.move_bytes;
    stats->constructed = cache->counts.constructed;
    stats->destructed = cache->counts.destructed;
    count_slabs(cache, stats);
    sy_lock_release(&cache->lock);

    stats->partial = stats->slabs - stats->empty - stats->full;
    stats->slots = stats->slabs * layout->slots + mixed;
    stats->mapped += mixed * layout->slot;
    stats->free = stats->slots - out - mixed;
    stats->tail = stats->mapped - stats->slots * layout->slot;
    stats->waste = stats->tail + stats->slots * (layout->slot - cache->size);
    stats->retired = atomic_load_explicit(&cache->retired, memory_order_relaxed);
    size_t waiting = stats->in_depot + stats->in_loaded + stats->in_quarantine + stats->retired;
    stats->in_use = stats->guarded + passed + (out + mixed > waiting ? out + mixed - waiting : 0);
    sy_client_counts counts = sy_client_count(&cache->client);
    stats->depot_hits = counts.depot_hits;
    stats->depot_misses = counts.depot_misses;
    stats->depot_steals = counts.depot_steals;
    stats->limits_hit = atomic_load_explicit(&cache->limits_hit, memory_order_relaxed);
}

int sy_cache_get_stats_sized(const sy_cache *cache, sy_cache_stats *stats, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_cache_stats, limits_hit, fill_cache_stats);
    return sy_sized_fill(&sized, cache, stats, size);
}

/* With one slot a slab the slabs are added up: a span kept for reuse may be longer than the object
 * needs. */
size_t sy_cache_slab_bytes(sy_cache *cache) {
    size_t bytes = 0;
    sy_lock_acquire(&cache->lock);
    if (cache->layout.slots > 1)
        bytes = cache->slab_count * cache->layout.slab_bytes;
    else
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) bytes += slab->bytes;
    sy_lock_release(&cache->lock);
    return bytes;
}

void sy_cache_weigh(sy_cache *cache, size_t *idle, size_t *discarded) {
    size_t bytes = 0;
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        bytes += slab->bytes;
        *discarded += sy_count_bits(slab->holes) * sy_slab_granule(slab);
    }
    size_t out = cache->out * cache->layout.slot;
    *idle += bytes > out ? bytes - out : 0;
    sy_lock_release(&cache->lock);
}

static void fill_stats(const void *process, void *stats_) {
    (void)process;
    sy_stats *stats = stats_;
    *stats = (sy_stats){0};
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        stats->caches += cache != NULL;
        if (cache) stats->slabs += sy_cache_slab_bytes(cache);
        sy_client_unpin(client);
    }
    stats->slabs += sy_mixed_count().all;
    sy_chunk_stats chunks = sy_chunk_count();
    stats->chunks = chunks.chunks;
    stats->mapped = chunks.chunks * SY_CHUNK_BYTES + chunks.large_bytes + chunks.large_kept;
    stats->chunk_headers = chunks.chunks * SY_UNIT_BYTES;
    stats->units_free = chunks.units_free * SY_UNIT_BYTES + chunks.large_kept;
    stats->units_clean = chunks.units_clean * SY_UNIT_BYTES;
    size_t known = stats->slabs + stats->units_free + stats->chunk_headers;
    stats->spans = stats->mapped > known ? stats->mapped - known : 0;
    stats->magazines = sy_magazine_bytes();
    sy_vmem_stats arena;
    sy_vmem_get_stats(sy_memory_main.arena, &arena);
    stats->side = sy_side_bytes() + arena.bytes;
    stats->limits_hit = atomic_load_explicit(&sy_quota_process.hits, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&sy_facts_now.memory_limit, memory_order_relaxed);
    stats->memory_limit = limit == SIZE_MAX ? 0 : limit;
    uint32_t cpus = atomic_load_explicit(&sy_facts_now.cpus, memory_order_relaxed);
    stats->cpus = cpus ? cpus : atomic_load_explicit(&sy_facts_now.affinity, memory_order_relaxed);
}

int sy_get_stats_sized(sy_stats *stats, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_stats, limits_hit, fill_stats);
    return sy_sized_fill(&sized, &sy_quota_process, stats, size);
}

/* Counts slots that are free by the bitmap, but taken, live or being freed by the record. The lock
 * is held. */
static size_t verify_records(const sy_cache *cache, const sy_slab *slab) {
    size_t wrong = 0;
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++) {
        sy_object_state state = sy_record_state(&sy_watched_records(cache, slab)[index]);
        bool free = state == SY_OBJECT_FREE || state == SY_OBJECT_FRESH;
        wrong += sy_slab_bit(slab->free, index) && !free;
    }
    return wrong;
}

size_t sy_cache_verify(sy_cache *cache) {
    size_t wrong = 0, slabs = 0, free_slots = 0, in_bin[SY_BIN_NONE] = {0};
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        wrong += sy_slab_verify(slab, &cache->layout) + verify_records(cache, slab);
        wrong += slab->owner != cache || sy_slab_at(slab->first) != slab;
        wrong += slab->next && slab->next->previous != slab;
        if (slab->bin < SY_BIN_NONE && slab->bins == &cache->bins) in_bin[slab->bin]++;
        free_slots += slab->free_count;
        slabs++;
    }
    wrong += slabs != cache->slab_count;
    wrong += sy_blocks_verify(cache);
    wrong += free_slots + cache->out != slabs * cache->layout.slots;
    wrong += sy_cache_left(cache) > cache->limit;
    wrong += sy_cache_guards(cache) && sy_guard_live(cache->watch) > cache->guarded;
    for (unsigned bin = 0; bin < SY_BIN_NONE; bin++) {
        wrong += in_bin[bin] != cache->bins.count[bin];
        if (bin < SY_BIN_FULL) wrong += (in_bin[bin] > 0) != (cache->bins.occupied >> bin & 1);
    }
    sy_lock_release(&cache->lock);
    return wrong;
}

/* ---- every cache ---- */

static sy_cache_kind kind_of(const sy_cache *cache) {
    if (cache->client.number < SY_CLIENT_DEMANDED) return SY_CACHE_OF_SIZES;
    bool process = !cache->quota || cache->quota == &sy_quota_process;
    return process ? SY_CACHE_OF_PROGRAM : SY_CACHE_OF_HEAP;
}

bool sy_cache_take_account(const sy_client *client, sy_cache_account *account) {
    const sy_cache *cache = sy_cache_of_client(client);
    if (!cache) return false;
    account->cache = cache;
    account->kind = kind_of(cache);
    return sy_cache_get_stats(cache, &account->stats) == 0;
}

int sy_cache_each(int (*visit)(void *arg, const sy_cache_account *account), void *arg) {
    sy_client *client;
    int result = 0;
    if (!visit) {
        errno = EINVAL;
        return -1;
    }
    for (unsigned number = 0; result == 0 && (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_account account;
        number = client->number;
        bool known = sy_cache_take_account(client, &account);
        sy_client_unpin(client);
        if (!known) continue;
        SY_CALLBACK(call, .function = "visitor of sy_cache_each", .may_unwind = true);
        result = visit(arg, &account);
        call.returned = true;
    }
    return result;
}
