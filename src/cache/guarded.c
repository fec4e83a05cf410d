/*
 * guarded.c: allocates and frees the objects of a cache that have pages of their own (SY_GUARD).
 * All other objects of the cache are of its basic kind: plain, zeroed or checked.
 */
#include "cache/guarded.h"

#include <errno.h>

#include "base/fork.h"
#include "cache/epoch.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/watched.h"
#include "debug/callback.h"
#include "debug/fault.h"
#include "os/os.h"

bool sy_guarded_can(unsigned flags, const sy_memory *memory) {
    return !(flags & (SY_HANDLES | SY_LOCKED | SY_NO_DUMP)) && memory == &sy_memory_main;
}

bool sy_cache_flags_are_here(unsigned flags) {
    if ((!(flags & SY_GUARD) || sy_os_has(SY_OS_GUARDS)) &&
        (!(flags & SY_LOCKED) || sy_os_has(SY_OS_LOCKS)))
        return true;
    errno = ENOTSUP;
    return false;
}

/* The caches of the objects that this thread is making or freeing. While an object is here,
 * `guarded` of its cache counts it. */
static SY_TLS sy_own own_counted;

unsigned sy_guarded_own(const sy_cache *cache) { return sy_own_times(&own_counted, cache); }

/* Counts one more object, if the cache's limit allows it; false: it does not. */
static bool count_in(sy_cache *cache, uint64_t constructed) {
    sy_lock_acquire(&cache->lock);
    bool fits = sy_cache_left(cache) > 0;
    cache->guarded += fits;
    if (fits) sy_own_replace(&own_counted, NULL, cache);
    cache->counts.constructed += fits ? constructed : 0;
    sy_lock_release(&cache->lock);
    return fits;
}

static void count_out(sy_cache *cache, uint64_t destructed) {
    sy_lock_acquire(&cache->lock);
    /* In the child of a fork it may be 0, if more objects were being freed than own_counted has. */
    if (cache->guarded) cache->guarded--;
    sy_own_replace(&own_counted, cache, NULL);
    cache->counts.destructed += destructed;
    sy_lock_release(&cache->lock);
}

/* The constructor and destructor of guarded objects. They are called at each allocation and free,
 * whether or not the cache does so for its other objects. */
static sy_rebuilds construction(const sy_cache *cache) {
    if (cache->rebuilds.construct) return cache->rebuilds;
    return (sy_rebuilds){cache->construct, cache->destruct};
}

/* What is to be given back if the constructor fails. */
typedef struct sy_made {
    sy_cache *cache;
    void *object;
} sy_made;

static void give_made_back(const void *made_) {
    const sy_made *made = made_;
    sy_own_replace(&own_counted, NULL, made->cache);
    sy_guard_free(made->cache->watch, made->object, SIZE_MAX, NULL, NULL);
    count_out(made->cache, true);
}

/* Makes an object that is counted already; NULL: there is none, and it is not counted any more. If
 * the constructor fails, the allocation goes on as if there were no room for guarded objects. */
static void *make_guarded(sy_cache *cache, size_t size, size_t align) {
    sy_rebuilds build = construction(cache);
    if (align < SY_MALLOC_ALIGN) align = SY_MALLOC_ALIGN;
    if (align > cache->layout.align) align = cache->layout.align;
    void *object = sy_guard_alloc(cache->watch, size, align);
    if (!object) {
        count_out(cache, build.construct != NULL);
        return NULL;
    }
    sy_own_replace(&own_counted, cache, NULL);
    if (!build.construct) return object;
    const sy_made made = {cache, object};
    bool built = sy_watched_construct(cache, build.construct, object, give_made_back, &made);
    return built ? object : NULL;
}

/* Size 0 is treated as 1, so that the object has an address. */
static size_t size_there(size_t size) { return size ? size : 1; }

/* A guarded object, if there is room; else NULL. errno is kept. */
static void *make_if_room(sy_cache *cache, size_t size, size_t align) {
    int error = errno;
    bool builds = construction(cache).construct;
    void *object = count_in(cache, builds) ? make_guarded(cache, size_there(size), align) : NULL;
    errno = error;
    return object;
}

void *sy_guarded_make(sy_cache *cache, size_t size, size_t align) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    void *object = make_if_room(cache, size, align);
    path.done = true;
    return object;
}

/* Whether an object that this thread allocates now belongs to an epoch. It is not guarded: epochs
 * count and hold the objects of their slabs alone. */
static bool in_epoch(const sy_cache *cache) {
    return cache->flags & SY_EPOCHS && sy_epoch_current();
}

static void *sy_guarded_make_if_due(sy_cache *cache, size_t size, size_t align) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool due = sy_client_due(&cache->client) && !in_epoch(cache);
    void *object = due ? make_if_room(cache, size, align) : NULL;
    path.done = true;
    return object;
}

/* Allocates a guarded object, or one of the basic kind. In a checked cache the allocation may be
 * due to fail. This is asked here, once, so the basic kind's `take` does not ask again. */
static bool sy_guarded_alloc(sy_cache *cache, size_t size, size_t align, uintptr_t *item) {
    if (sy_cache_checks(cache) && sy_limit_fail_due(cache->name, size)) return false;
    *item = (uintptr_t)sy_guarded_make_if_due(cache, size, align);
    if (!*item) return cache->basic->take(cache, size, align, item);
    sy_cache_turn_of_alloc();
    return true;
}

static void unbuild(void *object, void *cache_) {
    const sy_cache *cache = cache_;
    sy_rebuilds build = construction(cache);
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    if (build.destruct) build.destruct(object, cache->arg);
    call.returned = true;
}

sy_cache *sy_guarded_cache(const void *object) {
    sy_watch *watch;
    if (!sy_guard_owns((uintptr_t)object)) return NULL;
    sy_guard_size(object, &watch);
    return watch ? watch->owner : NULL;
}

size_t sy_guarded_size(const void *object) {
    sy_watch *watch;
    return sy_guard_owns((uintptr_t)object) ? sy_guard_size(object, &watch) : 0;
}

static bool sy_guarded_find(const sy_cache *cache, const void *object, size_t *bytes) {
    if (!sy_guard_owns((uintptr_t)object)) return cache->basic->find(cache, object, bytes);
    *bytes = sy_guarded_size(object);
    return *bytes > 0;
}

/* After the attempt to free an object that was noted in own_counted. */
static void end_free(sy_cache *cache, bool freed) {
    if (freed)
        count_out(cache, construction(cache).construct != NULL);
    else
        sy_own_replace(&own_counted, cache, NULL);
}

/* Frees `object`, whose address is among guarded objects, or raises the fault of the free. */
static void sy_guarded_free(sy_cache *cache, void *object, size_t told) {
    const sy_cache *owner = sy_guarded_cache(object);
    if (owner && owner != cache && owner->class_number && cache->class_number) {
        sy_fault_raise(&(sy_fault){
            .kind = SY_FAULT_WRONG_SIZE,
            .cache = cache->name,
            .object_size = cache->size,
            .address = object,
            .found_cache = owner->name,
        });
        return;
    }
    sy_own_replace(&own_counted, NULL, cache);
    end_free(cache, sy_guard_free(cache->watch, object, size_there(told), unbuild, cache));
}

static void sy_guarded_free_on_path(sy_cache *cache, void *object, size_t told) {
    SY_SLOW_PATH(&cache->client);
    sy_guarded_free(cache, object, told);
}

/* The address says whether the object is guarded. If it is, only the functions for guarded objects
 * may look at it. */
static void sy_guarded_free_any(sy_cache *cache, void *object, size_t told) {
    if (SY_LIKELY(!sy_guard_owns((uintptr_t)object))) {
        cache->basic->free(cache, object, told);
        return;
    }
    sy_guarded_free_on_path(cache, object, told);
    sy_cache_turn();
}

static bool sy_guarded_try_free(sy_cache *cache, void *object) {
    if (!sy_guard_owns((uintptr_t)object)) return cache->basic->try_free(cache, object);
    SY_SLOW_PATH(&cache->client);
    sy_own_replace(&own_counted, NULL, cache);
    bool freed = sy_guard_try_free(cache->watch, object, unbuild, cache);
    end_free(cache, freed);
    return freed;
}

void sy_guarded_forget(sy_cache *cache) {
    if (sy_cache_guards(cache)) sy_guard_forget(cache->watch, unbuild, cache);
}

const sy_kind sy_kind_guarded = {
    .alloc = sy_guarded_alloc,
    .free = sy_guarded_free_any,
    .try_free = sy_guarded_try_free,
    .find = sy_guarded_find,
    .fill = sy_cache_fill_singly,
    .refill = sy_cache_refill,
    .flush = sy_cache_flush,
};
