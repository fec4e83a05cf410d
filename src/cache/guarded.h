/*
 * guarded.h: guarded objects, which lie on pages of their own (debug/guard.h). In a cache with
 * SY_GUARD one allocation in N makes a guarded object (option `guard`).
 *
 *     sy_cache_alloc_slow --> sy_guarded_alloc --> sy_client_due --> sy_guard_alloc
 *                             or, if it is not its turn or there is no room, the basic kind
 *     sy_cache_free_slow  --> sy_guarded_free_any --> sy_guarded_free, for a guarded object
 *                             or else the basic kind
 *
 * Guarded objects lie in no slab. So the live objects of a cache are the slots out of its slabs and
 * in no magazine, plus the guarded objects. Guarded objects count for the cache's own limit, but
 * for no quota. Objects of an epoch are not guarded.
 *
 * Below: cache.h, debug/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_GUARDED_H
#define SY_CACHE_GUARDED_H

#include "cache/cache.h"
#include "debug/guard.h"

static inline bool sy_cache_guards(const sy_cache *cache) { return cache->flags & SY_GUARD; }

/* Whether the platform has what these flags need. False, with ENOTSUP: it has not. */
bool sy_cache_flags_are_here(unsigned flags);

/* Whether objects of a cache with these flags in this memory can be guarded. They cannot if they
 * have to lie in certain memory (the program's, locked, or left out of core dumps), or if they have
 * handles, which lead to slabs. */
bool sy_guarded_can(unsigned flags, const sy_memory *memory);

/* The cache of the guarded object at this address: an object that begins there, live or freed, or
 * that contains the address. NULL: there is none. */
sy_cache *sy_guarded_cache(const void *object);

/* The size of the live guarded object that begins at `object`; 0: none does. */
size_t sy_guarded_size(const void *object);

/* Allocates a guarded object of `size` bytes, up to a page, whether an object is due to be guarded
 * or not. NULL: the cache's limit or the guarded region has no room for it. errno is kept. */
void *sy_guarded_make(sy_cache *cache, size_t size, size_t align);

/* Destructs and frees the guarded objects of a cache that is being destroyed. */
void sy_guarded_forget(sy_cache *cache);

/* How many guarded objects of the cache this thread is making or freeing at present. For the child
 * of a fork. */
unsigned sy_guarded_own(const sy_cache *cache);

#endif
