/*
 * guarded.h: objects of a cache that are on pages of their own (watch/guard.h), with SY_GUARD.
 *
 *     sy_cache_alloc_slow --> sy_client_due --> sy_guarded_alloc, or as ever if there is no room
 *     sy_cache_free_slow  --> sy_guarded_free, if the object lies there
 *
 * They are in no slab: live == out of the slabs and in no magazine, and guarded. They count for the
 * cache's own limit; no quota knows of them.
 *
 * Below: cache.h, watch/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_GUARDED_H
#define SY_CACHE_GUARDED_H

#include "cache/cache.h"
#include "watch/guard.h"

static inline bool sy_cache_guards(const sy_cache *cache) { return cache->flags & SY_GUARD; }

/* Whether slow paths have to look at each object. */
static inline bool sy_cache_watches(const sy_cache *cache) {
    return cache->flags & (SY_CHECKED | SY_GUARD);
}

/* Whether objects of such a cache can be: not if they have to lie somewhere (in memory of the
 * program's, or locked, or out of dumps), nor have handles, which lead to slabs. */
bool sy_guarded_can(unsigned flags, const sy_memory *memory);

/* An object of `size` bytes, at `align` or the cache's own if that is less, if it is this
 * allocation's turn; else NULL, errno kept. */
void *sy_guarded_alloc(sy_cache *cache, size_t size, size_t align);

/* Frees `object`, which lies there, or raises the fault that it is. errno is kept. */
void sy_guarded_free(sy_cache *cache, void *object, size_t told);
/* The same, but false if it is no live object of the cache. */
bool sy_guarded_try_free(sy_cache *cache, void *object);

/* The cache whose guarded object begins at `object`, or did, or lies around it; NULL: none's. */
sy_cache *sy_guarded_cache(const void *object);

/* Bytes of the live one that begins there; 0: none does. */
size_t sy_guarded_size(const void *object);

/* Whether an object of the cache begins there, or can (if it is neither checked nor guarded), and
 * the bytes that may be used of it. */
bool sy_cache_find_object(const sy_cache *cache, const void *object, size_t *bytes);

/* Those of a cache that is destroyed are destructed, and go. */
void sy_guarded_forget(sy_cache *cache);

#endif
