/*
 * guarded.h: objects of a cache that are on pages of their own (watch/guard.h), with SY_GUARD.
 *
 *     sy_cache_alloc_slow --> sy_guarded_alloc --> sy_client_due --> sy_guard_alloc
 *                             or, if it is not its turn, or there is no room, the basic kind
 *     sy_cache_free_slow  --> sy_guarded_free_any --> sy_guarded_free, if the object lies there
 *                             or else the basic kind
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

/* Whether objects of such a cache can be: not if they have to lie somewhere (in memory of the
 * program's, or locked, or out of dumps), nor have handles, which lead to slabs. */
bool sy_guarded_can(unsigned flags, const sy_memory *memory);

/* The cache whose guarded object begins at `object`, or did, or lies around it; NULL: none's. */
sy_cache *sy_guarded_cache(const void *object);

/* Bytes of the live one that begins there; 0: none does. */
size_t sy_guarded_size(const void *object);

/* A guarded object of the cache, of `size` bytes up to a page, whether it is the turn of one or not.
 * NULL: the limit or the guards have no room for it. errno is kept. */
void *sy_guarded_make(sy_cache *cache, size_t size, size_t align);

/* Those of a cache that is destroyed are destructed, and go. */
void sy_guarded_forget(sy_cache *cache);

#endif
