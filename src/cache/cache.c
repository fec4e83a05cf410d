/*
 * cache.c: the doors of slabyard/cache.h but for trim and counts.
 */
#include "cache/cache.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cache/directory.h"
#include "cache/epoch.h"
#include "cache/limit.h"
#include "chunk/side.h"
#include "keep/reclaim.h"
#include "keep/start.h"

enum {
    MAGAZINE_BYTES = 256 << 10, /* of objects in one magazine at most, */
    MAGAZINE_ITEMS_LEAST = 2,   /* but never fewer than these */
    LIMIT_SHARE = 8,            /* of a limit: the part that may wait in magazines */
};

static const unsigned KNOWN_FLAGS =
    SY_CHECKED | SY_COLOUR | SY_LIMIT_EXACT | SY_HANDLES | SY_EPOCHS;

/* ---- creation and destruction ---- */

static int check_config(const sy_cache_config *config) {
    bool valid = config && config->size > 0 && config->size <= SIZE_MAX / 2 &&
                 (config->align == 0 || sy_is_power_of_two(config->align)) &&
                 config->align <= SY_CACHE_ALIGN_MAX && (config->flags & ~KNOWN_FLAGS) == 0 &&
                 !(config->flags & SY_LIMIT_EXACT && config->limit == 0);
    for (size_t i = 0; valid && i < sizeof config->reserved / sizeof *config->reserved; i++)
        valid = config->reserved[i] == 0;
    if (valid) return 0;
    errno = EINVAL;
    return -1;
}

static size_t magazine_items(const sy_cache *cache) {
    bool no_magazines = cache->flags & (SY_CHECKED | SY_LIMIT_EXACT) || cache->layout.slots == 1;
    if (no_magazines) return 0;
    size_t items = MAGAZINE_BYTES / cache->layout.slot;
    if (items < MAGAZINE_ITEMS_LEAST) items = MAGAZINE_ITEMS_LEAST;
    size_t of_limit = cache->limit == SIZE_MAX ? items : cache->limit / LIMIT_SHARE / 2;
    return items < of_limit ? items : of_limit;
}

static void set_up(sy_cache *cache, const sy_cache_config *config) {
    const char *name = config->name ? config->name : "cache";
    for (size_t i = 0; i < SY_CACHE_NAME_MAX && name[i]; i++) cache->name[i] = name[i];
    cache->size = config->size;
    cache->layout = sy_layout_make(config->size, config->align, config->flags & SY_COLOUR);
    cache->construct = config->construct;
    cache->destruct = config->construct ? config->destruct : NULL;
    cache->arg = config->arg;
    cache->memory = config->memory ? config->memory : &sy_memory_main;
    if (!cache->quota && cache->memory == &sy_memory_main) cache->quota = &sy_quota_process;
    cache->empties_least = 1;
    cache->limit = config->limit ? config->limit : SIZE_MAX;
    cache->flags = config->flags;
    sy_lock_init(&cache->lock, SY_RANK_CACHE);
}

/* The loaded slot of addresses is that of number 0, which is shut: it is ordinals that wait. */
static void set_up_names(sy_cache *cache) {
    cache->names = (struct sy_handle_head){
        .words = sy_directory_words(),
        .places = sy_directory_places(),
        .live = (uint64_t)cache->client.number << SY_HANDLE_CACHE | SY_HANDLE_LIVE,
        .slot = cache->layout.slot,
        .names_offset = sy_client_offset(&cache->client),
    };
}

int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number) {
    set_up(cache, config);
    const sy_client_config client = {
        .refill = sy_cache_refill,
        .flush = sy_cache_flush,
        .owner = cache,
        .item_bytes = cache->layout.slot,
        .magazine_items = magazine_items(cache),
        .loaded_items = cache->limit == SIZE_MAX ? 0 : cache->limit / LIMIT_SHARE,
        .addresses = !(cache->flags & SY_HANDLES),
        .calls_back = cache->destruct || cache->memory != &sy_memory_main,
        .one_way = cache->flags & SY_EPOCHS,
        .number = number,
    };
    cache->class_number = number;
    if (sy_client_open(&cache->client, &client) != 0) return -1;
    sy_memory_hold(cache->memory);
    if (cache->flags & SY_HANDLES)
        set_up_names(cache);
    else
        cache->head.loaded_offset = sy_client_offset(&cache->client);
    return 0;
}

sy_cache *sy_cache_create(const sy_cache_config *config) {
    if (check_config(config) != 0 || sy_start() != 0) return NULL;
    if (config->flags & SY_HANDLES && sy_directory_start() != 0) return NULL;
    sy_cache *cache = sy_side_take(sizeof *cache);
    if (!cache) return NULL;
    if (sy_cache_open(cache, config, 0) == 0) return cache;
    sy_side_give(cache, sizeof *cache);
    errno = ENOMEM;
    return NULL;
}

void sy_cache_destroy_all(sy_cache *cache) {
    if (!cache) return;
    if (cache->flags & SY_EPOCHS) sy_epochs_forget(cache);
    sy_client_close(&cache->client);
    while (cache->slabs) {
        sy_slab *slab = cache->slabs;
        sy_lock_acquire(&cache->lock);
        sy_cache_unlink_slab(cache, slab);
        sy_lock_release(&cache->lock);
        sy_cache_release_slab(cache, slab);
    }
    sy_memory_let_go(cache->memory);
    sy_side_give(cache, sizeof *cache);
}

int sy_cache_destroy(sy_cache *cache) {
    if (!cache) return 0;
    sy_client_suspend(&cache->client);
    if (sy_cache_in_use(cache) > 0) {
        sy_client_resume(&cache->client);
        errno = EBUSY;
        return -1;
    }
    sy_cache_destroy_all(cache);
    return 0;
}

/* ---- allocation and free ---- */

void *sy_cache_alloc_slow(sy_cache *cache) {
    uintptr_t object;
    if (SY_UNLIKELY(cache->flags & SY_HANDLES)) return sy_cache_alloc_named(cache);
    if (sy_client_alloc_second(&cache->client, &object)) return (void *)object;
    int error = errno;
    if (!sy_cache_take(cache, &object)) return NULL;
    sy_reclaim_turn();
    errno = error;
    return (void *)object;
}

void sy_cache_free_slow(sy_cache *cache, void *object) {
    bool named = cache->flags & SY_HANDLES;
    if (SY_LIKELY(!named) && sy_client_free_second(&cache->client, (uintptr_t)object)) return;
    int error = errno;
    if (SY_UNLIKELY(named)) {
        sy_cache_free_named(cache, object); /* which takes its turn */
    } else {
        sy_client_free(&cache->client, (uintptr_t)object);
        sy_reclaim_turn();
    }
    errno = error;
}

void *sy_cache_zalloc(sy_cache *cache) {
    if (cache->construct) {
        errno = EINVAL;
        return NULL;
    }
    void *object = sy_cache_alloc(cache);
    return object ? memset(object, 0, cache->size) : NULL;
}

/* Whether a slot begins at `address` and is out of its slab. */
static bool is_out(sy_cache *cache, uintptr_t address) {
    sy_lock_acquire(&cache->lock);
    const sy_slab *slab = sy_slab_at(address);
    bool out = slab && slab->owner == cache;
    if (out) {
        uint32_t index = sy_slab_index(slab, &cache->layout, address);
        out = index != UINT32_MAX && !sy_slab_bit(slab->free, index);
    }
    sy_lock_release(&cache->lock);
    return out;
}

bool sy_cache_try_free(sy_cache *cache, void *object) {
    uintptr_t address = (uintptr_t)object;
    if (cache->flags & SY_HANDLES) return sy_handle_free_inline(cache, sy_handle_of(object));
    if (!is_out(cache, address)) return false;
    if (cache->client.config.magazine_items && sy_client_holds(&cache->client, address))
        return false;
    sy_cache_free(cache, object);
    return true;
}

size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count) {
    uintptr_t *items = (uintptr_t *)objects;
    size_t got = 0;
    if (cache->flags & SY_HANDLES) {
        while (got < count && (objects[got] = sy_cache_alloc(cache)) != NULL) got++;
        return got;
    }
    got = sy_client_alloc_loaded(&cache->client, items, count);
    while (got < count && sy_cache_take(cache, &items[got])) {
        got++;
        got += sy_client_alloc_loaded(&cache->client, items + got, count - got);
        int error = errno;
        sy_reclaim_turn();
        errno = error;
    }
    return got;
}

void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count) {
    for (size_t i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
}

size_t sy_cache_slot_size(const sy_cache *cache) { return cache->layout.slot; }

/* ---- reserve ---- */

/* Backs a slab with memory. The lock is held before and after. */
static int populate(sy_cache *cache, sy_slab *slab) {
    sy_bins_set_aside(slab->bins, slab);
    sy_lock_release(&cache->lock);
    int result = sy_run_populate(slab);
    if (result == 0 && cache->flags & SY_HANDLES)
        result = sy_ordinals_populate(slab->ordinal, slab->slots);
    sy_lock_acquire(&cache->lock);
    if (result == 0) {
        slab->watermark = slab->slots;
        slab->holes = 0;
    }
    sy_bins_insert(slab->bins, slab);
    return result;
}

static int populate_all(sy_cache *cache) {
    int result = 0;
    sy_lock_acquire(&cache->lock);
    for (sy_slab *slab = cache->slabs; slab && result == 0; slab = slab->next) {
        bool unbacked = slab->holes || slab->watermark < slab->slots;
        if (slab->bin < SY_BIN_FULL && unbacked) result = populate(cache, slab);
    }
    sy_lock_release(&cache->lock);
    return result;
}

/* Slots in slabs; those of epochs are for their objects alone. The lock is held. */
static size_t free_slots(const sy_cache *cache) {
    size_t count = cache->slab_count * cache->layout.slots - cache->out;
    if (cache->flags & SY_EPOCHS)
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
            if (slab->bins != &cache->bins) count -= slab->free_count;
    return count;
}

int sy_cache_reserve(sy_cache *cache, size_t count) {
    /* Under a limit what waits in magazines stands in the way of new objects. */
    if (cache->limit != SIZE_MAX) sy_client_drain(&cache->client);
    sy_client_prepare(&cache->client);
    /* What other threads' magazines may hold when the last of the `count` is wanted here. */
    size_t slack = sy_thread_count() * 2 * cache->client.config.magazine_items;
    sy_lock_acquire(&cache->lock);
    bool fits = count <= sy_cache_left(cache) && count <= SIZE_MAX / 2 / cache->layout.slot;
    size_t wanted = count + slack, have = free_slots(cache);
    if (fits) cache->empties_max = wanted / cache->layout.slots + 1;
    sy_lock_release(&cache->lock);
    for (; fits && have < wanted; have += cache->layout.slots)
        fits = sy_cache_add_slab(cache, &cache->bins);
    if (sy_quota_crossed(cache->quota)) sy_limit_tell(cache->quota);
    if (fits && populate_all(cache) == 0) return 0;
    errno = ENOMEM;
    return -1;
}

int sy_thread_reserve(sy_cache *cache, size_t count) {
    size_t magazines = cache->flags & SY_EPOCHS ? 1 : 2;
    if (count > magazines * cache->client.config.magazine_items) {
        errno = EINVAL;
        return -1;
    }
    if (sy_cache_reserve(cache, count) != 0) return -1;
    if (sy_client_reserve(&cache->client, count) >= count) return 0;
    errno = ENOMEM;
    return -1;
}
