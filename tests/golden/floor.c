/*
 * floor.c: frees without the check for a double free, as in programs that leave this check out.
 */
#define SY_NO_DOUBLE_FREE_CHECK

#include <slabyard/cache.h>
#include <slabyard/pool.h>

#include "golden.h"

void golden_pool_release(void *where, void *object) { sy_pool_free(where, object); }

void golden_cache_release(void *where, void *object) { sy_cache_free(where, object); }
