/*
 * audit_memory.c: memory stays bounded and goes back to the system, which earlier allocators
 * promised and did not do. The tests compare the library's statistics and, without a sanitizer,
 * resident memory.
 */
#define _GNU_SOURCE

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/resident.h"
#include "support/sanitized.h"

static const size_t KIB = 1 << 10, MIB = 1 << 20;

/* The process has at most `bytes` more resident memory than `before`. Not checked with a sanitizer,
 * which takes memory itself. */
static void grew_at_most(size_t before, size_t bytes) {
    size_t now = resident_anonymous();
    if (!SANITIZED && now > before + bytes)
        print_error("resident: %zu KiB before, %zu now\n", before / KIB, now / KIB);
    if (!SANITIZED) assert_true(now <= before + bytes);
}

static sy_cache *make(size_t size) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "audit", .size = size});
    must(cache != NULL);
    return cache;
}

static size_t mapped(const sy_cache *cache) {
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return stats.mapped;
}

/* ---- one thread allocates, another frees, on processors of their own, for a long time ---- */

enum { RING = 256, OBJECT = 64, ROUNDS = 3000000, WARM = ROUNDS / 10 };

static sy_cache *shared;
static _Atomic(unsigned char *) ring[RING];
static size_t mapped_when_warm, mapped_most, resident_when_warm, resident_most;

static void *consume(void *arg) {
    sy_fake_set_cpu(1);
    for (size_t i = 0; i < ROUNDS; i++) {
        unsigned char *object;
        while (!(object = atomic_exchange(&ring[i % RING], NULL))) sched_yield();
        must(object[0] == (unsigned char)i && object[OBJECT - 1] == (unsigned char)i);
        sy_cache_free(shared, object);
    }
    return arg;
}

static void note_size(size_t i) {
    size_t now = mapped(shared), pages = resident_anonymous();
    if (now > mapped_most) mapped_most = now;
    if (pages > resident_most) resident_most = pages;
    if (i != WARM) return;
    mapped_when_warm = mapped_most;
    resident_when_warm = resident_most;
}

static void *produce(void *arg) {
    sy_fake_set_cpu(0);
    for (size_t i = 0; i < ROUNDS; i++) {
        unsigned char *object = sy_cache_alloc(shared);
        must(object != NULL);
        object[0] = object[OBJECT - 1] = (unsigned char)i;
        while (atomic_load(&ring[i % RING])) sched_yield();
        atomic_store(&ring[i % RING], object);
        if (i % 10000 == 0) note_size(i);
    }
    return arg;
}

static void producer_and_consumer_stay_flat(void **state) {
    (void)state;
    pthread_t producer, consumer;
    shared = make(OBJECT);
    assert_int_equal(pthread_create(&producer, NULL, produce, NULL), 0);
    assert_int_equal(pthread_create(&consumer, NULL, consume, NULL), 0);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    /* 256 are live; each thread holds two magazines of 128 at most, and each of the two shards of
     * the depot starts with room for a mebibyte, which misses may double as long as objects are
     * turned away there. */
    print_message("mapped: %zu KiB warm, %zu KiB most\n", mapped_when_warm / KIB,
                  mapped_most / KIB);
    assert_true(mapped_when_warm <= 4 * MIB);
    assert_true(mapped_most <= mapped_when_warm + mapped_when_warm / 5);
    grew_at_most(resident_when_warm, MIB);
    assert_int_equal(sy_cache_in_use(shared), 0);
    assert_int_equal(sy_cache_destroy(shared), 0);
}

/* ---- rounds ---- */

enum { MANY = 100000 };
static void *objects[MANY];

static void rounds_of_all_and_nothing_stay_flat(void **state) {
    (void)state;
    sy_cache *cache = make(200);
    size_t mapped_first = 0, resident_first = 0;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < MANY; i++) memset(objects[i] = sy_cache_alloc(cache), 1, 200);
        size_t now = mapped(cache);
        for (size_t i = 0; i < MANY; i++) sy_cache_free(cache, objects[i]);
        if (round == 2) mapped_first = now, resident_first = resident_anonymous();
        if (round > 2) assert_true(now <= mapped_first);
    }
    grew_at_most(resident_first, 256 * KIB);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void destroy_returns_the_process_to_its_size(void **state) {
    (void)state;
    sy_stats stats_before, stats_after;
    sy_cache_destroy_all(make(64)); /* starts the library */
    sy_trim();
    sy_get_stats(&stats_before);
    size_t before = resident_anonymous();
    for (int round = 0; round < 10; round++)
        for (size_t size = 16; size <= 4096; size *= 4) {
            sy_cache *cache = make(size);
            for (size_t i = 0; i < 30000; i++) memset(objects[i] = sy_cache_alloc(cache), 1, size);
            sy_cache_free_batch(cache, objects, 30000);
            assert_int_equal(sy_cache_destroy(cache), 0);
        }
    sy_trim();
    sy_get_stats(&stats_after);
    assert_int_equal(stats_after.mapped, stats_before.mapped);
    assert_int_equal(stats_after.slabs, stats_before.slabs);
    grew_at_most(before, 512 * KIB); /* headers of magazines, tables: once */
}

/* ---- churn ---- */

static uint64_t churn_random;

static void churn(size_t from, size_t to) {
    for (size_t step = 0; step < 4000; step++) {
        size_t i = from + next_random(&churn_random) % (to - from);
        sy_free(objects[i]);
        size_t size = 16 + next_random(&churn_random) % 1000;
        objects[i] = sy_malloc(size);
        memset(objects[i], 1, size);
    }
}

/* Tides: 10,000 objects of mixed sizes, then a tenth, a thousand times. */
static void a_thousand_cycles_of_churn_do_not_grow(void **state) {
    (void)state;
    sy_stats stats;
    size_t mapped_first = 0, mapped_last = 0, resident_first = 0;
    memset(objects, 0, sizeof objects);
    for (int cycle = 0; cycle < 1000; cycle++) {
        churn_random = (uint64_t)(cycle % 10);
        for (size_t i = 0; i < 10000; i++)
            if (!objects[i]) objects[i] = sy_malloc(16 + next_random(&churn_random) % 1000);
        churn(0, 10000);
        sy_get_stats(&stats);
        if (cycle < 100 && stats.slabs > mapped_first) mapped_first = stats.slabs;
        if (cycle >= 100 && stats.slabs > mapped_last) mapped_last = stats.slabs;
        if (cycle == 100) resident_first = resident_anonymous();
        for (size_t i = 1000; i < 10000; i++) {
            sy_free(objects[i]);
            objects[i] = NULL;
        }
    }
    print_message("slabs: %zu KiB in the first hundred, %zu KiB after\n", mapped_first / KIB,
                  mapped_last / KIB);
    assert_true(mapped_last <= mapped_first + mapped_first / 50);
    grew_at_most(resident_first, 512 * KIB);
    for (size_t i = 0; i < 1000; i++) sy_free(objects[i]);
}

/* ---- back to the system ---- */

static pthread_barrier_t barrier;

static void *free_then_idle(void *arg) {
    for (size_t i = 0; i < MANY; i += 2) sy_cache_free(arg, objects[i]);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *free_then_end(void *arg) {
    for (size_t i = 1; i < MANY; i += 2) sy_cache_free(arg, objects[i]);
    return NULL;
}

static void all_but_half_a_percent_goes_back(void **state) {
    (void)state;
    pthread_t idle;
    sy_cache *cache = make(256);
    sy_cache_free(cache, sy_cache_alloc(cache));

    sy_trim();
    pthread_barrier_init(&barrier, NULL, 2);
    size_t before = resident_anonymous(), peak = MANY * 256;
    for (size_t i = 0; i < MANY; i++) memset(objects[i] = sy_cache_alloc(cache), 1, 256);
    assert_int_equal(pthread_create(&idle, NULL, free_then_idle, cache), 0);
    pthread_barrier_wait(&barrier);
    in_thread(free_then_end, cache);
    assert_true(sy_trim() >= peak);
    assert_int_equal(mapped(cache), 0);
    /* Stacks of two threads, headers of magazines. */
    grew_at_most(before, peak / 200 + 384 * KIB);
    pthread_barrier_wait(&barrier);
    pthread_join(idle, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* Each page without a live object goes back, although few slabs are empty. */
static void after_random_frees_only_pages_with_live_objects_stay(void **state) {
    (void)state;
    size_t page = sy_os_page_size(), kept = 0, pages = 0;
    sy_cache *cache = make(64);
    sy_trim();
    size_t before = resident_anonymous();
    uint64_t random = 16;
    for (size_t i = 0; i < MANY; i++) memset(objects[i] = sy_cache_alloc(cache), 1, 64);
    shuffle(objects, MANY, &random);
    kept = MANY / 100;
    for (size_t i = kept; i < MANY; i++) sy_cache_free(cache, objects[i]);
    sy_cache_trim(cache);
    for (size_t i = 0; i < kept; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first &= (uintptr_t)objects[i] / page != (uintptr_t)objects[j] / page;
        pages += first;
    }
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.mapped - stats.discarded - stats.never_used <= (pages + 16) * page);
    grew_at_most(before, pages * page + pages * page / 100 + 384 * KIB);
    for (size_t i = 0; i < kept; i++) sy_cache_free(cache, objects[i]);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* The objects, half a percent, a bit for each slot, and the memory of a thread and the library. */
static void objects_cost_what_they_hold(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 16, 64, 256, 1024, 4096};
    for (int s = 0; s < 6; s++) {
        sy_cache *cache = make(sizes[s]);
        sy_trim();
        size_t before = resident_anonymous(), count = s < 5 ? MANY : MANY / 4;
        for (size_t i = 0; i < count; i++) memset(sy_cache_alloc(cache), 1, sizes[s]);
        size_t payload = count * sizes[s];
        grew_at_most(before, payload + payload / 200 + count / 8 + 144 * KIB);
        sy_cache_destroy_all(cache);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroy_returns_the_process_to_its_size),
        cmocka_unit_test(producer_and_consumer_stay_flat),
        cmocka_unit_test(rounds_of_all_and_nothing_stay_flat),
        cmocka_unit_test(a_thousand_cycles_of_churn_do_not_grow),
        cmocka_unit_test(all_but_half_a_percent_goes_back),
        cmocka_unit_test(after_random_frees_only_pages_with_live_objects_stay),
        cmocka_unit_test(objects_cost_what_they_hold),
    };
    take_small_pages_only();
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
