/*
 * movable.h: included before the tests of handles, to run them again with caches whose objects move
 * (SY_MOVABLE). Such a cache is made wherever the configuration permits it.
 *
 * These tests compare addresses. So each thread enters a read guard before it uses a handle, and
 * stays in it, and no object moves. With MOVABLE_BETWEEN_STEPS, a test enters and leaves guards
 * itself.
 */
#ifndef SLABYARD_TESTS_MOVABLE_H
#define SLABYARD_TESTS_MOVABLE_H

#include <slabyard/slabyard.h>

static inline sy_cache *movable_create(const sy_cache_config *config) {
    bool may = config && config->flags & SY_HANDLES && !(config->flags & SY_EPOCHS) &&
               !config->construct && !config->destruct;
    if (!may) return sy_cache_create(config);
    sy_cache_config movable = *config;
    movable.flags |= SY_MOVABLE;
    return sy_cache_create(&movable);
}

#ifdef MOVABLE_BETWEEN_STEPS
static inline void movable_enter(void) {}
#else
static _Thread_local bool movable_in_guard;

static inline void movable_enter(void) {
    if (!movable_in_guard) sy_read_enter();
    movable_in_guard = true;
}
#endif

static inline void *movable_alloc(sy_cache *cache, sy_handle *handle) {
    movable_enter();
    return sy_handle_alloc(cache, handle);
}

static inline void *movable_alloc_unnamed(sy_cache *cache) {
    movable_enter();
    return sy_cache_alloc(cache);
}

static inline size_t movable_alloc_batch(sy_cache *cache, void **objects, size_t count) {
    movable_enter();
    return sy_cache_alloc_batch(cache, objects, count);
}

static inline void *movable_get(const sy_cache *cache, sy_handle handle) {
    movable_enter();
    return sy_read_get(cache, handle);
}

#define sy_cache_create      movable_create
#define sy_handle_alloc      movable_alloc
#define sy_handle_get        movable_get
#define sy_cache_alloc       movable_alloc_unnamed
#define sy_cache_alloc_batch movable_alloc_batch

#endif
