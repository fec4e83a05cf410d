/*
 * checked.c: large objects of the general heap while checks are on. They are then allocated from a
 * separate heap, so that they are checked as small ones are.
 */
#include "heap/checked.h"

#include <errno.h>

#include "debug/watch.h"
#include "heap/instance.h"
#include "os/start.h"

static _Atomic(sy_heap *) large; /* never destroyed; NULL: not made yet */

bool sy_heap_checks_large(void) { return sy_watch_checks(0, "heap", true) & SY_CHECKED; }

/* Makes the heap. If two threads make one at the same time, one of the two is destroyed. */
static sy_heap *make_checked_heap(void) {
    sy_heap *fresh = sy_heap_create(&(sy_heap_config){.name = "heap"}), *seen = NULL;
    if (!fresh || atomic_compare_exchange_strong(&large, &seen, fresh)) return fresh;
    sy_heap_destroy_all(fresh);
    return seen;
}

void *sy_checked_large_alloc(size_t size, size_t align) {
    sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    if (!heap) heap = make_checked_heap();
    if (!heap) return NULL;
    return align > 16 ? sy_heap_aligned_alloc(heap, align, size) : sy_heap_alloc(heap, size);
}

bool sy_checked_owns(const void *cache) {
    const sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    return heap && ((const sy_cache *)cache)->quota == &heap->quota;
}

void sy_checked_large_free(void *object, size_t told) {
    sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    if (told == SIZE_MAX)
        sy_heap_free(heap, object);
    else
        sy_heap_free_sized(heap, object, told);
}
