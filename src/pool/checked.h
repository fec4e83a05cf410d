/*
 * checked.h: pools that look for mistakes: the same doors over other means.
 *
 *     slots:    | zone | object 0 | zone | zone | object 1 | zone | ...
 *     records:  | of slot 0 | of slot 1 | ...
 *     free:     | number | number | ...             of the slots freed, the last on top
 *
 * Each of the three is one range of addresses, committed as it is used.
 *
 * The inline words of such a pool are all NULL, which shuts its bump pointer and its list: an
 * allocation comes to sy_pool_grow, and so to sy_checked_pool_alloc. A free that was compiled in
 * (without SY_NO_INLINE) cannot be shut: it puts the object on the inline list, from where it is
 * given again, unseen.
 *
 * All such pools are in one list, so that sy_verify and the end of the process find them. A thread
 * may use its pool while another one verifies it: the records are atomic, and a reset or a destroy
 * keeps the pool from being looked at meanwhile. But while damage in a pool is being reported, no
 * other thread may destroy the pool.
 *
 * Used by pool.c, calls.c and keep/. Below: watch/, os/.
 */
#ifndef SY_POOL_CHECKED_H
#define SY_POOL_CHECKED_H

#include <slabyard/pool.h>
#include <stdbool.h>

#include "os/start.h"

/* A pool of the other kind has an extent. */
static inline bool sy_pool_is_checked(const sy_pool *pool) { return pool->extent == NULL; }

/* `checks`: flags of checks.h; the configuration is valid. NULL with ENOMEM. */
sy_pool *sy_checked_pool_create(const sy_pool_config *config, size_t align, unsigned checks);
void sy_checked_pool_destroy(sy_pool *pool);
void *sy_checked_pool_alloc(sy_pool *pool);
void sy_checked_pool_free(sy_pool *pool, void *object);
/* The object was freed inline, and is so again. */
void sy_checked_pool_freed_twice(const sy_pool *pool, const void *object);
void sy_checked_pool_reset(sy_pool *pool);
size_t sy_checked_pool_in_use(const sy_pool *pool);
size_t sy_checked_pool_slot_size(const sy_pool *pool);
size_t sy_checked_pool_capacity(const sy_pool *pool);
/* Objects that are damaged; each is reported. */
size_t sy_checked_pool_verify(const sy_pool *pool);

/* The same for all pools that check. Any thread, while others use their pools. */
size_t sy_checked_pools_verify(void);

extern SY_HIDDEN const sy_part sy_pools_part;

#endif
