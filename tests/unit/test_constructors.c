/*
 * test_constructors.c: a cache constructs each slot once and destructs it once, whatever fails.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "cache/cache.h"
#include "support/caches.h"
#include "support/child.h"

enum { OBJECT = 96 };
static _Atomic size_t constructed, destructed;
static _Atomic int fail_at; /* which call of the constructor fails; 0: none */
static const uint64_t BUILT = 0x6275696c74, RAW = 0;

/* A slot is marked while it is constructed, so a second construction or destruction is noticed. */
static int construct(void *object, void *arg) {
    must(arg == &constructed);
    uint64_t *mark = object;
    if (atomic_load(&fail_at) && atomic_fetch_sub(&fail_at, 1) == 1) {
        errno = EIO;
        return -1;
    }
    must(*mark == RAW);
    *mark = BUILT;
    atomic_fetch_add(&constructed, 1);
    return 0;
}

static void destruct(void *object, void *arg) {
    must(arg == &constructed);
    uint64_t *mark = object;
    must(*mark == BUILT);
    *mark = RAW;
    atomic_fetch_add(&destructed, 1);
}

static sy_cache *make_constructed(unsigned flags, size_t limit) {
    atomic_store(&constructed, 0);
    atomic_store(&destructed, 0);
    /* Memory that went back to the system reads as zero: the constructor finds RAW. */
    sy_trim();
    return make((sy_cache_config){.size = OBJECT,
                                  .construct = construct,
                                  .destruct = destruct,
                                  .arg = &constructed,
                                  .limit = limit,
                                  .flags = flags});
}

static void must_be_built(void *object) { must(*(uint64_t *)object == BUILT); }

static void each_slot_is_constructed_once_and_destructed_once(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make_constructed(FLAGS[flags], 0);
        static void *objects[3000];
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 3000; i++) must_be_built(objects[i] = get(cache));
            for (int i = 0; i < 3000; i++) sy_cache_free(cache, objects[i]);
        }
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        assert_int_equal(stats.constructed, constructed);
        assert_int_equal(stats.destructed, destructed);
        assert_true(constructed >= 3000 && constructed - destructed <= stats.slots);
        end(cache);
        assert_int_equal(destructed, constructed);
    }
}

static void trims_keep_them_paired(void **state) {
    (void)state;
    sy_cache *cache = make_constructed(0, 0);
    static void *objects[3000];
    uint64_t random = 9;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3000; i++)
            if (!objects[i] && next_random(&random) % 3) must_be_built(objects[i] = get(cache));
        for (int i = 0; i < 3000; i++)
            if (objects[i] && next_random(&random) % 8) {
                must_be_built(objects[i]);
                sy_cache_free(cache, objects[i]);
                objects[i] = NULL;
            }
        sy_cache_trim(cache);
        sound(cache);
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        assert_int_equal(stats.constructed, constructed);
        assert_int_equal(stats.destructed, destructed);
        assert_true(constructed - destructed >= stats.in_use);
        assert_true(constructed - destructed <= stats.slots);
    }
    assert_true(destructed > 0);
    for (int i = 0; i < 3000; i++) {
        if (objects[i]) must_be_built(objects[i]);
        sy_cache_free(cache, objects[i]);
        objects[i] = NULL;
    }
    end(cache);
    assert_int_equal(destructed, constructed);
}

static void destroy_all_destructs_the_live_ones_too(void **state) {
    (void)state;
    sy_cache *cache = make_constructed(0, 0);
    for (int i = 0; i < 1000; i++) get(cache);
    sy_cache_destroy_all(cache);
    assert_true(constructed >= 1000);
    assert_int_equal(destructed, constructed);
}

/* The n-th call of the constructor fails, for each n up to the calls of a refill; with and without
 * magazines. */
static void a_constructor_may_fail_anywhere_in_a_refill(void **state) {
    (void)state;
    for (int flags = 0; flags < 3; flags++)
        for (int n = 1; n <= 300; n++) {
            sy_cache *cache = make_constructed(flags == 1   ? SY_CHECKED
                                               : flags == 2 ? SY_LIMIT_EXACT
                                                            : 0,
                                               flags == 2 ? 400 : 0);
            void *objects[300];
            int got = 0, failed = 0;
            atomic_store(&fail_at, n);
            for (int i = 0; i < 300; i++) {
                errno = 0;
                void *object = sy_cache_alloc(cache);
                if (object)
                    must_be_built(objects[got++] = object);
                else {
                    assert_int_equal(errno, EIO);
                    failed++;
                }
                if (n % 10 == 0) sound(cache);
            }
            assert_true(failed <= 1);
            if (flags) assert_int_equal(failed, 1);
            assert_int_equal(sy_cache_in_use(cache), got);
            for (int i = 0; i < got; i++)
                for (int j = 0; j < i && n < 40; j++) assert_ptr_not_equal(objects[i], objects[j]);
            for (int i = 0; i < got; i++) sy_cache_free(cache, objects[i]);
            atomic_store(&fail_at, 0);
            end(cache);
            assert_int_equal(destructed, constructed);
        }
}

static int always_fail(void *object, void *arg) {
    (void)object;
    (void)arg;
    errno = ENOTTY;
    return 1;
}

static void a_constructor_that_always_fails_loses_nothing(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache =
            make((sy_cache_config){.size = 64, .construct = always_fail, .flags = FLAGS[flags]});
        for (int i = 0; i < 3000; i++) {
            errno = 0;
            assert_null(sy_cache_alloc(cache));
            assert_int_equal(errno, ENOTTY);
        }
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        assert_true(stats.slabs <= 1);
        assert_int_equal(stats.free, stats.slots);
        end(cache);
    }
}

static sy_cache *inner;

static int construct_from_another_cache(void *object, void *arg) {
    (void)arg;
    *(void **)object = sy_cache_alloc(inner);
    return *(void **)object ? 0 : -1;
}

static void destruct_to_another_cache(void *object, void *arg) {
    (void)arg;
    sy_cache_free(inner, *(void **)object);
}

static void constructors_may_use_other_caches(void **state) {
    (void)state;
    inner = make((sy_cache_config){.size = 32});
    sy_cache *cache = make((sy_cache_config){.size = 64,
                                             .construct = construct_from_another_cache,
                                             .destruct = destruct_to_another_cache});
    void *objects[500];
    for (int i = 0; i < 500; i++) assert_non_null(*(void **)(objects[i] = get(cache)));
    for (int i = 0; i < 500; i++) sy_cache_free(cache, objects[i]);
    sy_cache_trim(cache);
    end(cache);
    assert_int_equal(sy_cache_in_use(inner), 0);
    end(inner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slot_is_constructed_once_and_destructed_once),
        cmocka_unit_test(trims_keep_them_paired),
        cmocka_unit_test(destroy_all_destructs_the_live_ones_too),
        cmocka_unit_test(a_constructor_may_fail_anywhere_in_a_refill),
        cmocka_unit_test(a_constructor_that_always_fails_loses_nothing),
        cmocka_unit_test(constructors_may_use_other_caches),
    };
    return cmocka_run_group_tests_name("constructors", tests, NULL, NULL);
}
