/*
 * named.c: objects of a separate heap by handle. The word of an ordinal has the number of its
 * cache, and the heap's table says whether that cache belongs to the heap. The word may change at
 * any moment, so this answer is only a guess. The cache's own function then compares the whole
 * handle and decides.
 */
#include <errno.h>

#include "cache/directory.h"
#include "heap/instance.h"

/* The heap's cache that this handle may belong to; NULL: none. `handle` may be any 64 bits. */
static sy_cache *cache_of(const sy_heap *heap, sy_handle handle) {
    if (!heap->classes_of || (uint32_t)handle >= sy_ordinals_limit()) return NULL;
    uint64_t word = __atomic_load_n(&sy_directory_words()[(uint32_t)handle], __ATOMIC_RELAXED);
    uint32_t number = (uint32_t)word >> SY_HANDLE_CACHE;
    unsigned class_number = __atomic_load_n(&heap->classes_of[number], __ATOMIC_RELAXED);
    return class_number ? sy_heap_cache(heap, class_number) : NULL;
}

_Static_assert(SY_CLIENTS_MAX <= 1 << (32 - SY_HANDLE_CACHE), "a word has any client's number");

void *sy_heap_alloc_handle(sy_heap *heap, size_t size, sy_handle *handle) {
    if (!heap->classes_of) {
        errno = EINVAL;
        return NULL;
    }
    sy_cache *cache = sy_heap_cache_for(heap, size);
    return cache ? sy_handle_alloc_inline(cache, handle) : NULL;
}

void *sy_heap_get(const sy_heap *heap, sy_handle handle) {
    const sy_cache *cache = cache_of(heap, handle);
    return cache ? sy_handle_get_inline(cache, handle) : NULL;
}

bool sy_heap_free_handle(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    return cache && sy_handle_free_inline(cache, handle);
}

void *sy_heap_pin(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    return cache ? sy_handle_pin(cache, handle) : NULL;
}

void sy_heap_unpin(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    if (cache)
        sy_handle_unpin(cache, handle);
    else
        sy_heap_fault(heap, SY_FAULT_NOT_PINNED, NULL, NULL);
}

int sy_heap_each(sy_heap *heap, sy_handle_visit visit, void *arg) {
    if (!heap->classes_of) {
        errno = EINVAL;
        return -1;
    }
    int result = 0;
    for (unsigned i = 0; i < SY_HEAP_CACHES && result == 0; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache) result = sy_handle_each(cache, visit, arg);
    }
    return result;
}
