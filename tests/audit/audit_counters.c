/*
 * audit_counters.c: the counters that earlier allocators kept for each size class can be computed
 * from Slabyard's statistics, and are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "support/child.h"

/* The counters of zns-slab. */
typedef struct perf_counters {
    uint64_t slow_path_hits;
    uint64_t new_slab_count;
    uint64_t list_move_partial_to_full;
    uint64_t list_move_full_to_partial;
    uint64_t current_partial_null; /* only an empty or a new slab had a free slot */
    uint64_t current_partial_full; /* the current slab had no free slot left */
    uint64_t empty_slab_recycled;
    uint64_t empty_slab_overflowed;
} perf_counters;

static perf_counters counters_of(const sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return (perf_counters){
        .slow_path_hits = stats.refills,
        .new_slab_count = stats.slabs_made,
        .list_move_partial_to_full = stats.slabs_filled,
        .list_move_full_to_partial = stats.slabs_opened,
        .current_partial_null = stats.slabs_reused,
        .current_partial_full = stats.slabs_filled,
        .empty_slab_recycled = stats.slabs_reused - stats.slabs_made,
        .empty_slab_overflowed = stats.slabs_released,
    };
}

enum { SLABS = 3, SLOTS = 1024, COUNT = SLABS * SLOTS };

static void *objects[COUNT];

static void expect(const sy_cache *cache, perf_counters expected) {
    perf_counters found = counters_of(cache);
    assert_int_equal(found.slow_path_hits, expected.slow_path_hits);
    assert_int_equal(found.new_slab_count, expected.new_slab_count);
    assert_int_equal(found.list_move_partial_to_full, expected.list_move_partial_to_full);
    assert_int_equal(found.list_move_full_to_partial, expected.list_move_full_to_partial);
    assert_int_equal(found.current_partial_null, expected.current_partial_null);
    assert_int_equal(found.current_partial_full, expected.current_partial_full);
    assert_int_equal(found.empty_slab_recycled, expected.empty_slab_recycled);
    assert_int_equal(found.empty_slab_overflowed, expected.empty_slab_overflowed);
}

/* Without magazines each allocation takes the slow path, so each move of a slab between lists
 * follows from a call of the program. */
static void counters_tell_what_happened(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .flags = SY_CHECKED});
    assert_non_null(cache);
    for (int i = 0; i < COUNT; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
    expect(cache, (perf_counters){COUNT, SLABS, SLABS, 0, SLABS, SLABS, 0, 0});

    sy_cache_free(cache, objects[5]);
    must((objects[5] = sy_cache_alloc(cache)) != NULL);
    expect(cache, (perf_counters){COUNT + 1, SLABS, SLABS + 1, 1, SLABS, SLABS + 1, 0, 0});

    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    expect(cache, (perf_counters){COUNT + 1, SLABS, SLABS + 1, 1 + SLABS, SLABS, SLABS + 1, 0,
                                  SLABS - 1}); /* one is kept */

    must((objects[0] = sy_cache_alloc(cache)) != NULL);
    expect(cache, (perf_counters){COUNT + 2, SLABS, SLABS + 1, 1 + SLABS, SLABS + 1, SLABS + 1, 1,
                                  SLABS - 1});
    sy_cache_free(cache, objects[0]);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void waste_is_what_no_object_has(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 1000});
    void *object = sy_cache_alloc(cache);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_int_equal(stats.waste, stats.mapped - stats.slots * 1000);
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_tell_what_happened),
        cmocka_unit_test(waste_is_what_no_object_has),
    };
    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
