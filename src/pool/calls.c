/*
 * calls.c: the inline functions of pool.h as exported functions, for callers that cannot inline C
 * or were compiled with SY_NO_INLINE.
 */
#define SY_NO_INLINE 1

#include <slabyard/pool.h>

void *sy_pool_alloc(sy_pool *pool) { return sy_pool_alloc_inline(pool); }

void sy_pool_free(sy_pool *pool, void *object) { sy_pool_free_checked_inline(pool, object); }

bool sy_pool_may_free(sy_pool *pool, void *object) { return sy_pool_may_free_inline(pool, object); }
