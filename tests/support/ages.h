/*
 * ages.h: functions for the tests of reclaiming: a clock that stands still, turns and passes that
 * the test makes, objects that are filled and checked, and a check of all invariants.
 */
#ifndef SLABYARD_TESTS_AGES_H
#define SLABYARD_TESTS_AGES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "magazine/turn.h"
#include "os/fake.h"
#include "os/os.h"
#include "reclaim/reclaim.h"
#include "support/child.h"

enum {
    DECAY_MS = 100,
    COUNT = 20000,
    KEPT_ERRNO = 77,
    ENOUGH_PASSES = 8, /* more than memory takes from a magazine to the OS */
};

static const uint64_t DECAY_NS = DECAY_MS * UINT64_C(1000000);

static unsigned char *objects[COUNT];

/* ---- turns and passes ---- */

static sy_cache *driver; /* it has no magazines: each operation is a slow path */

static inline void take_turns(unsigned count) {
    for (; count > 0; count--) sy_cache_free(driver, sy_cache_alloc(driver));
}

static inline bool pass_at_work(void) { return atomic_load(&sy_turn_wanted); }

static inline void end_pass(void) {
    while (pass_at_work()) take_turns(1);
    take_turns(SY_TURNS_PER_LOOK); /* this thread has looked at its own slots, too */
}

/* Advances the clock and begins a pass by age. */
static inline void begin_pass(void) {
    sy_fake_advance_clock(sy_reclaim_interval());
    for (int i = 0; i < SY_TURNS_PER_LOOK && !pass_at_work(); i++) take_turns(1);
    must(pass_at_work());
}

static inline void pass(void) {
    begin_pass();
    end_pass();
}

static inline void passes(unsigned count) {
    while (count-- > 0) pass();
}

/* The same as in the maintenance thread, including the work that slow paths do not do. */
static inline void maintain(unsigned count) {
    while (count-- > 0) {
        sy_fake_advance_clock(DECAY_NS);
        sy_reclaim_by_age();
    }
}

/* ---- caches and objects ---- */

static inline sy_cache *make_with(sy_cache_config config) {
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

static inline sy_cache *make(size_t size, unsigned flags) {
    return make_with((sy_cache_config){.name = "aged", .size = size, .flags = flags});
}

static inline void take(sy_cache *cache, size_t size, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        memset(objects[i] = sy_cache_alloc(cache), (int)(i % 251), size);
}

static inline void give(sy_cache *cache, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) sy_cache_free(cache, objects[i]);
}

static inline void is_whole(size_t size, size_t i) {
    for (size_t at = 0; at < size; at++) must(objects[i][at] == i % 251);
}

static inline sy_cache_stats stats_of(const sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    must(stats.slots + stats.guarded == stats.in_use + stats.in_depot + stats.in_loaded +
                                            stats.in_quarantine + stats.free + stats.retired);
    return stats;
}

static inline bool is_resident(const void *address) {
    uintptr_t page = (uintptr_t)address & ~(sy_os_page_size() - 1);
    unsigned char state;
    if (mincore((void *)page, sy_os_page_size(), &state) != 0) return false; /* nor mapped */
    return state & 1;
}

static inline void sound(sy_cache *cache) {
    if (cache) must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
}

static inline void end(sy_cache *cache) {
    sound(cache);
    must(sy_cache_destroy(cache) == 0);
}

static inline void discards_nothing(uint64_t since) {
    must(sy_fake_bytes(SY_FAKE_DISCARD) == since);
}

/* ---- around each test ---- */

/* A slab so large that it begins a pass by growth. The next one begins after another MiB. */
static inline void grow_once(void) {
    sy_cache *cache = make(2 << 20, 0);
    sy_cache_free(cache, sy_cache_alloc(cache));
    end_pass();
    end(cache);
}

static inline int begin(void **state) {
    static uint64_t years;
    (void)state;
    sy_fake_reset();
    sy_fake_set_cpu(0); /* one shard of each depot */
    sy_fake_set_clock(++years * UINT64_C(100000000000000000));
    sy_set_decay(DECAY_MS);
    driver = make(8, SY_CHECKED);
    grow_once();
    sy_trim();
    take_turns(SY_TURNS_PER_LOOK); /* time is counted from here */
    pass();                        /* and this thread has looked at its slots */
    return 0;
}

static inline int leave(void **state) {
    (void)state;
    sy_fake_succeed(SY_FAKE_ANY);
    end_pass();
    end(driver);
    sy_trim();
    sound(NULL);
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, leave)

#endif
