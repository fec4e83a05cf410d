/*
 * handles.h: functions for the tests of handles: they use caches and objects and check each result.
 * Also: many objects at a time, handles that must be refused, and faults that are caught.
 */
#ifndef SLABYARD_TESTS_HANDLES_H
#define SLABYARD_TESTS_HANDLES_H

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
#include "cache/directory.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "support/child.h"

enum { COUNT = 3000, KEPT_ERRNO = 77 };

static sy_handle handles[COUNT];
static void *objects[COUNT];

static inline sy_cache *make(sy_cache_config config) {
    config.flags |= SY_HANDLES;
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    must(sy_cache_in_use(cache) == 0);
    return cache;
}

static inline sy_cache *make_plain(size_t size) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "plain", .size = size});
    must(cache != NULL);
    return cache;
}

static inline void sound(sy_cache *cache, size_t live) {
    sy_cache_stats stats;
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
    must(sy_cache_get_stats(cache, &stats) == 0);
    must(stats.slots == stats.in_use + stats.in_depot + stats.in_loaded + stats.in_quarantine +
                            stats.free + stats.retired);
    must(stats.in_use == live && sy_cache_in_use(cache) == live && stats.retired == 0);
    must(stats.mapped == stats.slots * stats.slot_size + stats.tail);
}

static inline void end(sy_cache *cache) {
    sound(cache, 0);
    must(sy_cache_destroy(cache) == 0);
}

static inline void *get(sy_cache *cache, sy_handle *handle) {
    void *object = sy_handle_alloc(cache, handle);
    must(object != NULL && *handle != 0);
    must(sy_handle_get(cache, *handle) == object);
    return object;
}

static inline void take_all(sy_cache *cache, size_t size) {
    for (size_t i = 0; i < COUNT; i++)
        memset(objects[i] = get(cache, &handles[i]), (int)(i % 251), size);
}

static inline bool is_filled(size_t i, size_t size) {
    const unsigned char *object = objects[i];
    for (size_t at = 0; at < size; at++)
        if (object[at] != i % 251) return false;
    return true;
}

static inline void give_all(sy_cache *cache) {
    for (size_t i = 0; i < COUNT; i++) must(sy_handle_free(cache, handles[i]));
}

/* Each function refuses it as a handle of the cache. */
static inline void refused(sy_cache *cache, sy_handle handle) {
    errno = KEPT_ERRNO;
    must(sy_handle_get(cache, handle) == NULL);
    must(!sy_handle_free(cache, handle));
    must(errno == KEPT_ERRNO);
    must(sy_handle_pin(cache, handle) == NULL);
    must(errno != EAGAIN);
}

static sy_fault last_fault;
static unsigned faults;

static inline void note_fault(const sy_fault *fault) {
    last_fault = *fault;
    faults++;
}

/* There was one fault since the last check. */
static inline void expect_fault(sy_fault_kind kind, const void *address, const char *found) {
    assert_int_equal(faults, 1);
    assert_int_equal(last_fault.kind, kind);
    assert_string_equal(last_fault.cache, "order");
    assert_int_equal(last_fault.object_size, 48);
    assert_ptr_equal(last_fault.address, address);
    if (found)
        assert_string_equal(last_fault.found_cache, found);
    else
        assert_null(last_fault.found_cache);
    faults = 0;
}

static inline sy_cache *make_orders(unsigned flags) {
    return make((sy_cache_config){.name = "order", .size = 48, .flags = flags});
}

#endif
