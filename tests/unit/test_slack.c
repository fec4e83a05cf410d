/*
 * test_slack.c: the option `slack` bounds what is held (reclaim/slack.h), by what was live in the
 * last one to two seconds. The clock stands still.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "base/random.h"
#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "chunk/memory.h"
#include "os/fake.h"
#include "reclaim/slack.h"
#include "support/child.h"
#include "support/page_size.h"
#include "support/services.h"

enum { MIB = 1 << 20, SPAN = 200 << 10, MOST = 200000 };
static const uint64_t SECOND = 1000000000;

static void *objects[MOST];
static size_t count, live; /* number of objects; their bytes, as asked for */
static uint64_t seed = 7, start;

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    sy_set_decay(0);
    sy_trim();
    sy_fake_set_clock(start += 100 * SECOND);
    count = live = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    sy_set_slack(0);
    while (count) sy_free(objects[--count]);
    sy_thread_flush();
    sy_trim();
    sy_fake_reset();
    return sy_verify() == 0 ? 0 : -1;
}

static void add(size_t size) {
    must(count < MOST && (objects[count] = sy_malloc(size)) != NULL);
    count++;
    live += size;
}

static void remove_last(size_t size) {
    sy_free(objects[--count]);
    live -= size;
}

/* Each takes a turn at the end of its slow path. */
static void take_turns(void) {
    for (int i = 0; i < 16; i++) sy_free(sy_malloc(4 * MIB + 1));
}

static void add_and_remove_40_mb(void) {
    for (int i = 0; i < 200; i++) add(SPAN);
    take_turns();
    while (count) remove_last(SPAN);
}

/* Bytes that slabs, free units and spans hold, as the public statistics have it. */
static int add_discarded(void *sum, const sy_cache_account *account) {
    *(size_t *)sum += account->stats.discarded;
    return 0;
}

static size_t held(void) {
    sy_stats stats;
    size_t discarded = sy_mixed_count().discarded;
    sy_get_stats(&stats);
    sy_cache_each(add_discarded, &discarded);
    return stats.mapped - stats.chunk_headers - stats.units_clean - discarded;
}

static void without_a_bound_all_is_kept(void **state) {
    (void)state;
    add_and_remove_40_mb();
    sy_fake_advance_clock(5 * SECOND);
    take_turns();
    assert_true(held() > 38 * MIB);
}

static void what_was_live_a_moment_ago_may_be_held(void **state) {
    (void)state;
    sy_set_slack(30);
    add_and_remove_40_mb();
    sy_fake_advance_clock(SECOND / 2);
    take_turns();
    assert_true(held() > 38 * MIB);
    sy_fake_advance_clock(SECOND * 6 / 10);
    take_turns(); /* the second window begins */
    assert_true(held() > 38 * MIB);
    sy_fake_advance_clock(SECOND * 11 / 10);
    take_turns();
    assert_in_range(held(), 0, 9 * MIB); /* 4 MiB for small programs, and the span of a turn */
}

static void memory_that_was_used_long_ago_is_not_live(void **state) {
    (void)state;
    sy_set_slack(10);
    add_and_remove_40_mb();
    sy_fake_advance_clock(10 * SECOND); /* more than both windows */
    take_turns();
    assert_in_range(held(), 0, 9 * MIB);
}

static void small_programs_may_hold_4_mib(void **state) {
    (void)state;
    sy_set_slack(1);
    for (int i = 0; i < 12; i++) add(SPAN);
    while (count) remove_last(SPAN);
    sy_fake_advance_clock(5 * SECOND);
    assert_int_equal(sy_slack_look(), 0);
    take_turns();
    assert_true(held() > 2 * MIB);
}

static void a_bound_beyond_all_memory_is_none(void **state) {
    (void)state;
    sy_set_slack(SIZE_MAX);
    add_and_remove_40_mb();
    sy_fake_advance_clock(5 * SECOND);
    take_turns();
    assert_true(held() > 38 * MIB);
}

/* Sizes change, and a tenth survives. What is freed at random is scattered, and holes serve the
 * next sizes. So the bound is kept in most rounds, and would be passed in most without it. */
static unsigned rounds_beyond(size_t percent) {
    unsigned beyond = 0;
    sy_set_slack(percent);
    for (unsigned round = 0; round < 40; round++) {
        size_t size = (size_t)48 << sy_random_below(&seed, 7);
        while (live < 16 * MIB && count < MOST) add(size);
        size_t bound = live + live / 2;
        beyond += held() > bound;
        sy_fake_advance_clock(SECOND / 10);
        while (count > 100) sy_free(objects[--count]);
        live = 100 * size;
        beyond += held() > bound;
    }
    return beyond;
}

static void in_cycles_of_changing_sizes_the_bound_is_kept(void **state) {
    (void)state;
    assert_in_range(rounds_beyond(50), 0, 4); /* of 80 samples, 95 % */
}

static const sy_cache_config of_one = {.name = "one", .size = 1000};

/* Caches of the program count too, and what was discarded does not. */
static void slabs_of_caches_go_too(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = sy_cache_create(&of_one);
    must(cache != NULL);
    sy_set_slack(20);
    while (count < 40000) must((objects[count++] = sy_cache_alloc(cache)) != NULL);
    take_turns();
    for (size_t i = 0; i < count; i++)
        if (i % 200) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    sy_fake_advance_clock(10 * SECOND);
    take_turns();
    assert_in_range(held(), 0, 12 * MIB);
    sy_fake_advance_clock(SECOND);
    assert_int_equal(sy_slack_look(), 0); /* what was discarded is not held */
    for (size_t i = 0; i < count; i += 200) sy_cache_free(cache, objects[i]);
    count = 0;
    assert_int_equal(sy_cache_destroy(cache), 0);
}

enum { THREADS = 3, ROUNDS = 300 };

static void *grow_and_shrink(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char *blocks[20];
        for (int k = 0; k < 20; k++)
            must((blocks[k] = sy_malloc(90000 + 7000 * (size_t)k)) != NULL);
        for (int k = 0; k < 20; k++) blocks[k][0] = blocks[k][89999] = (unsigned char)(i + k);
        for (int k = 0; k < 20; k++) {
            must(blocks[k][0] == (unsigned char)(i + k) && blocks[k][89999] == blocks[k][0]);
            sy_free(blocks[k]);
        }
    }
    return NULL;
}

/* While others allocate, look, and give memory back. */
static void any_thread_sets_it_at_any_time(void **state) {
    (void)state;
    static const size_t percents[] = {1, 0, SIZE_MAX, 30};
    pthread_t threads[THREADS];
    sy_fake_reset(); /* the clock goes on */
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, grow_and_shrink, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        sy_set_slack(percents[i % 4]);
        take_turns();
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(sy_verify(), 0);
}

static void the_option_sets_it(void **state) {
    (void)state;
    assert_int_equal(sy_set_options("slack=10%"), 0);
    add_and_remove_40_mb();
    sy_fake_advance_clock(10 * SECOND);
    take_turns();
    assert_in_range(held(), 0, 9 * MIB);
    assert_int_equal(sy_set_options("slack=off"), 0);
    add_and_remove_40_mb();
    sy_fake_advance_clock(10 * SECOND);
    take_turns();
    assert_true(held() > 38 * MIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(without_a_bound_all_is_kept),
        TEST(what_was_live_a_moment_ago_may_be_held),
        TEST(memory_that_was_used_long_ago_is_not_live),
        TEST(small_programs_may_hold_4_mib),
        TEST(a_bound_beyond_all_memory_is_none),
        TEST(in_cycles_of_changing_sizes_the_bound_is_kept),
        TEST(slabs_of_caches_go_too),
        TEST(any_thread_sets_it_at_any_time),
        TEST(the_option_sets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
