/*
 * trim.c: memory back to the OS: empty slabs by way of the chunks, and pages of the others in
 * place.
 */
#include "cache/cache.h"
#include "cache/directory.h"

/* Empty slabs go, all of them: a reserve ends here. */
static void release_empty(sy_cache *cache) {
    for (;;) {
        sy_lock_acquire(&cache->lock);
        cache->empties_max = 0;
        sy_heap_node *lowest = cache->bins.heap[SY_BIN_EMPTY];
        sy_slab *slab = lowest ? sy_slab_of_node(lowest) : NULL;
        if (slab) sy_cache_unlink_slab(cache, slab);
        sy_lock_release(&cache->lock);
        if (!slab) return;
        sy_cache_release_slab(cache, slab);
    }
}

/* The slab with the most slots has one unit: longer slabs are for slots that leave a tail in one.
 */
typedef struct sy_claim {
    sy_slab *slab;
    uint64_t granules;
    uint64_t slots[SY_UNIT_BYTES / SY_SLOT_MIN / 64]; /* in them: to be destructed */
} sy_claim;

/* Sets the next slab aside, from `slab` on, of which something can be given back; false: none. Its
 * slots stay free, so that a second free is seen. The lock is held. */
static bool claim_next(sy_cache *cache, sy_slab *slab, sy_claim *claim) {
    for (; slab; slab = slab->next) {
        if (slab->bin >= SY_BIN_EMPTY) continue;
        claim->granules = sy_slab_unused(slab, &cache->layout, claim->slots);
        if (!claim->granules) continue;
        claim->slab = slab;
        for (uint32_t word = 0; slab->built && word < cache->layout.words; word++) {
            claim->slots[word] &= slab->built[word];
            slab->built[word] &= ~claim->slots[word];
        }
        sy_bins_set_aside(&cache->bins, slab);
        return true;
    }
    return false;
}

/* Discards the claimed granules, a system call for each run of them; those that went. */
static uint64_t discard_granules(const sy_claim *claim, size_t *bytes) {
    size_t granule = sy_slab_granule(claim->slab);
    uint64_t done = 0;
    for (unsigned first = 0; first < 64;) {
        if (!(claim->granules >> first & 1)) {
            first++;
            continue;
        }
        unsigned end = first;
        while (end < 64 && claim->granules >> end & 1) end++;
        if (sy_run_discard(claim->slab, (char *)claim->slab->start + first * granule,
                           (end - first) * granule) == 0) {
            *bytes += (end - first) * granule;
            for (unsigned i = first; i < end; i++) done |= UINT64_C(1) << i;
        }
        first = end;
    }
    return done;
}

size_t sy_cache_trim_slabs(sy_cache *cache) {
    sy_claim claim;
    size_t bytes = 0;
    release_empty(cache);
    if (!sy_memory_discards(cache->memory)) return 0;
    sy_lock_acquire(&cache->lock);
    for (sy_slab *from = cache->slabs; claim_next(cache, from, &claim); from = claim.slab->next) {
        sy_memory_begin_trim(cache->memory);
        sy_lock_release(&cache->lock);
        if (claim.slab->built) sy_cache_destruct(cache, claim.slab, claim.slots);
        uint64_t holes = discard_granules(&claim, &bytes);
        sy_chunk_punched(claim.slab);
        sy_lock_acquire(&cache->lock);
        claim.slab->holes |= holes;
        sy_bins_insert(&cache->bins, claim.slab);
        sy_memory_end_trim(cache->memory);
    }
    sy_lock_release(&cache->lock);
    release_empty(cache);
    return bytes;
}

size_t sy_cache_trim(sy_cache *cache) {
    sy_client_drain(&cache->client);
    size_t bytes = sy_cache_trim_slabs(cache);
    if (cache->flags & SY_HANDLES) sy_directory_trim();
    return bytes + sy_chunk_trim(cache->memory) + sy_magazine_trim();
}

size_t sy_trim(void) {
    size_t bytes = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) {
            sy_cache *cache = client->config.owner;
            sy_client_drain(client);
            bytes += sy_cache_trim_slabs(cache);
            if (cache->memory != &sy_memory_main) bytes += sy_chunk_trim(cache->memory);
        }
        sy_client_unpin(client);
    }
    sy_directory_trim();
    return bytes + sy_chunk_trim(&sy_memory_main) + sy_magazine_trim();
}
