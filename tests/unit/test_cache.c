/*
 * test_cache.c: what cache.h promises, one behaviour in each test. Other files test constructors
 * (test_constructors.c), threads (test_cache_threads.c), trim (test_trim.c), statistics
 * (test_stats.c) and faults (test_fault.c). The fake OS stands between the library and the real
 * system.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "chunk/side.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "support/caches.h"
#include "support/child.h"
#include "support/page_size.h"
#include "support/services.h"

/* ---- creation ---- */

static void refused(sy_cache_config config, int error) {
    sy_stats before, after;
    sy_get_stats(&before);
    errno = 0;
    assert_null(sy_cache_create(&config));
    assert_int_equal(errno, error);
    sy_get_stats(&after);
    assert_int_equal(after.caches, before.caches);
    assert_int_equal(after.mapped, before.mapped);
}

static void create_refuses_no_config(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_cache_create(NULL));
    assert_int_equal(errno, EINVAL);
}

static void create_refuses_size_0(void **state) {
    (void)state;
    refused((sy_cache_config){.size = 0}, EINVAL);
}

static void create_refuses_sizes_over_half_the_address_space(void **state) {
    (void)state;
    refused((sy_cache_config){.size = SIZE_MAX}, EINVAL);
    refused((sy_cache_config){.size = SIZE_MAX / 2 + 1}, EINVAL);
}

static void create_refuses_aligns_not_a_power_of_two(void **state) {
    (void)state;
    refused((sy_cache_config){.size = 8, .align = 3}, EINVAL);
    refused((sy_cache_config){.size = 8, .align = 48}, EINVAL);
    refused((sy_cache_config){.size = 8, .align = SIZE_MAX}, EINVAL);
}

static void create_refuses_aligns_above_2_mib(void **state) {
    (void)state;
    refused((sy_cache_config){.size = 8, .align = 4 << 20}, EINVAL);
    refused((sy_cache_config){.size = 8, .align = SIZE_MAX / 2 + 1}, EINVAL);
}

static void create_refuses_unknown_flags(void **state) {
    (void)state;
    const unsigned known = SY_COLOUR | SY_LIMIT_EXACT | SY_HANDLES | SY_EPOCHS | SY_CHECK_FLAGS;
    for (unsigned bit = 0; bit < 32; bit++)
        if (!(known >> bit & 1)) refused((sy_cache_config){.size = 8, .flags = 1u << bit}, EINVAL);
}

static void create_refuses_reserved_fields_in_use(void **state) {
    (void)state;
    sy_cache_config config = {.size = 8};
    for (size_t i = 0; i < sizeof config.reserved / sizeof *config.reserved; i++) {
        config.reserved[i] = 1;
        refused(config, EINVAL);
        config.reserved[i] = 0;
    }
}

static void create_refuses_an_exact_limit_without_limit(void **state) {
    (void)state;
    refused((sy_cache_config){.size = 8, .flags = SY_LIMIT_EXACT}, EINVAL);
}

static void sizes_that_nothing_can_hold_fail_at_alloc(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX / 2, SIZE_MAX / 2 - 4096, SIZE_MAX / 2 - 65534};
    for (int i = 0; i < 3; i++) {
        sy_cache *cache = make((sy_cache_config){.size = sizes[i]});
        errno = 0;
        assert_null(sy_cache_alloc(cache));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_int_equal(sy_cache_reserve(cache, 1), -1);
        assert_int_equal(errno, ENOMEM);
        end(cache);
    }
}

static void the_name_is_copied_and_cut(void **state) {
    (void)state;
    char name[] = "a name that is far longer than what is kept of it";
    sy_cache *cache = make((sy_cache_config){.name = name, .size = 8});
    sy_cache_stats stats;
    memset(name, 'x', sizeof name - 1);
    sy_cache_get_stats(cache, &stats);
    assert_string_equal(stats.name, "a name that is far longer than ");
    end(cache);
    cache = make((sy_cache_config){.size = 8});
    sy_cache_get_stats(cache, &stats);
    assert_string_equal(stats.name, "cache");
    end(cache);
}

static void slot_size_is_the_size_rounded_up_to_the_align(void **state) {
    (void)state;
    static const size_t cases[][3] = {
        {1, 0, 8}, {8, 0, 8},     {9, 0, 16},      {24, 0, 32},         {24, 8, 24},
        {1, 1, 8}, {65, 64, 128}, {1, 4096, 4096}, {200000, 0, 200000}, {200001, 16, 200016}};
    for (int i = 0; i < 10; i++) {
        sy_cache *cache = make((sy_cache_config){.size = cases[i][0], .align = cases[i][1]});
        assert_int_equal(sy_cache_slot_size(cache), cases[i][2]);
        end(cache);
    }
}

/* ---- objects ---- */

static void every_alignment_is_exact(void **state) {
    (void)state;
    for (size_t align = 1; align <= SY_CACHE_ALIGN_MAX; align *= 2)
        for (int flags = 0; flags < FLAGS_COUNT; flags++)
            for (size_t size = 1; size <= 3 * align; size += align - align / 4) {
                sy_cache *cache =
                    make((sy_cache_config){.size = size, .align = align, .flags = FLAGS[flags]});
                void *objects[40];
                int count = align < 65536 ? 40 : 4;
                for (int i = 0; i < count; i++) {
                    objects[i] = get(cache);
                    assert_int_equal((uintptr_t)objects[i] % align, 0);
                }
                for (int i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
                end(cache);
            }
}

static void aligned_across_slabs_of_all_colours(void **state) {
    (void)state;
    for (size_t align = 8; align <= 4096; align *= 4) {
        sy_cache *cache =
            make((sy_cache_config){.size = align * 3, .align = align, .flags = SY_COLOUR});
        size_t count = 300000 / (align * 3) + 300;
        void **objects = calloc(count, sizeof *objects);
        for (size_t i = 0; i < count; i++) {
            objects[i] = get(cache);
            assert_int_equal((uintptr_t)objects[i] % align, 0);
        }
        sy_cache_free_batch(cache, objects, count);
        free(objects);
        end(cache);
    }
}

static void objects_from_16_bytes_are_16_aligned_by_default(void **state) {
    (void)state;
    for (size_t size = 9; size < 300; size++) {
        sy_cache *cache = make((sy_cache_config){.size = size});
        for (int i = 0; i < 10; i++) assert_int_equal((uintptr_t)get(cache) % 16, 0);
        sy_cache_destroy_all(cache);
    }
}

static size_t count_for(size_t size) { return size < 1024 ? 3000 : size < 100000 ? 200 : 5; }

static void objects_do_not_overlap(void **state) {
    (void)state;
    static const size_t sizes[] = {1,    8,    16,    24,     64,     100,    1000,
                                   4096, 5000, 65536, 131072, 131073, 300000, 5 << 20};
    for (int flags = 0; flags < FLAGS_COUNT; flags++)
        for (int s = 0; s < 14; s++) {
            size_t size = sizes[s], count = count_for(size);
            sy_cache *cache = make((sy_cache_config){.size = size, .flags = FLAGS[flags]});
            unsigned char **objects = calloc(count, sizeof *objects);
            for (size_t i = 0; i < count; i++) {
                objects[i] = get(cache);
                memset(objects[i], (int)(i % 251), size < 5000 ? size : 64);
                objects[i][size - 1] = (unsigned char)(i % 251);
            }
            assert_int_equal(sy_cache_in_use(cache), count);
            for (size_t i = 0; i < count; i++) {
                for (size_t at = 0; at < size && at < 64; at++)
                    assert_int_equal(objects[i][at], i % 251);
                assert_int_equal(objects[i][size - 1], i % 251);
                sy_cache_free(cache, objects[i]);
            }
            assert_int_equal(sy_cache_in_use(cache), 0);
            free(objects);
            end(cache);
        }
}

static void the_object_freed_last_is_given_next(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    void *objects[100];
    for (int i = 0; i < 100; i++) objects[i] = get(cache);
    for (int i = 0; i < 100; i++) {
        sy_cache_free(cache, objects[i]);
        assert_ptr_equal(get(cache), objects[i]);
    }
    for (int i = 0; i < 100; i++) sy_cache_free(cache, objects[i]);
    end(cache);
}

static void free_of_null_does_nothing(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make((sy_cache_config){.size = 64, .flags = FLAGS[flags]});
        void *const nulls[3] = {NULL, NULL, NULL};
        sy_cache_free(cache, NULL);
        sy_cache_free_batch(cache, nulls, 3);
        assert_false(sy_cache_try_free(cache, NULL));
        assert_int_equal(sy_cache_in_use(cache), 0);
        end(cache);
    }
    assert_int_equal(sy_cache_destroy(NULL), 0);
    sy_cache_destroy_all(NULL);
}

static void free_keeps_errno(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 3000});
    static void *objects[5000];
    for (int i = 0; i < 5000; i++) objects[i] = get(cache);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 12345;
    for (int i = 0; i < 5000; i++) sy_cache_free(cache, objects[i]);
    assert_int_equal(errno, 12345);
    sy_fake_reset();
    end(cache);
}

static void zalloc_gives_zeroes(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 24, 100, 4096, 200000, 5 << 20};
    for (int s = 0; s < 6; s++) {
        sy_cache *cache = make((sy_cache_config){.size = sizes[s]});
        for (int round = 0; round < 3; round++) {
            unsigned char *objects[20];
            for (int i = 0; i < 20; i++) {
                must((objects[i] = sy_cache_zalloc(cache)) != NULL);
                for (size_t at = 0; at < sizes[s]; at += 1 + at / 64)
                    assert_int_equal(objects[i][at], 0);
                assert_int_equal(objects[i][sizes[s] - 1], 0);
                memset(objects[i], 0xff, sizes[s]);
            }
            for (int i = 0; i < 20; i++) sy_cache_free(cache, objects[i]);
        }
        end(cache);
    }
}

static int construct_nothing(void *object, void *arg) {
    (void)object;
    (void)arg;
    return 0;
}

static void zalloc_refuses_a_cache_with_a_constructor(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64, .construct = construct_nothing});
    errno = 0;
    assert_null(sy_cache_zalloc(cache));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(sy_cache_in_use(cache), 0);
    end(cache);
}

/* ---- batches ---- */

static void a_batch_is_as_many_single_ones(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 64, 100, 128, 129, 1000, 5000};
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .flags = FLAGS[flags]});
        static void *objects[5000];
        for (int c = 0; c < 12; c++) {
            assert_int_equal(sy_cache_alloc_batch(cache, objects, counts[c]), counts[c]);
            for (size_t i = 0; i < counts[c]; i++) memset(objects[i], (int)(i % 251), 48);
            for (size_t i = 0; i < counts[c]; i++)
                for (int at = 0; at < 48; at++)
                    assert_int_equal(((unsigned char *)objects[i])[at], i % 251);
            assert_int_equal(sy_cache_in_use(cache), counts[c]);
            for (size_t i = 0; i < counts[c]; i++)
                if (i % 3 == 1) sy_cache_free(cache, objects[i]), objects[i] = NULL;
            sy_cache_free_batch(cache, objects, counts[c]);
            assert_int_equal(sy_cache_in_use(cache), 0);
        }
        end(cache);
    }
}

static void a_short_batch_says_how_many(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48, .limit = 700});
    void *objects[1000];
    errno = 0;
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 1000), 700);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_cache_in_use(cache), 700);
    sy_cache_free_batch(cache, objects, 700);
    end(cache);
}

/* ---- limits ---- */

static void never_more_live_than_the_limit(void **state) {
    (void)state;
    static const size_t limits[] = {1, 2, 7, 15, 16, 17, 100, 1000, 5000};
    for (int flags = 0; flags < 2; flags++)
        for (int i = 0; i < 9; i++) {
            sy_cache *cache = make((sy_cache_config){
                .size = 64, .limit = limits[i], .flags = flags ? SY_LIMIT_EXACT : 0});
            static void *objects[5000];
            for (int round = 0; round < 3; round++) {
                for (size_t n = 0; n < limits[i]; n++) objects[n] = get(cache);
                errno = 0;
                assert_null(sy_cache_alloc(cache));
                assert_int_equal(errno, ENOMEM);
                assert_int_equal(sy_cache_in_use(cache), limits[i]);
                for (size_t n = 0; n < limits[i]; n++) sy_cache_free(cache, objects[n]);
            }
            end(cache);
        }
}

static pthread_barrier_t barrier;

static void *hold_free_objects(void *arg) {
    void *objects[60];
    for (int i = 0; i < 60; i++) objects[i] = get(arg);
    for (int i = 0; i < 60; i++) sy_cache_free(arg, objects[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Other threads are running, with free objects in their magazines. */
static size_t most_beside_busy_threads(size_t limit, unsigned flags) {
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    static void *objects[2000];
    sy_cache *cache = make((sy_cache_config){.size = 64, .limit = limit, .flags = flags});
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, hold_free_objects, cache) == 0);
    pthread_barrier_wait(&barrier);
    size_t count = sy_cache_alloc_batch(cache, objects, 2000);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    sy_cache_free_batch(cache, objects, count);
    pthread_barrier_destroy(&barrier);
    end(cache);
    return count;
}

static void at_most_an_eighth_waits_with_other_threads(void **state) {
    (void)state;
    for (size_t limit = 400; limit <= 1600; limit += 400) {
        size_t count = most_beside_busy_threads(limit, 0);
        assert_true(count <= limit && count >= limit - limit / 8);
    }
}

static void an_exact_limit_is_exact_beside_other_threads(void **state) {
    (void)state;
    assert_int_equal(most_beside_busy_threads(400, SY_LIMIT_EXACT), 400);
}

enum { RACERS = 4, RACE_LIMIT = 100 };
static _Atomic int live, most_live;

static void *race_for_the_limit(void *arg) {
    void *mine[50];
    int count = 0;
    uint64_t random = (uintptr_t)&random;
    for (int step = 0; step < 30000; step++) {
        if (count < 50 && next_random(&random) % 2) {
            void *object = sy_cache_alloc(arg);
            if (!object) continue;
            mine[count++] = object;
            int now = atomic_fetch_add(&live, 1) + 1, seen = atomic_load(&most_live);
            while (now > seen && !atomic_compare_exchange_weak(&most_live, &seen, now)) continue;
        } else if (count > 0) {
            atomic_fetch_sub(&live, 1);
            sy_cache_free(arg, mine[--count]);
        }
    }
    atomic_fetch_sub(&live, count);
    while (count > 0) sy_cache_free(arg, mine[--count]);
    return NULL;
}

static void threads_together_never_pass_the_limit(void **state) {
    (void)state;
    for (int flags = 0; flags < 2; flags++) {
        pthread_t threads[RACERS];
        sy_cache *cache = make((sy_cache_config){
            .size = 64, .limit = RACE_LIMIT, .flags = flags ? SY_LIMIT_EXACT : 0});
        atomic_store(&most_live, 0);
        for (int i = 0; i < RACERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, race_for_the_limit, cache), 0);
        for (int i = 0; i < RACERS; i++) pthread_join(threads[i], NULL);
        assert_true(atomic_load(&most_live) <= RACE_LIMIT);
        assert_int_equal(sy_cache_in_use(cache), 0);
        end(cache);
    }
}

/* ---- reserve ---- */

static void reserve_then_allocate(void *arg) {
    size_t count = *(size_t *)arg;
    sy_cache *cache = make((sy_cache_config){.size = 200});
    must(sy_cache_reserve(cache, count) == 0);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    uint64_t before = sy_fake_calls(SY_FAKE_ANY);
    for (size_t i = 0; i < count; i++) get(cache);
    must(sy_fake_calls(SY_FAKE_ANY) == before);
    sound(cache);
    sy_fake_reset();
    sy_cache_destroy_all(cache);
}

static void what_was_reserved_needs_nothing_of_the_system(void **state) {
    (void)state;
    static size_t counts[] = {1, 100, 1000, 100000};
    /* In children, so that this is the thread's first use of the library. */
    for (int i = 0; i < 4; i++) assert_int_equal(in_child(reserve_then_allocate, &counts[i]), 0);
}

static void *allocate_reserved(void *arg) {
    for (int i = 0; i < 500; i++) get(arg);
    return NULL;
}

static void reserved_for_two(void *arg) {
    (void)arg;
    sy_cache *cache = make((sy_cache_config){.size = 200});
    sy_cache_free(cache, get(cache));
    must(sy_cache_reserve(cache, 1000) == 0);
    uint64_t before = sy_fake_calls(SY_FAKE_ANY);
    allocate_reserved(cache);
    in_thread(allocate_reserved, cache);
    must(sy_fake_calls(SY_FAKE_ANY) <= before + 3); /* for the thread: its record, its exit hook */
    sy_cache_destroy_all(cache);
}

static void what_was_reserved_is_for_any_thread(void **state) {
    (void)state;
    assert_int_equal(in_child(reserved_for_two, NULL), 0);
}

static void reserve_backs_what_a_trim_took(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make((sy_cache_config){.size = 200});
    static void *objects[5000];
    for (int i = 0; i < 5000; i++) objects[i] = get(cache);
    for (int i = 0; i < 5000; i++)
        if (i % 500) sy_cache_free(cache, objects[i]);
    sy_cache_trim(cache);
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.discarded > 0);
    assert_int_equal(sy_cache_reserve(cache, 4000), 0);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.discarded, 0);
    assert_int_equal(stats.never_used, 0);
    assert_true(stats.free + stats.in_depot + stats.in_loaded >= 4000);
    sound(cache);
    sy_cache_destroy_all(cache);
}

static void reserve_counts_from_what_is_live(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64, .limit = 1000});
    for (int i = 0; i < 600; i++) get(cache);
    sy_thread_flush();
    errno = 0;
    assert_int_equal(sy_cache_reserve(cache, 401), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_cache_reserve(cache, 400), 0);
    sy_cache_destroy_all(cache);
}

static void reserve_refuses_what_nothing_can_hold(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    static const size_t counts[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 64, SIZE_MAX / 128};
    for (int i = 0; i < 3; i++) {
        errno = 0;
        assert_int_equal(sy_cache_reserve(cache, counts[i]), -1);
        assert_int_equal(errno, ENOMEM);
    }
    assert_int_equal(sy_cache_in_use(cache), 0);
    sy_cache_free(cache, get(cache));
    end(cache);
}

static void reserve_survives_failures(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        sy_trim();
        sy_cache *cache = make((sy_cache_config){.size = 2000});
        sy_fake_reset();
        sy_fake_fail_nth(SY_FAKE_ANY, n);
        errno = 0;
        int result = sy_cache_reserve(cache, 3000);
        uint64_t failures = sy_fake_failures(SY_FAKE_ANY);
        sy_fake_reset();
        if (result != 0) assert_int_equal(errno, ENOMEM);
        if (!failures) assert_int_equal(result, 0);
        sound(cache);
        assert_int_equal(sy_cache_in_use(cache), 0);
        assert_int_equal(sy_cache_reserve(cache, 3000), 0);
        sound(cache);
        end(cache);
        if (!failures) {
            assert_true(n > 30); /* 31 slabs to back */
            return;
        }
    }
}

/* ---- a thread's reserve ---- */

/* The most objects that a thread can reserve in a cache. */
static size_t most_of_a_thread(const sy_cache *cache, unsigned flags) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return stats.magazine_items * (flags & SY_EPOCHS ? (size_t)1 : 2);
}

static const unsigned THREAD_FLAGS[] = {0, SY_HANDLES, SY_EPOCHS, SY_HANDLES | SY_EPOCHS};

static void a_thread_has_what_it_reserved_at_hand(void **state) {
    (void)state;
    for (int f = 0; f < 4; f++) {
        sy_cache *cache = make((sy_cache_config){.size = 200, .flags = THREAD_FLAGS[f]});
        size_t count = most_of_a_thread(cache, THREAD_FLAGS[f]);
        void *objects[2 * SY_MAGAZINE_ITEMS + 1], *other = get(cache);
        assert_int_equal(sy_thread_reserve(cache, count), 0);
        sy_cache_stats before, after;
        sy_cache_get_stats(cache, &before);
        assert_int_equal(before.in_loaded, count);
        sy_fake_fail_from(SY_FAKE_ANY, 1);
        for (size_t i = 0; i < count; i++) memset(objects[i] = get(cache), 1, 200);
        sy_fake_reset();
        sy_cache_get_stats(cache, &after);
        assert_int_equal(after.refills, before.refills);
        assert_int_equal(after.in_use, count + 1);
        for (size_t i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
        sy_cache_free(cache, other);
        end(cache);
    }
}

static void a_thread_reserves_what_its_magazines_hold(void **state) {
    (void)state;
    for (int f = 0; f < 4; f++) {
        sy_cache *cache = make((sy_cache_config){.size = 200, .flags = THREAD_FLAGS[f]});
        size_t most = most_of_a_thread(cache, THREAD_FLAGS[f]);
        errno = 0;
        assert_int_equal(sy_thread_reserve(cache, most + 1), -1);
        assert_int_equal(errno, EINVAL);
        end(cache);
    }
    sy_cache *checked = make((sy_cache_config){.size = 200, .flags = SY_CHECKED});
    assert_int_equal(sy_thread_reserve(checked, 0), 0);
    assert_int_equal(sy_thread_reserve(checked, 1), -1);
    end(checked);
}

/* Makes many passes by age, after which all memory that is not reserved has gone back. */
static void a_threads_reserve_does_not_age(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 200}),
             *busy = make((sy_cache_config){.size = 64});
    sy_cache *idle = make((sy_cache_config){.size = 200});
    void *objects[1000];
    sy_cache_free(idle, get(idle));
    assert_int_equal(sy_thread_reserve(cache, 100), 0);
    sy_set_decay(1000);
    sy_fake_set_clock(UINT64_C(1) << 40);
    for (int second = 0; second < 20; second++) {
        for (int i = 0; i < 1000; i++) objects[i] = get(busy);
        for (int i = 0; i < 1000; i++) sy_cache_free(busy, objects[i]);
        sy_fake_advance_clock(UINT64_C(1000000000));
    }
    sy_set_decay(0);
    sy_fake_reset();
    sy_cache_stats stats;
    sy_cache_get_stats(idle, &stats);
    assert_int_equal(stats.in_loaded, 0);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_loaded, 100);
    sy_trim();
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.slabs, 0);
    end(cache);
    end(busy);
    end(idle);
}

static void a_threads_reserve_survives_failures(void **state) {
    (void)state;
    for (uint64_t n = 1, failures = 1; failures; n++) {
        sy_trim();
        sy_cache *cache = make((sy_cache_config){.size = 2000, .limit = n % 2 ? 0 : 4000});
        sy_fake_reset();
        sy_fake_fail_nth(SY_FAKE_ANY, n);
        errno = 0;
        int result = sy_thread_reserve(cache, 50);
        failures = sy_fake_failures(SY_FAKE_ANY);
        sy_fake_reset();
        if (result != 0) assert_int_equal(errno, ENOMEM);
        if (!failures) assert_int_equal(result, 0);
        sound(cache);
        assert_int_equal(sy_cache_in_use(cache), 0);
        assert_int_equal(sy_thread_reserve(cache, 50), 0);
        end(cache);
    }
}

/* ---- free units that lie apart ---- */

static size_t dirty_units(void) {
    sy_chunk_stats stats = sy_chunk_count();
    return stats.units_free - stats.units_clean;
}

/* Free units that hold memory lie apart: a slab of several cannot use them, and gets clean ones. */
static void apart(void *unused) {
    (void)unused;
    enum { SINGLE = 16 };
    sy_slab *single[SINGLE];
    sy_cache *large = make((sy_cache_config){.size = 12 << 10});
    size_t units = large->layout.slab_bytes / SY_UNIT_BYTES;
    must(units > 1 && units < SINGLE / 2);
    sy_chunk_trim(&sy_memory_main);
    for (int i = 0; i < SINGLE; i++)
        single[i] = sy_run_take(&sy_memory_main, SY_UNIT_BYTES, SY_UNIT_BYTES, 0, &(bool){false});
    sy_chunk_trim(&sy_memory_main);
    for (int i = 0; i < SINGLE; i += 2) sy_run_give(single[i]);
    must(dirty_units() == SINGLE / 2);
    sy_cache_free(large, get(large));
    must(dirty_units() == SINGLE / 2 - units);
    sound(large);
}

static void a_slab_of_several_units_makes_no_process_larger(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    assert_int_equal(in_child(apart, NULL), 0);
}

/* ---- bitmaps that cannot be had ---- */

/* Side memory is used up, but chunks have room: there is memory for a slab, not for its bitmap. */
static void no_bitmap(void *arg) {
    sy_cache_free(*(sy_cache **)arg, get(*(sy_cache **)arg));
    sy_cache *cache = make((sy_cache_config){.size = 8}); /* its bitmaps are in side memory */
    sy_cache *built = make((sy_cache_config){.size = 64, .construct = construct_nothing});
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    for (size_t bytes = SY_SIDE_MAX; bytes >= 32; bytes /= 2)
        while (sy_side_take(bytes)) continue;
    must(sy_cache_alloc(cache) == NULL); /* other caches give their empty slabs back */
    sy_chunk_stats before = sy_chunk_count();
    must(before.units_free > 0);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        must(sy_cache_alloc(cache) == NULL && errno == ENOMEM);
        errno = 0;
        must(sy_cache_alloc(built) == NULL && errno == ENOMEM);
        must(sy_chunk_count().units_free == before.units_free);
        sound(cache);
        sound(built);
    }
    sy_fake_reset();
    sy_cache_free(cache, get(cache));
    sy_cache_free(built, get(built));
    end(cache);
    end(built);
}

static void a_slab_without_bitmap_is_given_back(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    assert_int_equal(in_child(no_bitmap, &cache), 0);
    end(cache);
}

/* ---- try_free ---- */

static void try_free_frees_live_objects(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .flags = FLAGS[flags]});
        void *objects[300];
        for (int i = 0; i < 300; i++) objects[i] = get(cache);
        for (int i = 0; i < 300; i++) {
            assert_true(sy_cache_try_free(cache, objects[i]));
            assert_int_equal(sy_cache_in_use(cache), 299 - i);
            for (int j = 0; j <= i; j += 1 + i / 8)
                assert_false(sy_cache_try_free(cache, objects[j]));
        }
        end(cache);
    }
}

static void try_free_refuses_everything_else(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .flags = FLAGS[flags]});
        sy_cache *other = make((sy_cache_config){.size = 48});
        char *object = get(cache), *others = get(other), *heaps = sy_malloc(48);
        char *span = sy_malloc(1 << 20), *large = sy_malloc(8 << 20), local, *mallocs = malloc(48);
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        uintptr_t slab = (uintptr_t)object & ~(uintptr_t)(SY_UNIT_BYTES - 1);
        void *wrong[] = {NULL,
                         object + 1,
                         object + 16,
                         object - 16,
                         object + 48 * 200, /* a slot that was never allocated */
                         (void *)(slab + stats.slab_bytes - 1),
                         (void *)((uintptr_t)object & ~(uintptr_t)(SY_CHUNK_BYTES - 1)),
                         (void *)(((uintptr_t)object | (SY_CHUNK_BYTES - 1)) + 1),
                         others,
                         heaps,
                         span,
                         span + 65536,
                         large,
                         large + (4 << 20),
                         &local,
                         mallocs,
                         cache,
                         (void *)(uintptr_t)try_free_refuses_everything_else,
                         (void *)1,
                         (void *)UINTPTR_MAX,
                         (void *)(UINTPTR_MAX / 131072 + 1),
                         (void *)((uintptr_t)object ^ (UINTPTR_MAX / 131072 + 1)),
                         (void *)((uintptr_t)object ^ (UINTPTR_MAX / 2 + 1))};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            assert_false(sy_cache_try_free(cache, wrong[i]));
        uint64_t random = 10;
        for (int i = 0; i < 20000; i++)
            assert_false(sy_cache_try_free(cache, (void *)(uintptr_t)next_random(&random)));
        assert_int_equal(sy_cache_in_use(cache), 1);
        assert_true(sy_cache_try_free(cache, object));
        assert_false(sy_cache_try_free(cache, object));
        sy_cache_free(other, others);
        sy_free(heaps);
        sy_free(span);
        sy_free(large);
        free(mallocs);
        end(other);
        end(cache);
    }
}

/* ---- destroy ---- */

static void destroy_refuses_while_objects_are_live(void **state) {
    (void)state;
    for (int flags = 0; flags < FLAGS_COUNT; flags++) {
        sy_cache *cache = make((sy_cache_config){.size = 48, .flags = FLAGS[flags]});
        char *object = get(cache);
        memset(object, 7, 48);
        for (int i = 0; i < 3; i++) {
            errno = 0;
            assert_int_equal(sy_cache_destroy(cache), -1);
            assert_int_equal(errno, EBUSY);
        }
        for (int at = 0; at < 48; at++) assert_int_equal(object[at], 7);
        assert_int_equal(sy_cache_in_use(cache), 1);
        sy_cache_free(cache, object);
        end(cache);
    }
}

static void destroy_gives_everything_up(void **state) {
    (void)state;
    sy_cache_destroy_all(make((sy_cache_config){.size = 8}));
    sy_trim();
    sy_stats before, after;
    sy_get_stats(&before);
    static void *objects[20000];
    for (int all = 0; all < 2; all++)
        for (size_t size = 8; size < 400000; size = size * 3 + 5) {
            sy_cache *cache = make((sy_cache_config){.size = size});
            size_t count = size > 10000 ? 50 : 20000;
            for (size_t i = 0; i < count; i++) objects[i] = get(cache);
            if (!all) sy_cache_free_batch(cache, objects, count);
            if (all)
                sy_cache_destroy_all(cache);
            else
                end(cache);
            sy_trim();
            sy_get_stats(&after);
            assert_int_equal(after.mapped, before.mapped);
            assert_int_equal(after.slabs, before.slabs);
            assert_int_equal(after.caches, before.caches);
        }
}

/* ---- many caches ---- */

static void thousands_of_caches_keep_apart(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    enum { CACHES = 4500 };
    static sy_cache *caches[CACHES];
    static uint32_t *objects[CACHES][2];
    for (uint32_t i = 0; i < CACHES; i++) caches[i] = make((sy_cache_config){.size = 16 + i % 48});
    for (uint32_t i = 0; i < CACHES; i++)
        for (uint32_t j = 0; j < 2; j++) *(objects[i][j] = get(caches[i])) = i * 2 + j;
    for (uint32_t i = 0; i < CACHES; i++) {
        assert_int_equal(*objects[i][0], i * 2);
        assert_int_equal(*objects[i][1], i * 2 + 1);
        assert_false(sy_cache_try_free(caches[(i + 1) % CACHES], objects[i][0]));
        sy_cache_free(caches[i], objects[i][0]);
        sy_cache_free(caches[i], objects[i][1]);
    }
    for (uint32_t i = 0; i < CACHES; i++) must(sy_cache_destroy(caches[i]) == 0);
}

static void as_many_caches_as_promised(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    static sy_cache *caches[20000];
    size_t count = 0;
    errno = 0;
    while ((caches[count] = sy_cache_create(&(sy_cache_config){.size = 64})) != NULL) count++;
    assert_int_equal(errno, ENOSPC);
    assert_true(count >= SY_CACHES_MAX);
    while (count > 0) must(sy_cache_destroy(caches[--count]) == 0);
    end(make((sy_cache_config){.size = 64}));
}

static void *use_cache(void *arg) {
    void *objects[30];
    for (int i = 0; i < 30; i++) memset(objects[i] = get(arg), 1, 16);
    for (int i = 0; i < 30; i++) sy_cache_free(arg, objects[i]);
    return NULL;
}

static void numbers_are_reused_thousands_of_times(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    sy_stats before, after;
    sy_cache *first = make((sy_cache_config){.size = 40});
    use_cache(first);
    end(first);
    sy_get_stats(&before);
    for (size_t i = 0; i < 20000; i++) {
        sy_cache *cache = make((sy_cache_config){.size = 16 + i % 100});
        use_cache(cache);
        if (i % 100 == 0) in_thread(use_cache, cache);
        must(sy_cache_destroy(cache) == 0);
    }
    sy_get_stats(&after);
    assert_true(after.mapped <= before.mapped);
    assert_int_equal(after.side, before.side);
    assert_true(after.magazines <= before.magazines + (1 << 20));
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

static void magazines_hold_a_part_of_the_limit(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64, .limit = 480});
    sy_cache_stats stats;
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_int_equal(stats.magazine_items, 480 / 16);
    end(cache);
}

static void a_cache_without_a_number_costs_nothing(void **state) {
    (void)state;
    static sy_cache *caches[20000];
    const sy_cache_config watched = {.size = 64, .flags = SY_QUARANTINE};
    size_t count = 0;
    while ((caches[count] = sy_cache_create(&(sy_cache_config){.size = 64})) != NULL) count++;
    assert_null(sy_cache_create(&watched));
    size_t before = sy_fake_reserved();
    for (int i = 0; i < 10; i++) must(sy_cache_create(&watched) == NULL && errno == ENOSPC);
    assert_int_equal(sy_fake_reserved(), before);
    while (count > 0) must(sy_cache_destroy(caches[--count]) == 0);
}

/* In the child of a fork, the counts of a cache that was being changed are made anew. */
static void a_torn_cache_is_made_anew(void **state) {
    (void)state;
    enum { OBJECTS = 1500 };
    static void *objects[OBJECTS];
    sy_cache *cache = make((sy_cache_config){.size = 64});
    for (int i = 0; i < OBJECTS; i++) objects[i] = get(cache);
    for (int i = 0; i < OBJECTS; i += 3) sy_cache_free(cache, objects[i]);
    sy_client_drain(&cache->client);
    size_t in_use = sy_cache_in_use(cache);
    cache->torn = true;
    sy_caches_part.recover();
    sound(cache);
    assert_int_equal(sy_cache_in_use(cache), in_use);
    for (int i = 0; i < OBJECTS; i++)
        if (i % 3) sy_cache_free(cache, objects[i]);
    end(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_reserved_needs_nothing_of_the_system), /* first: nothing has started yet */
        TEST(what_was_reserved_is_for_any_thread),
        TEST(create_refuses_no_config),
        TEST(create_refuses_size_0),
        TEST(create_refuses_sizes_over_half_the_address_space),
        TEST(create_refuses_aligns_not_a_power_of_two),
        TEST(create_refuses_aligns_above_2_mib),
        TEST(create_refuses_unknown_flags),
        TEST(create_refuses_reserved_fields_in_use),
        TEST(create_refuses_an_exact_limit_without_limit),
        TEST(sizes_that_nothing_can_hold_fail_at_alloc),
        TEST(the_name_is_copied_and_cut),
        TEST(slot_size_is_the_size_rounded_up_to_the_align),
        TEST(every_alignment_is_exact),
        TEST(aligned_across_slabs_of_all_colours),
        TEST(objects_from_16_bytes_are_16_aligned_by_default),
        TEST(objects_do_not_overlap),
        TEST(the_object_freed_last_is_given_next),
        TEST(free_of_null_does_nothing),
        TEST(free_keeps_errno),
        TEST(zalloc_gives_zeroes),
        TEST(zalloc_refuses_a_cache_with_a_constructor),
        TEST(a_batch_is_as_many_single_ones),
        TEST(a_short_batch_says_how_many),
        TEST(never_more_live_than_the_limit),
        TEST(at_most_an_eighth_waits_with_other_threads),
        TEST(an_exact_limit_is_exact_beside_other_threads),
        TEST(threads_together_never_pass_the_limit),
        TEST(reserve_backs_what_a_trim_took),
        TEST(reserve_counts_from_what_is_live),
        TEST(reserve_refuses_what_nothing_can_hold),
        TEST(reserve_survives_failures),
        TEST(a_thread_has_what_it_reserved_at_hand),
        TEST(a_thread_reserves_what_its_magazines_hold),
        TEST(a_threads_reserve_does_not_age),
        TEST(a_threads_reserve_survives_failures),
        TEST(a_slab_of_several_units_makes_no_process_larger),
        TEST(a_slab_without_bitmap_is_given_back),
        TEST(try_free_frees_live_objects),
        TEST(try_free_refuses_everything_else),
        TEST(destroy_refuses_while_objects_are_live),
        TEST(destroy_gives_everything_up),
        TEST(thousands_of_caches_keep_apart),
        TEST(as_many_caches_as_promised),
        TEST(numbers_are_reused_thousands_of_times),
        TEST(magazines_hold_a_part_of_the_limit),
        TEST(a_cache_without_a_number_costs_nothing),
        TEST(a_torn_cache_is_made_anew),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
