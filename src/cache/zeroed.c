/*
 * zeroed.c: caches with SY_ZERO: a free overwrites the object with zeros. Each free calls a
 * function (sy_client_seen); all else is as in plain caches. With SY_CHECKED a cache is of the kind
 * `checked`, which fills freed objects itself.
 *
 * For sy_cache_try_free, sy_cache_put_live overwrites the object, once it is known to be live.
 * sy_cache_release_slab overwrites objects that were never freed.
 */
#include <string.h>

#include "cache/movable.h"

void sy_cache_wipe(const sy_cache *cache, void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    bool own = slab && sy_slab_owner(slab) == cache &&
               sy_slab_index(slab, &cache->layout, (uintptr_t)object) != UINT32_MAX;
    if (own) memset(object, 0, cache->size);
}

static void sy_zeroed_free(sy_cache *cache, void *object, size_t told) {
    sy_cache_wipe(cache, object);
    sy_plain_free(cache, object, told);
}

/* Called for caches with handles only, so the item is an ordinal. */
static void sy_zeroed_put(sy_cache *cache, uintptr_t ordinal, bool retires) {
    sy_cache_wipe(cache, sy_names_place(&cache->names, ordinal));
    sy_plain_put(cache, ordinal, retires);
}

const sy_kind sy_kind_zeroed = {
    .alloc = sy_plain_alloc,
    .take = sy_plain_alloc,
    .free = sy_zeroed_free,
    .put = sy_zeroed_put,
    .try_free = sy_plain_try_free,
    .find = sy_plain_find,
    .fill = sy_plain_fill,
    .refill = sy_cache_refill,
    .flush = sy_cache_flush,
    .slabs = &sy_slabs_plain,
};
