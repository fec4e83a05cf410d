/*
 * passed.h: caches with SY_PASSED (the kind `passed`). Each of their objects is a block of the C
 * library's malloc. So a tool that watches malloc treats the objects as other blocks: with its own
 * red zones and stacks, and in its search for leaks. Such a cache has no slabs; its objects are
 * constructed at each allocation.
 *
 * One table has the live objects of all caches, by a hash of the address. It holds inverted
 * addresses: a leak checker must not find pointers to the objects here.
 *
 *     sy_cache_alloc_slow --> sy_passed_alloc --> sy_os_block
 *     sy_cache_free_slow  --> sy_passed_free  --> sy_os_block_free
 *
 * Below: cache.h, os/. Used by cache.c and heap/.
 */
#ifndef SY_CACHE_PASSED_H
#define SY_CACHE_PASSED_H

#include "cache/cache.h"
#include "os/start.h"

/* The cache of the live object that begins at `object`; *size becomes the bytes that the program
 * asked for. NULL: no live object begins there. */
sy_cache *sy_passed_owner(const void *object, size_t *size);

/* Destructs and frees all live objects of the cache. No other thread uses the cache. */
void sy_passed_forget(sy_cache *cache);

/* Around a fork, holds the lock of the table. */
extern SY_HIDDEN const sy_part sy_passed_part;

#endif
