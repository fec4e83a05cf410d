/*
 * calls.c: the inline doors as exported functions, for callers that cannot inline C.
 */
#define SY_NO_INLINE
#include <slabyard/cache.h>

void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }

void sy_cache_free(sy_cache *cache, void *object) { sy_cache_free_inline(cache, object); }
