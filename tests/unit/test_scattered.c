/*
 * test_scattered.c: full magazines go to the depot or, if their objects are small ones of the
 * general heap and lie far apart in much memory, to the slabs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "magazine/budget.h"
#include "magazine/depot.h"
#include "os/fake.h"

enum {
    SIZE = 256,
    LARGER = 512,
    COUNT = 65536, /* 16 MiB of objects */
    FEW = 8192,    /* 2 MiB */
    LOADED = 2 * 127,
};

static void *objects[COUNT];

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    sy_fake_set_cpu(0);
    sy_set_decay(0);
    return 0;
}

static int end(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        sy_free(objects[i]);
        objects[i] = NULL;
    }
    sy_thread_flush();
    sy_trim();
    sy_budget_note_memory(0);
    sy_fake_reset();
    return 0;
}

static void take_of(size_t size, size_t count) {
    for (size_t i = 0; i < count; i++) assert_non_null(objects[i] = sy_malloc(size));
}

static void take(size_t count) { take_of(SIZE, count); }

/* Frees `few` of the first `count` objects, each `stride` behind the one before. */
static void give(size_t count, size_t few, size_t stride) {
    for (size_t i = 0; i < few; i++) {
        void **object = &objects[i * stride % count];
        sy_free(*object);
        *object = NULL;
    }
}

static int copy_if_named(void *stats, const sy_cache_account *account) {
    sy_cache_stats *to = stats;
    if (strcmp(account->stats.name, to->name) == 0) *to = account->stats;
    return 0;
}

static sy_cache_stats stats_of(const char *name) {
    sy_cache_stats all = {.name = ""};
    snprintf(all.name, sizeof all.name, "%s", name);
    assert_int_equal(sy_cache_each(copy_if_named, &all), 0);
    return all;
}

static sy_cache_stats stats(void) { return stats_of("heap-256"); }

static void scattered_objects_go_to_their_slabs(void **state) {
    (void)state;
    take(COUNT);
    size_t flushes = stats().flushes;
    give(COUNT, COUNT / 2, 5003);
    assert_int_equal(stats().in_depot, 0);
    assert_in_range(stats().in_loaded, 1, LOADED);
    assert_true(stats().flushes > flushes);
}

static void after_that_objects_come_in_order(void **state) {
    (void)state;
    static char *again[COUNT / 4];
    take(COUNT);
    give(COUNT, COUNT / 2, 5003);
    sy_thread_flush();
    size_t near = 0;
    for (size_t i = 0; i < COUNT / 4; i++) {
        again[i] = sy_malloc(SIZE);
        near += i > 0 && again[i] > again[i - 1] && again[i] - again[i - 1] <= 4 * SIZE;
    }
    assert_true(near > COUNT / 4 / 2);
    for (size_t i = 0; i < COUNT / 4; i++) sy_free(again[i]);
}

/* Whether objects wait in the depot that are freed in order, each `stride` behind the one before.
 * A sweep does so, and leaves live ones in between. */
static bool wait_in_the_depot(size_t stride) {
    take(COUNT);
    give(COUNT, 1000, stride);
    size_t waiting = stats().in_depot;
    assert_true(waiting == 0 || (waiting >= 127 && waiting <= 1000));
    return waiting;
}

static void neighbours_wait_in_the_depot(void **state) {
    (void)state;
    assert_true(wait_in_the_depot(1));
}

static void neighbours_with_one_between_wait_too(void **state) {
    (void)state;
    assert_true(wait_in_the_depot(2));
}

static void objects_with_two_between_go_to_their_slabs(void **state) {
    (void)state;
    assert_false(wait_in_the_depot(3));
}

static void little_memory_is_not_looked_at(void **state) {
    (void)state;
    take(FEW);
    give(FEW, 1000, 1021);
    assert_in_range(stats().in_depot, 127, 1000);
}

/* What another CPU takes goes to the depot, in whatever order. */
static void objects_for_other_cpus_wait_in_the_depot(void **state) {
    (void)state;
    take(COUNT);
    give(COUNT, 400, 1);
    assert_true(stats().in_depot > 0);
    sy_thread_flush();
    if (sy_depot_shard_count == 1) skip();
    static void *elsewhere[200];
    sy_fake_set_cpu(1);
    for (int i = 0; i < 200; i++) elsewhere[i] = sy_malloc(SIZE);
    sy_fake_set_cpu(0);
    size_t waiting = stats().in_depot;
    for (size_t i = 0; i < 1000; i++) {
        void **object = &objects[400 + i * 5003 % 15000];
        sy_free(*object);
        *object = NULL;
    }
    assert_true(stats().in_depot > waiting);
    for (int i = 0; i < 200; i++) sy_free(elsewhere[i]);
}

static void larger_objects_wait_in_the_depot(void **state) {
    (void)state;
    take_of(LARGER, COUNT);
    give(COUNT, 400, 5003);
    assert_in_range(stats_of("heap-512").in_depot, 127, 400);
}

static void objects_of_a_cache_wait_in_the_depot(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "orders", .size = SIZE});
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < COUNT / 2; i++) sy_cache_free(cache, objects[i * 5003 % COUNT]);
    sy_cache_stats all;
    assert_int_equal(sy_cache_get_stats(cache, &all), 0);
    assert_in_range(all.in_depot, 127, COUNT / 2);
    for (size_t i = 0; i < COUNT; i++) objects[i] = NULL;
    sy_cache_destroy_all(cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(scattered_objects_go_to_their_slabs),
        TEST(after_that_objects_come_in_order),
        TEST(neighbours_wait_in_the_depot),
        TEST(neighbours_with_one_between_wait_too),
        TEST(objects_with_two_between_go_to_their_slabs),
        TEST(little_memory_is_not_looked_at),
        TEST(objects_for_other_cpus_wait_in_the_depot),
        TEST(larger_objects_wait_in_the_depot),
        TEST(objects_of_a_cache_wait_in_the_depot),
    };
    return cmocka_run_group_tests_name("scattered", tests, NULL, NULL);
}
