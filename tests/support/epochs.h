/*
 * epochs.h: functions for the tests of epochs: they use caches and epochs and check each result.
 * Also: many objects at a time, the slabs in which objects lie, and the result of sy_epoch_each.
 */
#ifndef SLABYARD_TESTS_EPOCHS_H
#define SLABYARD_TESTS_EPOCHS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/epoch.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "support/child.h"

enum { COUNT = 3000, SIZE = 200, KEPT_ERRNO = 77 };

static void *objects[COUNT], *others[COUNT];

static inline sy_cache *make(sy_cache_config config) {
    config.flags |= SY_EPOCHS;
    if (!config.size) config.size = SIZE;
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

static inline sy_epoch *open_epoch(const char *name) {
    sy_epoch *epoch = sy_epoch_create(name);
    must(epoch != NULL);
    return epoch;
}

static inline void begin(sy_epoch *epoch) {
    must(sy_epoch_begin(epoch) == 0 && sy_epoch_current() == epoch);
}

static inline void finish(sy_epoch *epoch) { must(sy_epoch_end(epoch) == 0); }

static inline void take(sy_cache *cache, void **into, size_t count) {
    for (size_t i = 0; i < count; i++) {
        must((into[i] = sy_cache_alloc(cache)) != NULL);
        memset(into[i], (int)(i % 251), 8);
    }
}

static inline void give(sy_cache *cache, void **from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        must(*(unsigned char *)from[i] == i % 251);
        sy_cache_free(cache, from[i]);
    }
}

static inline void take_in(sy_epoch *epoch, sy_cache *cache, void **into, size_t count) {
    begin(epoch);
    take(cache, into, count);
    finish(epoch);
}

/* The bins of the slab that an object lies in: one for each epoch, and one for none. */
static inline const sy_bins *home(const void *object) {
    return sy_slab_at((uintptr_t)object)->bins;
}

static inline bool all_in(void **among, size_t count, const sy_bins *bins) {
    for (size_t i = 0; i < count; i++)
        if (home(among[i]) != bins) return false;
    return true;
}

static inline sy_cache_stats stats_of(sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return stats;
}

static inline size_t slabs_of(sy_cache *cache) { return stats_of(cache).slabs; }

static inline void sound(sy_cache *cache, size_t live) {
    sy_cache_stats stats = stats_of(cache);
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
    must(stats.slots + stats.guarded ==
         stats.in_use + stats.in_depot + stats.in_loaded + stats.in_quarantine + stats.free);
    must(stats.in_use == live && sy_cache_in_use(cache) == live);
    must(stats.slabs == stats.full + stats.partial + stats.empty);
    must(stats.slabs_made - stats.slabs_released == stats.slabs);
    must(stats.mapped == stats.slots * stats.slot_size + stats.tail);
}

static inline void end(sy_cache *cache) {
    sound(cache, 0);
    must(sy_cache_destroy(cache) == 0);
}

/* The arguments for threads of a test. */
typedef struct job {
    sy_cache *cache;
    sy_epoch *epoch;
    pthread_barrier_t barrier;
} job;

/* The last result of sy_epoch_each. */
static sy_epoch_stats shown[64];
static size_t shown_count;

static inline int note(void *arg, const sy_epoch_stats *stats) {
    must(shown_count < sizeof shown / sizeof *shown);
    shown[shown_count++] = *stats;
    return arg && shown_count == *(size_t *)arg ? 4711 : 0;
}

static inline size_t look(void) {
    shown_count = 0;
    must(sy_epoch_each(note, NULL) == 0);
    return shown_count;
}

/* The statistics of the only epoch. */
static inline sy_epoch_stats only(void) {
    must(look() == 1);
    return shown[0];
}

#endif
