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
 *   - Objects may have any size; those of 16 bytes and more are aligned to 16. If there is no
 *     memory, an allocation returns NULL with ENOMEM. NULL may be passed to every function (in
 *     userland_slab it ended the process).
 *   - objs_cache_destroy and slab_allocator_destroy release all memory, including objects that were
 *     not freed, and return it to the operating system with all other free memory. Both may be
 *     called again, and in any order.
 *   - Any thread may use a cache.
 */
#ifndef SLABYARD_COMPAT_USERLAND_SLAB_H
#define SLABYARD_COMPAT_USERLAND_SLAB_H

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>

SY_BEGIN_DECLS

/* The memory of this structure belongs to the caller; only objs_cache_init writes it. */
struct Objs_cache {
    sy_cache *cache;      /* NULL: there is no cache */
    unsigned long number; /* of the cache */
    void (*ctor)(void *);
};

/* All caches of the program, so that slab_allocator_destroy can release them. A cache is identified
 * by its number, because an Objs_cache may outlive its cache, or end before it. */
struct sy_userland_cache {
    sy_cache *cache;
    unsigned long number;
};
struct sy_userland_slab {
    pthread_mutex_t lock; /* guards the rest */
    int ready;
    unsigned long numbers; /* used so far */
    struct sy_userland_cache *caches;
    size_t count;
};
/* NOLINTNEXTLINE(misc-definitions-in-headers): the linker keeps one of the weak ones. */
__attribute__((weak, visibility("hidden"))) struct sy_userland_slab sy_userland_slab = {
    PTHREAD_MUTEX_INITIALIZER, 0, 0, NULL, 0};

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
    pthread_mutex_unlock(&all->lock);
    sy_trim();
}

/* Adds a cache to the list. Returns its number, or 0: no memory, or no slab_allocator_init. */
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

/* Allocates an object and constructs it. Returns NULL with errno ENOMEM, or EINVAL: no cache, or it
 * was destroyed. */
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

/* Frees an object. Either argument may be NULL; the function then does nothing. */
static inline void objs_cache_free(struct Objs_cache *cache, void *obj) {
    if (cache && cache->cache) sy_cache_free(cache->cache, obj);
}

/* Destroys a cache with all its objects and releases all its memory. */
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
