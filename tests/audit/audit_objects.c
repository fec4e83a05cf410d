/*
 * audit_objects.c: each object has one owner, its own memory and its alignment, and is constructed
 * once. Earlier allocators gave one slot to two threads, placed objects across cache lines, or
 * constructed objects at each allocation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "support/child.h"

static sy_cache *make(sy_cache_config config) {
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    return cache;
}

/* ---- twenty allocations, then twenty frees, over and over ---- */

enum { BATCH = 20, LAPS = 1500 };

typedef struct worker {
    sy_cache *cache;
    size_t size;
    unsigned char mark;
} worker;

static void *twenty_and_twenty(void *arg) {
    const worker *worker_of = arg;
    size_t size = worker_of->size;
    unsigned char *mine[BATCH];
    for (int lap = 0; lap < LAPS; lap++) {
        for (int i = 0; i < BATCH; i++) {
            must((mine[i] = sy_cache_alloc(worker_of->cache)) != NULL);
            memset(mine[i], worker_of->mark + i, size);
        }
        for (int i = 0; i < BATCH; i++) {
            for (size_t at = 0; at < size; at += 8)
                must(mine[i][at] == (unsigned char)(worker_of->mark + i));
            must(mine[i][size - 1] == (unsigned char)(worker_of->mark + i));
            sy_cache_free(worker_of->cache, mine[i]);
        }
    }
    return NULL;
}

static void twenty_and_twenty_by_several_threads(void **state) {
    (void)state;
    static const size_t sizes[] = {16, 64, 512, 4096};
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED)
        for (int s = 0; s < 4; s++)
            for (int count = 2; count <= 16; count *= 2) {
                pthread_t threads[16];
                worker workers[16];
                sy_cache *cache = make((sy_cache_config){.size = sizes[s], .flags = flags});
                for (int i = 0; i < count; i++) {
                    workers[i] = (worker){cache, sizes[s], (unsigned char)(i * BATCH)};
                    must(pthread_create(&threads[i], NULL, twenty_and_twenty, &workers[i]) == 0);
                }
                for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
                assert_int_equal(sy_cache_in_use(cache), 0);
                assert_int_equal(sy_cache_verify(cache), 0);
                assert_int_equal(sy_cache_destroy(cache), 0);
            }
}

/* ---- caches never mix, though one thread uses them by turns ---- */

static void one_threads_caches_never_mix(void **state) {
    (void)state;
    enum { CACHES = 8, LIVE = 200 };
    sy_cache *caches[CACHES];
    void *objects[CACHES][LIVE] = {{NULL}};
    uint64_t random = 17;
    for (size_t c = 0; c < CACHES; c++) caches[c] = make((sy_cache_config){.size = 64});
    for (int step = 0; step < 50000; step++) {
        size_t c = next_random(&random) % CACHES, i = next_random(&random) % LIVE;
        if (objects[c][i]) {
            sy_cache_free(caches[c], objects[c][i]);
            objects[c][i] = NULL;
        } else {
            objects[c][i] = sy_cache_alloc(caches[c]);
            assert_ptr_equal(sy_slab_at((uintptr_t)objects[c][i])->owner, caches[c]);
        }
    }
    for (size_t c = 0; c < CACHES; c++) sy_cache_destroy_all(caches[c]);
}

/* ---- alignment and colours ---- */

static void objects_of_a_line_lie_in_a_line(void **state) {
    (void)state;
    for (unsigned flags = 0; flags <= SY_COLOUR; flags += SY_COLOUR) {
        sy_cache *cache = make((sy_cache_config){.size = 64, .align = 64, .flags = flags});
        for (int i = 0; i < 5000; i++) assert_int_equal((uintptr_t)sy_cache_alloc(cache) % 64, 0);
        sy_cache_destroy_all(cache);
    }
}

/* The number of different offsets at which slabs begin is the one in the statistics. */
static void colours_are_there_and_counted(void **state) {
    (void)state;
    for (size_t size = 8; size <= 192; size += 8) {
        bool seen[SY_COLOURS_MAX] = {false};
        unsigned colours = 0;
        sy_cache *cache = make((sy_cache_config){.size = size, .flags = SY_COLOUR});
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        assert_true(stats.colours >= 2);
        for (size_t i = 0; i < 2 * stats.colours * stats.slots_per_slab; i++) {
            const sy_slab *slab = sy_slab_at((uintptr_t)sy_cache_alloc(cache));
            size_t colour = (slab->first - slab->start) / 64;
            must((slab->first - slab->start) % 64 == 0 && colour < SY_COLOURS_MAX);
            if (!seen[colour]) colours++;
            seen[colour] = true;
        }
        assert_int_equal(colours, stats.colours);
        sy_cache_destroy_all(cache);
    }
}

/* ---- constructors ---- */

static size_t constructed, destructed;

static int construct(void *object, void *arg) {
    (void)arg;
    memset(object, 0xc5, 100);
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    for (int at = 0; at < 100; at++) must(((unsigned char *)object)[at] == 0xc5);
    destructed++;
}

/* 30 allocations of which 3 live at a time construct no slot twice. */
static void an_object_is_constructed_once_however_often_it_is_taken(void **state) {
    (void)state;
    constructed = destructed = 0;
    sy_cache *cache = make((sy_cache_config){
        .size = 100, .construct = construct, .destruct = destruct, .flags = SY_CHECKED});
    for (int lap = 0; lap < 10; lap++) {
        void *objects[3];
        for (int i = 0; i < 3; i++) objects[i] = sy_cache_alloc(cache);
        for (int i = 0; i < 3; i++)
            for (int at = 0; at < 100; at++)
                assert_int_equal(((unsigned char *)objects[i])[at], 0xc5);
        for (int i = 0; i < 3; i++) sy_cache_free(cache, objects[i]);
    }
    assert_int_equal(constructed, 3);
    assert_int_equal(destructed, 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(constructed, 3);
    assert_int_equal(destructed, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_and_twenty_by_several_threads),
        cmocka_unit_test(one_threads_caches_never_mix),
        cmocka_unit_test(objects_of_a_line_lie_in_a_line),
        cmocka_unit_test(colours_are_there_and_counted),
        cmocka_unit_test(an_object_is_constructed_once_however_often_it_is_taken),
    };
    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
