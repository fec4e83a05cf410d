/*
 * slab.h: the object caches of userland_slab, implemented by Slabyard's.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/userland-slab -lslabyard
 *
 * In these points userland_slab's document leaves a choice, or userland_slab does not do what it
 * says. Here:
 *   - slab_allocator_init and objs_cache_init report success by a result that is not 0 and not
 *     NULL. Without slab_allocator_init there are no caches, and objs_cache_init returns NULL.
 *   - The constructor is called at each allocation, as the document says, and at no other time.
 *   - Objects may have any size. They are aligned as a type of this size can need: to the largest
 *     power of two that divides the size, at most 16. So objects of 20 bytes take 20 bytes each,
 *     at multiples of 4. Objects of 24 bytes lie at multiples of 8, as all did in userland_slab.
 *     If there is no memory, an allocation returns NULL with ENOMEM. NULL may be passed to every
 *     function (in userland_slab it ended the process).
 *   - objs_cache_destroy and slab_allocator_destroy release all memory, including objects that were
 *     not freed, and return it to the operating system with all other free memory. Both may be
 *     called again, and in any order.
 *   - Any thread may use a cache.
 *   - struct Objs_cache has the counters below, for reading. display_cache_info counts the objects
 *     and the slabs; so do objs_cache_alloc and objs_cache_free from time to time, on their slow
 *     path. The numbers are those of the last count. What concerns pages is that of a slab.
 */
#ifndef SLABYARD_COMPAT_USERLAND_SLAB_H
#define SLABYARD_COMPAT_USERLAND_SLAB_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

SY_BEGIN_DECLS

/* All caches of a program or of a shared library, so that slab_allocator_destroy can release them.
 * An Objs_cache may outlive its cache, or end before it. So each cache is listed with its number,
 * and each Objs_cache knows how often all caches had been destroyed before it was created. */
struct sy_userland_cache {
    sy_cache *cache;
    unsigned long number;
};
struct sy_userland_slab {
    pthread_mutex_t lock; /* guards the rest */
    int ready;
    unsigned long ended;   /* calls of slab_allocator_destroy; read without the lock */
    unsigned long numbers; /* used so far */
    struct sy_userland_cache *caches;
    size_t count;
};
/* NOLINTNEXTLINE(misc-definitions-in-headers): the linker keeps one of the weak ones. */
__attribute__((weak, visibility("hidden"))) struct sy_userland_slab sy_userland_slab = {
    PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, NULL, 0};

/* The memory of this structure belongs to the caller; only the functions here write it. */
struct Objs_cache {
    size_t obj_size;        /* as it was asked for */
    size_t actual_obj_size; /* bytes from one object to the next */
    void (*ctor)(void *);
    size_t slab_size;
    unsigned int objs_per_slab;
    /* At the last count: */
    unsigned int free_objs_count, used_objs_count;
    unsigned int slab_count, free_slabs_count, partial_slabs_count, full_slabs_count;

    sy_cache *cache;              /* NULL: there is no cache */
    unsigned long number;         /* of the cache */
    unsigned long ended;          /* as it was when the cache was created */
    struct sy_userland_slab *all; /* where the cache is listed */
    unsigned int uncounted;       /* slow paths until the next count */
};

static inline void sy_userland_slab_set(unsigned int *counter, size_t value) {
    __atomic_store_n(counter, (unsigned int)value, __ATOMIC_RELAXED);
}

/* Counts objects and slabs. Any thread. */
static inline void sy_userland_slab_count(struct Objs_cache *cache) {
    sy_cache_stats stats;
    if (sy_cache_get_stats(cache->cache, &stats) != 0) return;
    sy_userland_slab_set(&cache->used_objs_count, stats.in_use);
    sy_userland_slab_set(&cache->free_objs_count, stats.slots - stats.in_use);
    sy_userland_slab_set(&cache->slab_count, stats.slabs);
    sy_userland_slab_set(&cache->free_slabs_count, stats.empty);
    sy_userland_slab_set(&cache->partial_slabs_count, stats.partial);
    sy_userland_slab_set(&cache->full_slabs_count, stats.full);
    sy_userland_slab_set(&cache->uncounted, 16 + stats.slabs);
}

/* Sets the fields that describe how Slabyard laid out the cache. */
static inline void sy_userland_slab_describe(struct Objs_cache *cache) {
    sy_cache_stats stats;
    (void)sy_cache_get_stats(cache->cache, &stats);
    cache->actual_obj_size = stats.slot_size;
    cache->slab_size = stats.slab_bytes;
    cache->objs_per_slab = (unsigned int)stats.slots_per_slab;
    sy_userland_slab_count(cache);
}

/* Allows caches to be created. Returns 1. */
static inline int slab_allocator_init(void) {
    pthread_mutex_lock(&sy_userland_slab.lock);
    sy_userland_slab.ready = 1;
    pthread_mutex_unlock(&sy_userland_slab.lock);
    return 1;
}

/* Destroys all caches with all their objects. */
static inline void slab_allocator_destroy(void) {
    struct sy_userland_slab *all = &sy_userland_slab;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++) sy_cache_destroy_all(all->caches[i].cache);
    sy_free(all->caches);
    all->caches = NULL;
    all->count = 0;
    all->ready = 0;
    __atomic_store_n(&all->ended, all->ended + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&all->lock);
    sy_trim();
}

/* Lists a cache. Returns 0, or -1: no memory, or no slab_allocator_init. */
static inline int sy_userland_slab_add(struct Objs_cache *cache) {
    struct sy_userland_slab *all = &sy_userland_slab;
    struct sy_userland_cache *more = NULL;
    pthread_mutex_lock(&all->lock);
    if (all->ready)
        more = (struct sy_userland_cache *)sy_realloc(all->caches, (all->count + 1) * sizeof *more);
    if (more) {
        all->caches = more;
        more[all->count].cache = cache->cache;
        more[all->count++].number = cache->number = ++all->numbers;
        cache->ended = all->ended;
        cache->all = all;
    }
    pthread_mutex_unlock(&all->lock);
    return more ? 0 : -1;
}

/* Returns true if the cache was created and not destroyed. */
static inline int sy_userland_slab_lives(const struct Objs_cache *cache) {
    return cache && cache->cache &&
           cache->ended == __atomic_load_n(&cache->all->ended, __ATOMIC_RELAXED);
}

/* Returns the alignment that objects of this size can need: no type has a larger one than the
 * largest power of two that divides its size. 16 at most. */
static inline size_t sy_userland_slab_align(size_t size) {
    size_t align = size & ~(size - 1);
    return align < 16 ? align : 16;
}

/* Creates a cache of objects of `obj_size` bytes (0 acts as 1) in `cache`. `ctor` is called with
 * each object that is allocated; NULL: no constructor. Returns `cache`, or NULL with errno EINVAL
 * (`cache` is NULL) or ENOMEM (no memory, or no slab_allocator_init). */
static inline struct Objs_cache *objs_cache_init(struct Objs_cache *cache, size_t obj_size,
                                                 void (*ctor)(void *)) {
    sy_cache_config config;
    if (!cache) {
        errno = EINVAL;
        return NULL;
    }
    memset(cache, 0, sizeof *cache);
    memset(&config, 0, sizeof config);
    config.name = "Objs_cache";
    config.size = obj_size ? obj_size : 1;
    config.align = sy_userland_slab_align(config.size);
    cache->obj_size = obj_size;
    cache->ctor = ctor;
    cache->cache = sy_cache_create(&config);
    if (!cache->cache) return NULL;
    sy_userland_slab_describe(cache);
    if (sy_userland_slab_add(cache) == 0) return cache;
    sy_cache_destroy(cache->cache);
    cache->cache = NULL;
    errno = ENOMEM;
    return NULL;
}

/* Called on each slow path. A count takes time in proportion to the number of slabs. So one count
 * is made for at least as many slow paths as there are slabs. */
static inline void sy_userland_slab_count_at_times(struct Objs_cache *cache) {
    unsigned int uncounted = __atomic_load_n(&cache->uncounted, __ATOMIC_RELAXED);
    if (uncounted > 0)
        sy_userland_slab_set(&cache->uncounted, uncounted - 1);
    else
        sy_userland_slab_count(cache);
}

/* The slow paths of objs_cache_alloc and objs_cache_free: the thread's magazine is empty or full.
 * They are never inlined, so that the fast paths need no stack. */
static SY_COLD __attribute__((unused)) void *sy_userland_slab_alloc_slow(struct Objs_cache *cache) {
    void *object = sy_cache_alloc(cache->cache);
    sy_userland_slab_count_at_times(cache);
    return object;
}

static SY_COLD __attribute__((unused)) void sy_userland_slab_free_slow(struct Objs_cache *cache,
                                                                       void *obj) {
    sy_cache_free(cache->cache, obj);
    sy_userland_slab_count_at_times(cache);
}

/* As objs_cache_alloc, without the constructor, for a cache that was not destroyed. */
static inline void *sy_userland_slab_take(struct Objs_cache *cache) {
#ifndef SY_NO_INLINE
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache->cache), &object))) return (void *)object;
#endif
    return sy_userland_slab_alloc_slow(cache);
}

/* Allocates an object and constructs it. Returns NULL with errno ENOMEM, or EINVAL: no cache, or it
 * was destroyed. */
static inline void *objs_cache_alloc(struct Objs_cache *cache) {
    void *object;
    if (!sy_userland_slab_lives(cache)) {
        errno = EINVAL;
        return NULL;
    }
    object = sy_userland_slab_take(cache);
    if (object && cache->ctor) cache->ctor(object);
    return object;
}

/* Frees an object. If an argument is NULL, or the cache was destroyed and the object with it, the
 * function does nothing. */
static inline void objs_cache_free(struct Objs_cache *cache, void *obj) {
    if (!obj || !sy_userland_slab_lives(cache)) return;
#ifndef SY_NO_INLINE
    if (SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache->cache), (uintptr_t)obj))) return;
#endif
    sy_userland_slab_free_slow(cache, obj);
}

/* Counts the objects and the slabs of a cache, and prints the counters. If there is no cache, it
 * does nothing. */
static inline void display_cache_info(const struct Objs_cache *cache) {
    struct Objs_cache *counted = (struct Objs_cache *)(uintptr_t)cache;
    if (!sy_userland_slab_lives(cache)) return;
    sy_userland_slab_count(counted);
    printf("objects of %zu bytes, %zu with what is between them: %u used, %u free\n",
           cache->obj_size, cache->actual_obj_size, cache->used_objs_count, cache->free_objs_count);
    printf("slabs of %zu bytes, %u objects each: %u, of them %u free, %u partial, %u full\n",
           cache->slab_size, cache->objs_per_slab, cache->slab_count, cache->free_slabs_count,
           cache->partial_slabs_count, cache->full_slabs_count);
}

/* Destroys a cache with all its objects and releases all its memory. */
static inline void objs_cache_destroy(struct Objs_cache *cache) {
    struct sy_userland_slab *all;
    if (!sy_userland_slab_lives(cache)) return;
    all = cache->all;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++) {
        if (all->caches[i].number != cache->number) continue;
        all->caches[i] = all->caches[--all->count];
        sy_cache_destroy_all(cache->cache);
        break;
    }
    pthread_mutex_unlock(&all->lock);
    cache->cache = NULL;
    sy_trim();
}

SY_END_DECLS

#endif
