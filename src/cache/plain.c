/*
 * plain.c: caches without handles, checks or guarded objects. An object is a slot, and goes through
 * the magazines of the client. The inline functions of slabyard/cache.h come here when the thread's
 * loaded slot has no object, or no room for one.
 *
 *     sy_plain_alloc --> sy_client_alloc_second              the thread's second magazine
 *                    --> sy_cache_take_item (take.c)
 *                        --> sy_client_alloc_rest            the depot
 *                            --> sy_cache_refill             slabs
 *     sy_plain_free  --> sy_client_free_second               the thread's second magazine
 *                    --> sy_client_free                      the depot
 *                        --> sy_cache_flush                  slabs
 */
#include <errno.h>

#include "base/cpu.h"
#include "cache/kind.h"
#include "debug/fault.h"
#include "debug/interval.h"
#include "debug/profile.h"

/* `chance`: by which the object was sampled; 0: it was not. */
static void note_object(sy_cache *cache, size_t size, const void *object, double chance) {
    if (sy_profile_counter) sy_profile_count(object, size);
    if (chance > 0) sy_profile_note(object, size, chance, SY_PROFILE_FREES_SEEN_NOW);
    if (sy_profile_counter || chance > 0)
        atomic_store_explicit(&cache->profiled, true, memory_order_relaxed);
}

SY_COLD void sy_plain_profile(sy_cache *cache, size_t size, uintptr_t item) {
    sy_cpu_keep_frame();
    double chance;
    if (!sy_client_samples(&cache->client, &chance)) chance = 0;
    note_object(cache, size, (const void *)item, chance);
}

SY_COLD void sy_cache_profile_in_slab(sy_cache *cache, size_t size, const void *object) {
    sy_cpu_keep_frame();
    if (!sy_client_is_profiled(&cache->client)) return;
    double chance = sy_profile_chance(cache->client.config.item_bytes, sy_profile_mean());
    note_object(cache, size, object, chance > 0 && sy_chance(chance) ? chance : 0);
}

/* While a profile is taken, the object that is to be looked at comes from sy_cache_take_item. */
bool sy_plain_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *item) {
    (void)align; /* each object has the cache's */
    if (sy_client_alloc_second(&cache->client, item)) return true;
    int error = errno;
    if (!sy_cache_take_item(cache, item)) return false;
    if (SY_UNLIKELY(sy_client_is_profiled(&cache->client))) sy_plain_profile(cache, size, *item);
    sy_turn_of_alloc();
    errno = error;
    return true;
}

/* Puts an item that neither magazine of the thread has room for into the depot or the slabs. */
static void put_item_beyond(sy_cache *cache, uintptr_t item) {
    int error = errno;
    sy_client_free(&cache->client, item);
    sy_turn();
    errno = error;
}

void sy_plain_put(sy_cache *cache, uintptr_t item, bool retires) {
    if (!retires && sy_client_free_second(&cache->client, item) == SY_FREED_NOT)
        put_item_beyond(cache, item);
}

static SY_COLD void sy_plain_raise_double_free(const sy_cache *cache, uintptr_t address) {
    int error = errno;
    sy_fault fault = sy_cache_fault(cache, SY_FAULT_DOUBLE_FREE, address, sy_slab_at(address));
    sy_fault_raise(&fault);
    errno = error;
}

void sy_plain_free(sy_cache *cache, void *object, size_t told) {
    (void)told;
    uintptr_t item = (uintptr_t)object;
    sy_freed freed = sy_client_free_second(&cache->client, item);
    if (SY_LIKELY(freed == SY_FREED)) return;
    if (SY_LIKELY(freed == SY_FREED_NOT))
        put_item_beyond(cache, item);
    else
        sy_plain_raise_double_free(cache, item);
}

bool sy_plain_try_free(sy_cache *cache, void *object) {
    SY_SLOW_PATH(&cache->client);
    return sy_cache_put_live(cache, (uintptr_t)object);
}

bool sy_plain_find(const sy_cache *cache, const void *object, size_t *bytes) {
    (void)object;
    *bytes = cache->size;
    return true;
}

void sy_plain_fill(sy_batch *batch, size_t count) {
    sy_cache *cache = batch->cache;
    uintptr_t *items = (uintptr_t *)batch->objects;
    if (SY_UNLIKELY(sy_client_is_profiled(&cache->client))) {
        sy_cache_fill_singly(batch, count);
        return;
    }
    batch->got = sy_client_alloc_loaded(&cache->client, items, count);
    while (batch->got < count && sy_cache_take_item(cache, &items[batch->got])) {
        batch->got++;
        batch->got +=
            sy_client_alloc_loaded(&cache->client, items + batch->got, count - batch->got);
        sy_cache_turn_of_alloc();
    }
}

const sy_kind sy_kind_plain = {
    .alloc = sy_plain_alloc,
    .take = sy_plain_alloc,
    .free = sy_plain_free,
    .put = sy_plain_put,
    .try_free = sy_plain_try_free,
    .find = sy_plain_find,
    .fill = sy_plain_fill,
    .refill = sy_cache_refill,
    .flush = sy_cache_flush,
    .slabs = &sy_slabs_plain,
};
