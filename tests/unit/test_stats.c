/*
 * test_stats.c: the figures add up as stats.h says, and agree with what the test did.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "support/child.h"
#include "support/emulated.h"
#include "support/page_size.h"
#include "support/resident.h"
#include "support/sanitized.h"

static void add_up(const sy_cache_stats *stats) {
    must(stats->slots + stats->guarded ==
         stats->in_use + stats->in_depot + stats->in_loaded + stats->free);
    must(stats->slabs == stats->full + stats->partial + stats->empty);
    must(stats->mapped == stats->slots * stats->slot_size + stats->tail);
    must(stats->slots == stats->slabs * stats->slots_per_slab);
    must(stats->mapped >= stats->slabs * stats->slab_bytes);
    must(stats->slabs == stats->slabs_made - stats->slabs_released);
    must(stats->discarded + stats->never_used <= stats->mapped);
    must(stats->depot_steals <= stats->depot_hits);
}

static sy_cache_stats stats_of(const sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    add_up(&stats);
    return stats;
}

static sy_stats process_stats(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.mapped == stats.slabs + stats.spans + stats.units_free + stats.chunk_headers);
    must(stats.units_clean <= stats.units_free);
    must(stats.chunk_headers == stats.chunks * 65536);
    return stats;
}

static sy_cache *make(sy_cache_config config) {
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

/* ---- the figures of the library and of the system ---- */

/* The anonymous memory of the process, in bytes. */
static size_t resident(void) {
    size_t kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Anonymous: %zu", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes << 10;
}

static size_t most_held(void) {
    sy_stats stats = process_stats();
    return stats.mapped - stats.units_clean + stats.magazines + stats.side;
}

enum { SLACK = 256 << 10 }; /* bytes: the map, and pages that are used in part */

/* The process has grown by as much as the library says that it holds. The last slab and the headers
 * of chunks are used in part only. */
static void expect_held(size_t before) {
    size_t said = most_held(), unused = 65536 + process_stats().chunk_headers;
    size_t now = resident(), came = now > before ? now - before : 0;
    must(said + SLACK >= came);
    must(came + unused + SLACK >= said);
}

static void hold_memory(void *arg) {
    (void)arg;
    enum { COUNT = 100000, SIZE = 200 };
    static void *objects[COUNT];
    take_small_pages_only();
    memset(objects, 1, sizeof objects);
    size_t before = resident();
    if (!before || SANITIZED || is_emulated()) return; /* no figure, or memory of a tool in it */
    sy_cache *cache = make((sy_cache_config){.size = SIZE});
    objects[0] = sy_cache_alloc(cache);
    expect_held(before);
    must(process_stats().magazines < 128 << 10);
    for (int i = 1; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < COUNT; i++) memset(objects[i], 2, SIZE);
    expect_held(before);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    expect_held(before);
    sy_trim();
    expect_held(before);
    must(most_held() < 1 << 20);
    sy_cache_destroy(cache);
}

static void what_is_held_is_said(void **state) {
    (void)state;
    needs_small_pages();
    assert_int_equal(in_child(hold_memory, NULL), 0);
}

static void null_is_refused(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 8});
    sy_cache_stats stats;
    errno = 0;
    assert_int_equal(sy_cache_get_stats(NULL, &stats), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(sy_cache_get_stats(cache, NULL), -1);
    assert_int_equal(errno, EINVAL);
    sy_cache_destroy(cache);
}

static void the_kind_of_objects_is_told(void **state) {
    (void)state;
    sy_cache *cache =
        make((sy_cache_config){.name = "order", .size = 100, .align = 32, .limit = 5000});
    sy_cache_stats stats = stats_of(cache);
    assert_string_equal(stats.name, "order");
    assert_int_equal(stats.object_size, 100);
    assert_int_equal(stats.slot_size, 128);
    assert_int_equal(stats.align, 32);
    assert_int_equal(stats.limit, 5000);
    assert_int_equal(stats.slab_bytes / 128, stats.slots_per_slab);
    assert_true(stats.magazine_items > 0 && stats.magazine_items <= 5000 / 8);
    assert_int_equal(stats.slabs, 0);
    sy_cache_destroy(cache);
    cache = make((sy_cache_config){.size = 8, .flags = SY_CHECKED});
    stats = stats_of(cache);
    assert_int_equal(stats.magazine_items, 0);
    assert_int_equal(stats.limit, 0);
    sy_cache_destroy(cache);
}

static void the_figures_add_up_at_any_moment(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 40, 100, 4096, 200000, 5 << 20};
    static void *objects[2000];
    for (int s = 0; s < 6; s++)
        for (unsigned kind = 0; kind < 4; kind++) {
            unsigned flags = (kind & 1 ? SY_CHECKED : 0) | (kind & 2 ? SY_COLOUR : 0);
            sy_cache *cache = make((sy_cache_config){.size = sizes[s], .flags = flags});
            size_t most = sizes[s] < 100000 ? 2000 : 20, live = 0;
            uint64_t random = 15;
            memset(objects, 0, sizeof objects);
            for (int step = 0; step < 10000; step++) {
                void **object = &objects[next_random(&random) % most];
                if (*object) {
                    sy_cache_free(cache, *object);
                    *object = NULL;
                    live--;
                } else {
                    must((*object = sy_cache_alloc(cache)) != NULL);
                    live++;
                }
                if (step % 100) continue;
                if (step % 1700 == 0) sy_cache_trim(cache);
                sy_cache_stats stats = stats_of(cache);
                assert_int_equal(stats.in_use, live);
                assert_int_equal(sy_cache_in_use(cache), live);
                process_stats();
            }
            sy_cache_destroy_all(cache);
        }
}

static void events_are_counted(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    static void *objects[30000];
    for (int i = 0; i < 30000; i++) objects[i] = sy_cache_alloc(cache);
    sy_cache_stats stats = stats_of(cache);
    assert_true(stats.refills >= 30000 / stats.magazine_items);
    assert_true(stats.refills < 30000 / 16);
    assert_int_equal(stats.flushes, 0);
    assert_int_equal(stats.depot_hits, 0);
    assert_true(stats.depot_misses >= 30000 / stats.magazine_items);
    assert_int_equal(stats.slabs_released, 0);
    assert_int_equal(stats.slabs_made, (30000 + 1023) / 1024);
    for (int i = 0; i < 30000; i++) sy_cache_free(cache, objects[i]);
    stats = stats_of(cache);
    assert_true(stats.flushes > 0);
    uint64_t refills = stats.refills;
    for (size_t i = 0; i < stats.in_depot + stats.in_loaded; i++)
        objects[i] = sy_cache_alloc(cache);
    sy_cache_stats after = stats_of(cache);
    assert_true(after.depot_hits >= stats.in_depot / after.magazine_items);
    assert_int_equal(after.refills, refills);
    sy_cache_destroy_all(cache);
}

static void slots_never_used_are_told(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64, .flags = SY_CHECKED});
    for (int i = 0; i < 100; i++) sy_cache_alloc(cache);
    sy_cache_stats stats = stats_of(cache);
    assert_int_equal(stats.never_used, stats.mapped - 100 * 64);
    assert_int_equal(stats.partial, 1);
    sy_cache_destroy_all(cache);
}

static void full_partial_and_empty_slabs_are_told_apart(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64, .flags = SY_CHECKED});
    static void *objects[3 * 1024];
    for (int i = 0; i < 3 * 1024; i++) objects[i] = sy_cache_alloc(cache);
    sy_cache_stats stats = stats_of(cache);
    assert_int_equal(stats.full, 3);
    for (int i = 0; i < 1024; i++) sy_cache_free(cache, objects[i]);
    sy_cache_free(cache, objects[1024]);
    stats = stats_of(cache);
    assert_int_equal(stats.full, 1);
    assert_int_equal(stats.partial, 1);
    assert_int_equal(stats.empty, 1);
    sy_cache_destroy_all(cache);
}

static void the_process_knows_its_caches_and_their_slabs(void **state) {
    (void)state;
    sy_stats before = process_stats();
    sy_cache *caches[50];
    size_t slabs = 0;
    for (size_t i = 0; i < 50; i++) {
        caches[i] = make((sy_cache_config){.size = (size_t)16 << i % 12});
        for (int j = 0; j < 10; j++) sy_cache_alloc(caches[i]);
        slabs += stats_of(caches[i]).mapped;
    }
    sy_stats after = process_stats();
    assert_int_equal(after.caches - before.caches, 50);
    assert_int_equal(after.slabs - before.slabs, slabs);
    assert_int_equal(after.spans, before.spans);
    assert_true(after.side > before.side);
    for (int i = 0; i < 50; i++) sy_cache_destroy_all(caches[i]);
    after = process_stats();
    assert_int_equal(after.caches, before.caches);
    assert_int_equal(after.slabs, before.slabs);
}

static void spans_are_what_the_heap_gave(void **state) {
    (void)state;
    static const size_t sizes[] = {131073, 200000, 1 << 20, 3 << 20, 5 << 20, 64 << 20};
    void *spans[6];
    sy_stats before = process_stats();
    size_t bytes = 0;
    for (int i = 0; i < 6; i++) {
        spans[i] = sy_malloc(sizes[i]);
        bytes += sy_usable_size(spans[i]);
        assert_int_equal(process_stats().spans - before.spans, bytes);
    }
    for (int i = 0; i < 6; i++) sy_free(spans[i]);
    assert_int_equal(process_stats().spans, before.spans);
}

/* A kept span of the heap that is longer than needed serves an object of a cache. */
static void slabs_in_used_spans_are_slabs(void **state) {
    (void)state;
    sy_trim();
    sy_stats before = process_stats();
    sy_free(sy_malloc(9 << 20));
    sy_cache *cache = make((sy_cache_config){.size = 6 << 20});
    void *object = sy_cache_alloc(cache);
    sy_stats after = process_stats();
    assert_int_equal(after.spans, before.spans);
    assert_true(after.slabs - before.slabs >= 6 << 20);
    stats_of(cache);
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_is_said),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(the_kind_of_objects_is_told),
        cmocka_unit_test(the_figures_add_up_at_any_moment),
        cmocka_unit_test(events_are_counted),
        cmocka_unit_test(slots_never_used_are_told),
        cmocka_unit_test(full_partial_and_empty_slabs_are_told_apart),
        cmocka_unit_test(the_process_knows_its_caches_and_their_slabs),
        cmocka_unit_test(spans_are_what_the_heap_gave),
        cmocka_unit_test(slabs_in_used_spans_are_slabs),
    };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
