/*
 * calls.c: the inline functions of slabyard/cache.h and slabyard/handle.h as exported functions,
 * for callers that cannot inline C.
 */
#define SY_NO_INLINE
#include <slabyard/cache.h>
#include <slabyard/handle.h>

void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }

void sy_cache_free(sy_cache *cache, void *object) { sy_cache_free_inline(cache, object); }

bool sy_cache_may_free(sy_cache *cache, const void *object) {
    return sy_cache_may_free_inline(cache, object);
}

void *sy_handle_alloc(sy_cache *cache, sy_handle *handle) {
    return sy_handle_alloc_inline(cache, handle);
}

void *sy_handle_get(const sy_cache *cache, sy_handle handle) {
    return sy_handle_get_inline(cache, handle);
}

bool sy_handle_free(sy_cache *cache, sy_handle handle) {
    return sy_handle_free_inline(cache, handle);
}

void *sy_read_get(const sy_cache *cache, sy_handle handle) {
    return sy_read_get_inline(cache, handle);
}
