/*
 * heaps.h: functions for the tests of heaps: checks that a heap is valid and ends empty, sizes of
 * all kinds, patterns, and faults that are caught.
 */
#ifndef SLABYARD_TESTS_HEAPS_H
#define SLABYARD_TESTS_HEAPS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "heap/instance.h"
#include "magazine/store.h"
#include "support/child.h"

enum { MIB = 1 << 20, UNIT = SY_UNIT_BYTES, KEPT_ERRNO = 77 };

static const size_t all_sizes[] = {
    0,       1,      8,      9,      16,      17,     100,           128,
    129,     1000,   1024,   1025,   5000,    65535,  65536,         131072,
    131073,  196608, 196609, 300000, 1 << 20, 700001, (2 << 20) + 1, 4 << 20,
    5 << 20, 9 << 20};
enum { SIZES = sizeof all_sizes / sizeof *all_sizes };

static inline sy_heap *make_heap(const char *name, unsigned flags) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = name, .flags = flags});
    must(heap != NULL);
    return heap;
}

static inline sy_heap *make_limited(const char *name, size_t hard) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = name, .limit = {.hard = hard}});
    must(heap != NULL);
    return heap;
}

/* The heap's caches are valid, and its counts are the sums of theirs. */
static inline void heap_is_sound(const sy_heap *heap, size_t objects) {
    sy_heap_stats stats;
    size_t used = 0, caches = 0;
    must(sy_heap_get_stats(heap, &stats) == 0);
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        must(sy_cache_verify(cache) == 0);
        must(cache->size == sy_heap_class_size(i) && cache->quota == &heap->quota);
        used += sy_cache_slab_bytes(cache);
        caches++;
    }
    must(stats.used == used && stats.caches == caches && stats.objects == objects);
    must(stats.live_bytes <= used);
    must(!stats.limit || used <= stats.limit);
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
}

static inline void end_heap(sy_heap *heap) {
    heap_is_sound(heap, 0);
    must(sy_heap_destroy(heap) == 0);
}

static inline size_t heap_used(const sy_heap *heap) {
    sy_heap_stats stats;
    must(sy_heap_get_stats(heap, &stats) == 0);
    return stats.used;
}

/* At either end of an object. */
static inline void fill_ends(void *object, size_t size, unsigned mark) {
    size_t end = size < 64 ? size : 64;
    memset(object, (int)(mark % 251), end);
    memset((char *)object + size - end, (int)(mark % 251), end);
}

static inline bool ends_filled(const void *object, size_t size, unsigned mark) {
    const unsigned char *bytes = object;
    size_t end = size < 64 ? size : 64;
    bool filled = true;
    for (size_t at = 0; at < end; at++)
        filled &= bytes[at] == mark % 251 && bytes[size - 1 - at] == mark % 251;
    return filled;
}

static inline void refused_for(const void *object, sy_refusal reason) {
    must(!object && errno == ENOMEM && sy_last_refusal() == reason);
}

static sy_fault last_fault;
static unsigned faults;

static inline void note_fault(const sy_fault *fault) {
    last_fault = *fault;
    faults++;
}

/* There was one fault since the last check. */
static inline void expect_fault(sy_fault_kind kind, const char *cache, const void *address,
                                const char *found) {
    assert_int_equal(faults, 1);
    assert_int_equal(last_fault.kind, kind);
    assert_string_equal(last_fault.cache, cache);
    assert_ptr_equal(last_fault.address, address);
    if (found)
        assert_string_equal(last_fault.found_cache, found);
    else
        assert_null(last_fault.found_cache);
    faults = 0;
}

#endif
