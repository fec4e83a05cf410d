/*
 * checked.h: pools with checks on. They have the same public functions as plain pools, with another
 * layout in memory.
 *
 *     slots:    | zone | object 0 | zone | zone | object 1 | zone | ...
 *     records:  | of slot 0 | of slot 1 | ...
 *     free:     | number | number | ...             numbers of free slots; the last freed on top
 *
 * Each of the three is one range of addresses, committed as it is used.
 *
 * The inline words of such a pool are all NULL: its bump pointer and its free list are empty. So
 * each allocation calls sy_pool_grow, which calls sy_checked_pool_alloc. An inlined sy_pool_free
 * (compiled without SY_NO_INLINE) does not look for checks: it puts the object on the inline list,
 * from which the object is allocated again without a check. The frees of slabyard.hpp do look.
 *
 * All such pools are in one list, so that sy_verify and the check at the end of the process find
 * them. A thread may use its pool while another thread verifies it: the records are atomic, and the
 * verification skips a pool that is being reset or destroyed. But while damage in a pool is being
 * reported, no other thread may destroy the pool.
 *
 * Used by pool.c, calls.c and reclaim/. Below: debug/, os/.
 */
#ifndef SY_POOL_CHECKED_H
#define SY_POOL_CHECKED_H

#include <slabyard/pool.h>
#include <stdbool.h>

#include "os/start.h"

/* Plain pools have an extent, checked ones have none. */
static inline bool sy_pool_is_checked(const sy_pool *pool) { return pool->extent == NULL; }

/* Creates a checked pool. `checks`: flags of checks.h; the configuration is valid. NULL with
 * ENOMEM. */
sy_pool *sy_checked_pool_create(const sy_pool_config *config, size_t align, unsigned checks);
void sy_checked_pool_destroy(sy_pool *pool);
void *sy_checked_pool_alloc(sy_pool *pool);
void sy_checked_pool_free(sy_pool *pool, void *object);
/* Whether this is a live object of the pool. */
bool sy_checked_pool_is_live(const sy_pool *pool, const void *object);
/* Reports that an object was freed inline twice in a row. */
void sy_checked_pool_freed_twice(const sy_pool *pool, const void *object);
void sy_checked_pool_reset(sy_pool *pool);
size_t sy_checked_pool_in_use(const sy_pool *pool);
size_t sy_checked_pool_slot_size(const sy_pool *pool);
size_t sy_checked_pool_capacity(const sy_pool *pool);
/* Reports each damaged object; returns how many there are. */
size_t sy_checked_pool_verify(const sy_pool *pool);

/* Verifies all pools that check. Any thread, while others use their pools. */
size_t sy_checked_pools_verify(void);

extern SY_HIDDEN const sy_part sy_pools_part;

#endif
