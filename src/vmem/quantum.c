/*
 * quantum.c: quantum caches, which serve small requests to an arena from magazines. Each size of 1,
 * 2, ... quanta has a client of the magazine layer, whose items are the segments' values. (Bonwick
 * and Adams, section 4.4, but without slabs in between: a magazine is filled from the arena under
 * one lock, and emptied segment by segment.)
 *
 * The arena counts segments in magazines as allocated.
 */
#include <errno.h>
#include <slabyard/loaded.h>

#include "os/start.h"
#include "vmem/arena.h"

enum { MAGAZINE_ITEMS = 127, FAULTS_MAX = 4 };

/* ---- the client's callbacks ---- */

/* Allocates up to `count` segments under one lock, and writes their values downward from `end`. So
 * the lowest value is last, and is given out first. Returns how many. */
static size_t take_segments(sy_vmem *arena, const sy_request *request, uintptr_t *end,
                            size_t count) {
    size_t taken = 0;
    sy_lock_acquire(&arena->lock);
    for (; taken < count; taken++) {
        uintptr_t value;
        sy_table_ready(arena);
        if (!sy_tags_ready(arena, SY_TAGS_PER_SPLIT)) break;
        sy_boundary *free = sy_fit_find(arena, request, &value);
        if (!free) break;
        sy_segment_carve(arena, free, value, request->size);
        *--end = value;
    }
    sy_lock_release(&arena->lock);
    return taken;
}

static size_t refill_segments(void *owner, uintptr_t *items, size_t count) {
    sy_quantum_cache *cache = owner;
    sy_vmem *arena = cache->arena;
    sy_request request;
    sy_request_make(arena, cache->size, NULL, SY_VMEM_INSTANT, &request);
    size_t taken = take_segments(arena, &request, items + count, count);
    /* The quantum caches are not drained for this: a function of the program that the drain calls
     * could use the magazine that is being filled. */
    if (!taken) return sy_vmem_serve(arena, &request, items, false) == 0;
    if (taken < count)
        for (size_t i = 0; i < taken; i++) items[i] = items[count - taken + i];
    return taken;
}

static void flush_segments(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    sy_quantum_cache *cache = owner;
    sy_vmem *arena = cache->arena;
    struct {
        uintptr_t value;
        size_t found_size;
    } fault[FAULTS_MAX];
    size_t faults = 0;
    sy_leavings leavings = {0};
    sy_lock_acquire(&arena->lock);
    for (size_t i = 0; i < count; i++) {
        sy_boundary *tag = sy_table_find(arena, items[i]);
        if (SY_LIKELY(tag && tag->size == cache->size)) {
            sy_segment_free(arena, tag, &leavings);
        } else if (faults < FAULTS_MAX) {
            fault[faults].value = items[i];
            fault[faults++].found_size = tag ? tag->size : 0;
        }
        if (held) atomic_fetch_sub_explicit(held, 1, memory_order_relaxed);
        if (SY_LIKELY(!leavings.any)) continue;
        sy_lock_release(&arena->lock);
        sy_leavings_settle(arena, &leavings);
        sy_lock_acquire(&arena->lock);
    }
    sy_lock_release(&arena->lock);
    for (size_t i = 0; i < faults; i++)
        sy_vmem_fault(arena, fault[i].value, cache->size, fault[i].found_size);
}

/* ---- life ---- */

static int open_cache(sy_vmem *arena, size_t index) {
    sy_quantum_cache *cache = &arena->caches[index];
    cache->arena = arena;
    cache->size = (index + 1) << arena->quantum_shift;
    const sy_client_config config = {
        .refill = refill_segments,
        .flush = flush_segments,
        .owner = cache,
        .item_bytes = sizeof(sy_boundary), /* the library's memory for a waiting segment */
        .magazine_items = MAGAZINE_ITEMS,
        .calls_back = true, /* the import and release functions of the source */
    };
    if (sy_client_open(&cache->client, &config) != 0) return -1;
    arena->cached_offset[index] = sy_client_offset(&cache->client);
    return 0;
}

int sy_quantum_open(sy_vmem *arena, size_t cached_max) {
    for (size_t index = 0; index < cached_max >> arena->quantum_shift; index++) {
        if (open_cache(arena, index) != 0) {
            int error = errno;
            sy_quantum_close(arena);
            errno = error;
            return -1;
        }
        arena->cached_sizes++;
    }
    return 0;
}

bool sy_quantum_suspend(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        if (sy_client_suspend(&arena->caches[i].client, NULL, NULL)) continue;
        while (i > 0) sy_client_resume(&arena->caches[--i].client);
        return false;
    }
    return true;
}

void sy_quantum_resume(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) sy_client_resume(&arena->caches[i].client);
}

void sy_quantum_close(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        sy_client_close(&arena->caches[i].client);
        sy_client_give_number(&arena->caches[i].client);
    }
    arena->cached_sizes = 0;
}

size_t sy_quantum_held(const sy_vmem *arena) {
    size_t units = 0;
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        size_t depot, loaded;
        sy_client_held(&arena->caches[i].client, &depot, &loaded);
        units += (depot + loaded) * arena->caches[i].size;
    }
    return units;
}

void sy_vmem_drain(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) sy_client_drain(&arena->caches[i].client);
}

/* ---- public functions with a fast path ---- */

static inline sy_loaded_slot *slot_of_size(const sy_vmem *arena, size_t index) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + arena->cached_offset[index]);
}

/* The index of the quantum cache for the size. If there is none (also for size 0), the result is
 * SY_VMEM_CACHED_SIZES or more. */
static inline size_t index_of_size(const sy_vmem *arena, size_t size) {
    return (size - 1) >> arena->quantum_shift;
}

static SY_COLD int alloc_segment_slow(sy_vmem *arena, size_t index, uintptr_t *value) {
    sy_client *client = &arena->caches[index].client;
    uintptr_t found;
    int error = errno;
    if (!sy_client_alloc_second(client, &found)) {
        if (!sy_client_alloc_rest(client, &found)) {
            sy_vmem_drain(arena);
            if (!sy_client_alloc(client, &found)) return -1;
        }
        errno = error;
    }
    *value = found;
    return 0;
}

static SY_COLD int free_segment_slow(sy_vmem *arena, size_t index, uintptr_t value) {
    sy_client *client = &arena->caches[index].client;
    sy_freed freed = sy_client_free_second(client, value);
    if (freed == SY_FREED) return 0;
    if (freed == SY_FREED_BEFORE) {
        sy_vmem_fault(arena, value, arena->caches[index].size, 0);
        errno = EINVAL;
        return -1;
    }
    int error = errno;
    sy_client_free(client, value);
    errno = error;
    return 0;
}

int sy_vmem_alloc(sy_vmem *arena, size_t size, sy_vmem_fit fit, uintptr_t *value) {
    size_t index = index_of_size(arena, size);
    if (SY_UNLIKELY(index >= arena->cached_sizes || fit != SY_VMEM_INSTANT))
        return sy_vmem_xalloc(arena, size, NULL, fit, value);
    if (SY_LIKELY(sy_loaded_pop(slot_of_size(arena, index), value))) return 0;
    return alloc_segment_slow(arena, index, value);
}

int sy_vmem_free(sy_vmem *arena, uintptr_t value, size_t size) {
    size_t index = index_of_size(arena, size);
    if (SY_UNLIKELY(index >= arena->cached_sizes)) return sy_vmem_xfree(arena, value, size);
    if (SY_LIKELY(sy_loaded_push_once(slot_of_size(arena, index), value))) return 0;
    return free_segment_slow(arena, index, value);
}
