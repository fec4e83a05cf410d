/*
 * passed.h: caches of which each object is a block of the C library's (SY_PASSED), so that a tool
 * that watches malloc sees them as it sees other blocks: with its own red zones and stacks, and as
 * leaks. Such a cache has no slabs; its objects are constructed at their allocation.
 *
 * What is live is in one table for all caches, by a hash of the address. It holds no address as it
 * is: whoever looks for leaks must not find them here.
 *
 *     sy_cache_alloc_slow --> sy_passed_alloc --> sy_os_block
 *     sy_cache_free_slow  --> sy_passed_free  --> sy_os_block_free
 *
 * They are the kind `passed`. Below: cache.h, os/. Used by cache.c and heap/.
 */
#ifndef SY_CACHE_PASSED_H
#define SY_CACHE_PASSED_H

#include "cache/cache.h"
#include "os/start.h"

/* The cache of the live object that begins there, and the bytes that were asked for; NULL: there is
 * none. */
sy_cache *sy_passed_owner(const void *object, size_t *size);

/* Frees all that is live, after its destructor. The cache is quiescent. */
void sy_passed_forget(sy_cache *cache);

extern SY_HIDDEN const sy_part sy_passed_part;

#endif
