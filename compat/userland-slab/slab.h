/*
 * slab.h: the object caches of userland_slab, over Slabyard's.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/userland-slab -lslabyard
 *
 * Where its document left a choice, or was not kept:
 *   - slab_allocator_init and objs_cache_init say whether they succeeded: not 0, not NULL. Without
 *     slab_allocator_init there are no caches: objs_cache_init gives NULL;
 *   - the constructor is called at each allocation, as it says, and never for anything else;
 *   - objects may have any size, 16 bytes and more are 16-aligned; without memory an allocation is
 *     NULL with ENOMEM, and NULL may be passed everywhere, where it ended the process;
 *   - objs_cache_destroy and slab_allocator_destroy give all memory back to the system, objects
 *     that are not freed included, and what else is free; both may be called again, and in any
 *     order;
 *   - any thread may use a cache.
 */
#ifndef SLABYARD_COMPAT_USERLAND_SLAB_H
#define SLABYARD_COMPAT_USERLAND_SLAB_H

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>

SY_BEGIN_DECLS

/* The caller's; only objs_cache_init writes it. */
struct Objs_cache {
    sy_cache *cache;      /* NULL: there is none */
    unsigned long number; /* of it */
    void (*ctor)(void *);
};

/* The caches that there are, so that slab_allocator_destroy can give them up: once a program. They
 * are known by number, as an Objs_cache may outlive its cache, or go before it. */
struct sy_userland_cache {
    sy_cache *cache;
    unsigned long number;
};
struct sy_userland_slab {
    pthread_mutex_t lock; /* guards the rest */
    int ready;
    unsigned long numbers; /* given */
    struct sy_userland_cache *caches;
    size_t count;
};
__attribute__((weak, visibility("hidden"))) struct sy_userland_slab sy_userland_slab = {
    PTHREAD_MUTEX_INITIALIZER, 0, 0, NULL, 0};

/* 1. */
static inline int slab_allocator_init(void) {
    pthread_mutex_lock(&sy_userland_slab.lock);
    sy_userland_slab.ready = 1;
    pthread_mutex_unlock(&sy_userland_slab.lock);
    return 1;
}

/* All caches go, with all objects. */
static inline void slab_allocator_destroy(void) {
    struct sy_userland_slab *all = &sy_userland_slab;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->count; i++) sy_cache_destroy_all(all->caches[i].cache);
    sy_free(all->caches);
    all->caches = NULL;
    all->count = 0;
    all->ready = 0;
    pthread_mutex_unlock(&all->lock);
    sy_trim();
}

/* Adds a cache to those that there are; its number, or 0: no memory, or no slab_allocator_init. */
static inline unsigned long sy_userland_slab_add(sy_cache *cache) {
    struct sy_userland_slab *all = &sy_userland_slab;
    struct sy_userland_cache *more = NULL;
    unsigned long number = 0;
    pthread_mutex_lock(&all->lock);
    if (all->ready)
        more = (struct sy_userland_cache *)sy_realloc(all->caches, (all->count + 1) * sizeof *more);
    if (more) {
        all->caches = more;
        more[all->count].cache = cache;
        more[all->count++].number = number = ++all->numbers;
    }
    pthread_mutex_unlock(&all->lock);
    return number;
}

/* `cache`, which now gives objects of `obj_size` bytes, each of which `ctor` (NULL: nobody) is
 * called with when it is allocated. Size 0 is 1. NULL with errno EINVAL (no cache) or ENOMEM (no
 * memory, or no slab_allocator_init). */
static inline struct Objs_cache *objs_cache_init(struct Objs_cache *cache, size_t obj_size,
                                                 void (*ctor)(void *)) {
    sy_cache_config config;
    if (!cache) {
        errno = EINVAL;
        return NULL;
    }
    memset(&config, 0, sizeof config);
    config.name = "Objs_cache";
    config.size = obj_size ? obj_size : 1;
    cache->ctor = ctor;
    cache->cache = sy_cache_create(&config);
    if (!cache->cache) return NULL;
    cache->number = sy_userland_slab_add(cache->cache);
    if (cache->number) return cache;
    sy_cache_destroy(cache->cache);
    cache->cache = NULL;
    errno = ENOMEM;
    return NULL;
}

/* An object, constructed; NULL with ENOMEM, or EINVAL: no cache, or it was destroyed. */
static inline void *objs_cache_alloc(struct Objs_cache *cache) {
    void *object;
    if (!cache || !cache->cache) {
        errno = EINVAL;
        return NULL;
    }
    object = sy_cache_alloc(cache->cache);
    if (object && cache->ctor) cache->ctor(object);
    return object;
}

/* Gives an object back; NULL is a no-op, for either. */
static inline void objs_cache_free(struct Objs_cache *cache, void *obj) {
    if (cache && cache->cache) sy_cache_free(cache->cache, obj);
}

/* All memory of the cache goes, with all objects. */
static inline void objs_cache_destroy(struct Objs_cache *cache) {
    struct sy_userland_slab *all = &sy_userland_slab;
    if (!cache || !cache->cache) return;
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
