/*
 * cache.c: the functions of slabyard/cache.h except trim (trim.c) and statistics (count.c): they
 * create and destroy caches, dispatch slow paths to the cache's kind, and reserve memory.
 */
#include "cache/cache.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "cache/blocks.h"
#include "cache/directory.h"
#include "cache/epoch.h"
#include "cache/guarded.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/mixed.h"
#include "cache/passed.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/fault.h"
#include "debug/profile.h"
#include "debug/tell.h"
#include "magazine/readers.h"
#include "os/os.h"
#include "os/start.h"

enum {
    MAGAZINE_BYTES = 256 << 10, /* most bytes of objects in one magazine, */
    MAGAZINE_ITEMS_LEAST = 2,   /* but a magazine holds at least so many items */
    LIMIT_SHARE = 8,            /* one part in so many of a limit may wait in magazines */
    /* The general heap keeps no empty slab of larger objects: its units can serve other sizes. To
     * fill such an object takes longer than to make a slab. */
    LARGE_CLASS = 16 << 10,
    /* The most empty slabs of a cache with handles that are released together. Their release clears
     * the words of their ordinals, which takes longer than a flush. In batches one free in many is
     * slow, rather than one for each slab. */
    EMPTIES_BATCH = 16,
};

static const unsigned KNOWN_FLAGS =
    SY_COLOUR | SY_LIMIT_EXACT | SY_HANDLES | SY_EPOCHS | SY_MOVABLE | SY_CHECK_FLAGS;

/* ---- creation and destruction ---- */

static bool may_be_movable(const sy_cache_config *config) {
    if (!(config->flags & SY_MOVABLE)) return !config->relocate;
    return config->flags & SY_HANDLES && !(config->flags & SY_EPOCHS) && !config->construct &&
           !config->destruct;
}

static int check_config(const sy_cache_config *config) {
    bool valid = config && config->size > 0 && config->size <= SIZE_MAX / 2 &&
                 (config->align == 0 || sy_is_power_of_two(config->align)) &&
                 config->align <= SY_CACHE_ALIGN_MAX && (config->flags & ~KNOWN_FLAGS) == 0 &&
                 !(config->flags & SY_LIMIT_EXACT && config->limit == 0) &&
                 (config->flags & SY_HANDLES || !config->dispose) && may_be_movable(config);
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

/* Poison, zeroing, tools and passing on destroy the constructed state of free objects. Such caches
 * therefore construct at each allocation, which needs SY_CHECKED. */
static void set_up_construction(sy_cache *cache, const sy_cache_config *config) {
    cache->arg = config->arg;
    cache->dispose = config->dispose;
    cache->relocate = config->relocate;
    if (!config->construct) return;
    if (cache->flags & (SY_POISON | SY_ZERO | SY_TOLD | SY_PASSED)) {
        cache->flags |= SY_CHECKED;
        cache->rebuilds = (sy_rebuilds){config->construct, config->destruct};
    } else {
        cache->construct = config->construct;
        cache->destruct = config->destruct;
    }
}

/* Whether objects may be blocks of the C library. They may not if they need a slab (in the
 * program's memory, with handles or epochs), nor if they hold secrets. */
static bool may_pass(const sy_cache_config *config) {
    bool anywhere = !config->memory || config->memory == &sy_memory_main;
    return anywhere &&
           !(config->flags & (SY_HANDLES | SY_EPOCHS | SY_ZERO | SY_NO_DUMP | SY_LOCKED));
}

static sy_layout layout_of(const sy_cache *cache, const sy_cache_config *config) {
    size_t zone = sy_watch_zone(cache->flags), edge = cache->flags & SY_EDGES ? SY_EDGE_BYTES : 0;
    if (cache->class_number) return sy_layout_make_class(config->size, config->align, zone, edge);
    return sy_layout_make(config->size, config->align, config->flags & SY_COLOUR, zone, edge);
}

static void set_up_cache(sy_cache *cache, const sy_cache_config *config, unsigned number) {
    const char *name = config->name ? config->name : "cache";
    for (size_t i = 0; i < SY_CACHE_NAME_MAX && name[i]; i++) cache->name[i] = name[i];
    cache->flags = sy_watch_checks(config->flags, cache->name, may_pass(config));
    if (sy_fail_wants(cache->name)) cache->flags |= SY_CHECKED;
    cache->size = config->size;
    cache->class_number = number;
    cache->layout = layout_of(cache, config);
    set_up_construction(cache, config);
    if (cache->flags & SY_RANDOM) cache->random = sy_os_random() | 1;
    cache->memory = config->memory ? config->memory : &sy_memory_main;
    if (!sy_guarded_can(cache->flags, cache->memory)) cache->flags &= ~(unsigned)SY_GUARD;
    if (!cache->quota && cache->memory == &sy_memory_main) cache->quota = &sy_quota_process;
    sy_kind_choose(cache);
    cache->empties_least = number && cache->layout.slot > LARGE_CLASS ? 0 : 1;
    cache->empties_batch = cache->flags & SY_HANDLES ? EMPTIES_BATCH : 0;
    cache->limit = config->limit ? config->limit : SIZE_MAX;
    sy_lock_init(&cache->lock, SY_RANK_CACHE);
}

/* Sets up the head for a cache with handles. Magazines hold ordinals there, so the inline functions
 * for addresses must find no object: their loaded slot is the one of client 0, which is shut. */
static void set_up_names(sy_cache *cache) {
    uint64_t live = (uint64_t)cache->client.number << SY_HANDLE_CACHE | SY_HANDLE_LIVE;
    cache->names = (struct sy_handle_head){
        .words = sy_directory_words(),
        .places = sy_directory_places(),
        .live = live,
        .plain = cache->dispose ? SY_HANDLE_STATE : live,
        .slot = cache->layout.slot,
        .names_offset = sy_client_offset(&cache->client),
    };
}

/* The same for a cache whose objects move: the inline functions for other caches find no live
 * object. */
static void set_up_moving_names(sy_cache *cache) {
    uint64_t live = (uint64_t)cache->client.number << SY_HANDLE_CACHE | SY_HANDLE_LIVE;
    cache->names = (struct sy_handle_head){
        .words = sy_directory_words(),
        .places = sy_directory_places(),
        .live = SY_HANDLE_MOVING,
        .plain = cache->dispose ? SY_HANDLE_STATE : live,
        .slot = (size_t)live,
    };
}

/* 0, or -1 with ENOMEM. */
static int begin_watch(sy_cache *cache) {
    if (!(cache->flags & SY_WATCH_FLAGS)) return 0;
    if (cache->flags & SY_POISON && sy_watched_verify_at_exit() != 0) return -1;
    sy_watch *watch = sy_side_take(sizeof *watch);
    if (!watch) return -1;
    if (sy_watch_open(watch, cache->name, cache->size, cache->flags) != 0) {
        sy_side_give(watch, sizeof *watch);
        return -1;
    }
    watch->owner = cache;
    cache->watch = watch;
    if (cache->flags & SY_TOLD) sy_watched_explain();
    return 0;
}

static void end_watch(sy_cache *cache) {
    if (!cache->watch) return;
    sy_watch_close(cache->watch);
    sy_side_give(cache->watch, sizeof *cache->watch);
    cache->watch = NULL;
}

static const sy_client_kind *client_kind(const sy_cache *cache) {
    bool guards = sy_cache_guards(cache);
    if (cache->flags & SY_EPOCHS) return guards ? &sy_client_one_way_guarded : &sy_client_one_way;
    if (guards) return &sy_client_guarded;
    return cache->flags & SY_ZERO ? &sy_client_seen : &sy_client_plain;
}

/* Objects that are checked, guarded or passed on, those with handles, which are not allocated by
 * address, and those of epochs, which are freed together, are in no profile. */
static bool is_profiled(const sy_cache *cache) {
    bool by_address = cache->kind == &sy_kind_plain || cache->kind == &sy_kind_zeroed;
    return by_address && !(cache->flags & SY_EPOCHS);
}

int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number) {
    set_up_cache(cache, config, number);
    if (begin_watch(cache) != 0) return -1;
    const sy_client_config client = {
        .kind = client_kind(cache),
        .refill = cache->kind->refill,
        .flush = cache->kind->flush,
        .owner = cache,
        .item_bytes = cache->layout.slot,
        .magazine_items = magazine_items(cache),
        .loaded_items = cache->limit == SIZE_MAX ? 0 : cache->limit / LIMIT_SHARE,
        .prefetches = !(cache->flags & SY_HANDLES),
        .place_matters = number != 0, /* a class of the general heap */
        .calls_back = cache->destruct || cache->memory != &sy_memory_main,
        .admits = sy_cache_admit,
        .flushes_many = cache->flags & SY_HANDLES,
        .number = number,
        .of_heap = sy_cache_is_of_heap(cache),
        .profiled = is_profiled(cache),
    };
    if (sy_client_open(&cache->client, &client) != 0) {
        int error = errno;
        end_watch(cache);
        errno = error;
        return -1;
    }
    sy_memory_hold(cache->memory);
    sy_mixed_join(cache);
    sy_fork_order(); /* the offset is stored last, see sy_cache_is_open */
    if (cache->kind == &sy_kind_movable)
        set_up_moving_names(cache);
    else if (cache->flags & SY_HANDLES)
        set_up_names(cache);
    else
        cache->head.loaded_offset = sy_client_offset(&cache->client);
    return 0;
}

sy_cache *sy_cache_create(const sy_cache_config *config) {
    if (check_config(config) != 0 || !sy_cache_flags_are_here(config->flags) || sy_start() != 0)
        return NULL;
    if (config->flags & SY_HANDLES && sy_directory_start() != 0) return NULL;
    if (config->flags & SY_MOVABLE) sy_readers_start();
    sy_cache *cache = sy_side_take(sizeof *cache);
    if (!cache) return NULL;
    if (sy_cache_open(cache, config, 0) == 0) return cache;
    sy_side_give(cache, sizeof *cache);
    return NULL;
}

bool sy_cache_suspend(sy_cache *cache, void (*end)(void *arg), void *arg) {
    if (sy_client_suspend(&cache->client, end, arg)) return true;
    sy_turn_soon();
    return false;
}

static void end_all(void *cache) { sy_cache_destroy_all(cache); }

static void end_unused(void *cache) { sy_cache_destroy(cache); }

static bool is_of_cache(const void *object, const void *cache) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab && sy_slab_owner(slab) == cache;
}

void sy_cache_destroy_all(sy_cache *cache) {
    if (!cache || !sy_cache_suspend(cache, end_all, cache)) return;
    if (!sy_cache_is_of_heap(cache)) { /* else the heap has done both for all its caches */
        sy_tell->leaks(cache);
        if (cache->profiled) sy_profile_forget_all(is_of_cache, cache);
    }
    if (cache->flags & SY_EPOCHS) sy_epochs_forget(cache);
    sy_guarded_forget(cache);
    sy_client_close(&cache->client);
    if (cache->flags & SY_PASSED) sy_passed_forget(cache);
    while (cache->slabs) {
        sy_slab *slab = cache->slabs;
        sy_lock_acquire(&cache->lock);
        sy_cache_unlink_slab(cache, slab);
        sy_lock_release(&cache->lock);
        sy_cache_release_slab(cache, slab);
    }
    sy_blocks_forget(cache);
    /* Only after its slabs were released: the words of its ordinals name the cache by it. */
    sy_client_give_number(&cache->client);
    end_watch(cache);
    sy_memory_let_go(cache->memory);
    sy_side_give(cache, sizeof *cache);
}

int sy_cache_destroy(sy_cache *cache) {
    if (!cache) return 0;
    if (sy_cache_is_of_heap(cache)) {
        errno = EINVAL;
        return -1;
    }
    if (!sy_cache_suspend(cache, end_unused, cache)) return 0;
    if (sy_cache_in_use(cache) > 0) {
        sy_client_resume(&cache->client);
        sy_tell->leaks(cache);
        errno = EBUSY;
        return -1;
    }
    sy_cache_destroy_all(cache);
    return 0;
}

/* ---- allocation and free ---- */

/* Allocates an object by the slow path of the cache's kind. */
static inline void *alloc_by_kind(sy_cache *cache, size_t size, size_t align) {
    uintptr_t object;
    return cache->kind->alloc(cache, size, align, &object) ? (void *)object : NULL;
}

void *sy_cache_alloc_slow(sy_cache *cache) {
    return alloc_by_kind(cache, cache->size, cache->layout.align);
}

void *sy_cache_alloc_sized(sy_cache *cache, size_t size, size_t align) {
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return (void *)object;
    return alloc_by_kind(cache, size, align);
}

void sy_cache_free_slow(sy_cache *cache, void *object) {
    cache->kind->free(cache, object, SIZE_MAX);
}

/* The free reports an object that is not live. */
bool sy_cache_may_free_slow(sy_cache *cache, const void *object) {
    size_t bytes;
    bool last = sy_client_freed_last(&cache->client, (uintptr_t)object);
    if (!object || (!last && cache->kind->find(cache, object, &bytes))) return true;
    sy_cache_free_slow(cache, (void *)(uintptr_t)object);
    return false;
}

void sy_cache_free_sized(sy_cache *cache, void *object, size_t size) {
    if (!object || SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache), (uintptr_t)object)))
        return;
    cache->kind->free(cache, object, size);
}

void *sy_cache_zalloc(sy_cache *cache) {
    if (cache->construct || cache->rebuilds.construct) {
        errno = EINVAL;
        return NULL;
    }
    void *object = sy_cache_alloc_inline(cache);
    return object ? memset(object, 0, cache->size) : NULL;
}

/* If two threads try to free one object, the handle's word, the record, the table entry or the bit
 * in the bitmap (which of them depends on the kind) decides which thread frees it. */
bool sy_cache_try_free(sy_cache *cache, void *object) {
    int error = errno;
    bool freed = cache->kind->try_free(cache, object);
    if (freed) sy_turn();
    errno = error;
    return freed;
}

/* If a constructor throws, the caller does not learn how many objects it got: they are freed. */
static void end_batch(const sy_batch *batch) {
    if (!batch->done) sy_cache_free_batch(batch->cache, batch->objects, batch->got);
}

void sy_cache_fill_singly(sy_batch *batch, size_t count) {
    while (batch->got < count &&
           (batch->objects[batch->got] = sy_cache_alloc_inline(batch->cache)) != NULL)
        batch->got++;
}

static size_t alloc_batch(sy_cache *cache, void **objects, size_t count) {
    SY_CONSTRUCTING_PATH(path, &cache->client); /* ends after `batch`, which uses the cache */
    sy_batch batch SY_CLEANUP(end_batch) = {cache, objects, 0, false};
    cache->kind->fill(&batch, count);
    batch.done = path.done = true;
    return batch.got;
}

size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count) {
    size_t got = alloc_batch(cache, objects, count);
    sy_cache_turn();
    return got;
}

void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count) {
    for (size_t i = 0; i < count; i++) sy_cache_free_inline(cache, objects[i]);
}

size_t sy_cache_slot_size(const sy_cache *cache) {
    return cache->layout.zone ? cache->size : cache->layout.slot;
}

/* ---- reserve ---- */

/* Backs a slab with memory. The lock is held before and after the call, not while the system
 * works. */
static int populate(sy_cache *cache, sy_slab *slab) {
    SY_HOLDS(&cache->lock);
    sy_bins_set_aside(slab->bins, slab);
    sy_lock_release(&cache->lock);
    int result = sy_slab_kind_of(cache)->populate(slab);
    sy_lock_acquire(&cache->lock);
    if (result == 0) {
        slab->watermark = slab->slots;
        slab->holes = slab->idle = 0;
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

/*
 * A reserve promises slots to allocations of any thread. But only the thread that owns a magazine
 * can allocate the items in it, as long as the thread runs. So the cache needs slots for both:
 *
 *     slots >= promise + items that the magazines of all threads together may hold
 *
 * Each further thread that uses the cache makes the right side larger. Then slabs are added. If no
 * slab can be added, the thread works without magazines. Items in the depot and in the magazines of
 * parked threads need no slots here: they are brought back before an allocation fails.
 */
typedef struct sy_slots {
    size_t all, out;
} sy_slots;

/* The slots of the cache's own slabs. Slots in the slabs of an epoch serve that epoch alone. The
 * lock is held. */
static sy_slots own_slots(const sy_cache *cache) {
    SY_HOLDS(&cache->lock);
    sy_slots slots = {cache->slab_count * cache->layout.slots, cache->out};
    if (cache->flags & SY_EPOCHS)
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
            if (slab->bins == &cache->bins) continue;
            slots.all -= slab->slots;
            slots.out -= slab->slots - slab->free_count;
        }
    return slots;
}

/* Whether the cache has slots for the promise and for `items` more. The promise is fulfilled, and
 * ends, once so many slots are out. */
static bool has_slots(sy_cache *cache, size_t items, bool *may_add) {
    sy_lock_acquire(&cache->lock);
    size_t promise = atomic_load_explicit(&cache->promise, memory_order_relaxed);
    sy_slots slots = own_slots(cache);
    if (slots.out >= promise + items) atomic_store(&cache->promise, promise = 0);
    bool enough = !promise || slots.all >= promise + items;
    *may_add = !cache->no_slab_for_slack;
    sy_lock_release(&cache->lock);
    return enough;
}

static void note_slack(sy_cache *cache, bool added) {
    sy_lock_acquire(&cache->lock);
    if (added)
        cache->empties_max++;
    else
        cache->no_slab_for_slack = true;
    sy_lock_release(&cache->lock);
}

static SY_COLD bool keep_promise(sy_cache *cache, size_t items) {
    bool may_add;
    while (!has_slots(cache, items, &may_add)) {
        bool added = may_add && sy_cache_add_slab(cache, &cache->bins);
        note_slack(cache, added);
        if (!added) return false;
    }
    return true;
}

bool sy_cache_admit(void *owner, size_t items) {
    sy_cache *cache = owner;
    return !atomic_load(&cache->promise) || keep_promise(cache, items);
}

/* The most slots that an address space, or the directory of ordinals, can hold. */
static size_t most_slots(const sy_cache *cache) {
    size_t most = SIZE_MAX / 2 / cache->layout.slot;
    return cache->flags & SY_HANDLES && most > UINT32_MAX ? UINT32_MAX : most;
}

/* Promises `count` slots more than are out; false: the limit, the address space or the directory
 * cannot hold so many. *before becomes the promise until now. */
static bool make_promise(sy_cache *cache, size_t count, size_t *before) {
    sy_lock_acquire(&cache->lock);
    bool passed = cache->flags & SY_PASSED;
    bool fits = count <= sy_cache_left(cache) && count <= most_slots(cache);
    size_t promise = own_slots(cache).out + count;
    *before = atomic_load_explicit(&cache->promise, memory_order_relaxed);
    if (fits && !passed && promise > *before) atomic_store(&cache->promise, promise);
    cache->no_slab_for_slack = false;
    sy_lock_release(&cache->lock);
    return fits;
}

/* Adds slabs until there are free slots for `count` objects and for the items that magazines may
 * hold. Empty slabs up to this number are kept from now on. */
static bool add_slabs(sy_cache *cache, size_t count) {
    size_t slack = (size_t)2 * sy_thread_count() * cache->client.config.magazine_items;
    sy_lock_acquire(&cache->lock);
    sy_slots slots = own_slots(cache);
    size_t wanted = count + slack, have = slots.all - slots.out;
    cache->empties_max = wanted / cache->layout.slots + 1;
    sy_lock_release(&cache->lock);
    bool added = true;
    for (; added && have < wanted; have += cache->layout.slots)
        added = sy_cache_add_slab(cache, &cache->bins);
    return added;
}

/* Reserves slots and memory for `count` objects. 0, or -1 with ENOMEM. */
static int provide(sy_cache *cache, size_t count) {
    SY_SLOW_PATH(&cache->client);
    size_t before;
    /* Under a limit the items in magazines count: drained, they make room for new objects. */
    if (cache->limit != SIZE_MAX) sy_client_drain(&cache->client);
    sy_client_prepare(&cache->client);
    bool fits = make_promise(cache, count, &before);
    bool had = fits && (cache->flags & SY_PASSED || add_slabs(cache, count));
    if (sy_quota_crossed(cache->quota)) sy_limit_tell(cache->quota);
    if (had && populate_all(cache) == 0) return 0;
    if (fits) atomic_store(&cache->promise, before);
    errno = ENOMEM;
    return -1;
}

int sy_cache_reserve(sy_cache *cache, size_t count) {
    int result = provide(cache, count);
    sy_cache_turn();
    return result;
}

static bool fill_magazines(sy_cache *cache, size_t count) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool filled = sy_client_reserve(&cache->client, count) >= count;
    path.done = true;
    return filled;
}

int sy_thread_reserve(sy_cache *cache, size_t count) {
    size_t magazines = cache->flags & SY_EPOCHS ? 1 : 2;
    if (count > magazines * cache->client.config.magazine_items) {
        errno = EINVAL;
        return -1;
    }
    if (sy_cache_reserve(cache, count) != 0) return -1;
    bool reserved = fill_magazines(cache, count);
    sy_cache_turn();
    if (reserved) return 0;
    errno = ENOMEM;
    return -1;
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define CACHE_VARIABLES(row) row(sy_quota_process, sy_quota_process)

static const sy_shape_row cache_shape_rows[] = {
    SY_SHAPE_FIELD(sy_cache, sy_cache, client),
    SY_SHAPE_FIELD(sy_cache, sy_cache, name),
    SY_SHAPE_FIELD(sy_cache, sy_cache, size),
    SY_SHAPE_FIELD(sy_cache, sy_cache, layout),
    SY_SHAPE_FIELD(sy_cache, sy_cache, flags),
    SY_SHAPE_FIELD(sy_cache, sy_cache, class_number),
    SY_SHAPE_FIELD(sy_cache, sy_cache, quota),
    SY_SHAPE_FIELD(sy_cache, sy_cache, retired),
    SY_SHAPE_FIELD(sy_cache, sy_cache, limits_hit),
    SY_SHAPE_FIELD(sy_cache, sy_cache, counts),
    SY_SHAPE_FIELD(sy_cache, sy_cache, watch),
    SY_SHAPE_FIELD(sy_watch, sy_watch, waiting),
    SY_SHAPE_FIELD(sy_watch, sy_watch, waiting_count),
    SY_SHAPE_FIELD(sy_layout, sy_layout, slot),
    SY_SHAPE_FIELD(sy_layout, sy_layout, zone),
    SY_SHAPE_FIELD(sy_cache_counts, sy_cache_counts, refills),
    SY_SHAPE_FIELD(sy_cache_counts, sy_cache_counts, flushes),
    CACHE_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const cache_shape_addresses[] = {CACHE_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_cache_shape = SY_SHAPE_PART(cache_shape_rows, cache_shape_addresses);
