/*
 * test_interval.c: how often passes by age begin. A program that soon uses again what passes have
 * returned gets fewer of them; one whose memory falls gets more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"
#include "support/ages.h"
#include "support/page_size.h"
#include "support/services.h"

enum { MIB = 1 << 20, CALM = 60 };

static uint64_t decay_times(void) { return sy_reclaim_interval() / DECAY_NS; }

static size_t discarded(void) { return (size_t)sy_fake_bytes(SY_FAKE_DISCARD); }

/* ---- what is taken and freed ---- */

static size_t object_bytes, object_count;
static void *all[COUNT];

static void take_all(void) {
    for (size_t i = 0; i < object_count; i++) {
        all[i] = sy_malloc(object_bytes);
        must(all[i] != NULL);
        memset(all[i], 1, object_bytes);
    }
}

static void free_from(size_t first) {
    for (size_t i = first; i < object_count; i++) sy_free(all[i]);
}

/* Frees the objects, and passes until their memory is gone. */
static void lose(size_t kept) {
    size_t before = discarded(), bytes = (object_count - kept) * object_bytes;
    free_from(kept);
    for (int i = 0; i < ENOUGH_PASSES && discarded() - before < bytes * 3 / 4; i++) {
        pass();
        sy_thread_flush();
    }
    assert_true(discarded() - before >= bytes * 3 / 4);
}

/* Memory that is used again soon makes passes half as frequent, at most twice. */
static void is_noticed(size_t bytes, size_t count) {
    object_bytes = bytes;
    object_count = count;
    static const uint64_t intervals[] = {2, 4, 4};
    assert_int_equal(decay_times(), 1);
    for (size_t i = 0; i < 3; i++) {
        take_all();
        lose(0);
        take_all();
        pass();
        assert_int_equal(decay_times(), intervals[i]);
        free_from(0);
    }
    passes(ENOUGH_PASSES);
}

static void units_that_are_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_noticed((size_t)300 * 1024, 70);
}

/* A span in each chunk stays, so the chunks stay too. */
static void units_of_chunks_in_use_that_are_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    static void *spans[400];
    const size_t bytes = (size_t)256 * 1024;
    for (size_t i = 0; i < 400; i++) memset(spans[i] = sy_malloc(bytes), 1, bytes);
    size_t before = discarded();
    for (size_t i = 0; i < 400; i++)
        if (i % 4) sy_free(spans[i]);
    for (int i = 0; i < ENOUGH_PASSES && discarded() - before < 300 * bytes; i++) pass();
    assert_int_equal(decay_times(), 1);
    for (size_t i = 0; i < 400; i++)
        if (i % 4) memset(spans[i] = sy_malloc(bytes), 1, bytes);
    pass();
    assert_int_equal(decay_times(), 2);
    for (size_t i = 0; i < 400; i++) sy_free(spans[i]);
}

/* A pass discards four units in a step. Here a span takes them, and four others of the same chunk,
 * before the next step. */
static void units_that_are_used_again_within_the_pass(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    static unsigned char *spans[60];
    const size_t bytes = (size_t)256 * 1024;
    for (size_t i = 0; i < 60; i++) memset(spans[i] = sy_malloc(bytes), 1, bytes);
    size_t at = 30; /* in the middle of a chunk that is full */
    while (spans[at] + bytes != spans[at + 1]) at++;
    sy_free(spans[at]);
    sy_free(spans[at + 1]);
    uint64_t before = sy_fake_calls(SY_FAKE_DISCARD);
    while (sy_fake_calls(SY_FAKE_DISCARD) == before) {
        if (!pass_at_work()) begin_pass();
        take_turns(1);
    }
    unsigned char *both = sy_malloc(2 * bytes);
    assert_ptr_equal(both, spans[at]);
    end_pass();
    sound(NULL);
    sy_free(both);
    for (size_t i = 0; i < 60; i++)
        if (i != at && i != at + 1) sy_free(spans[i]);
    passes(ENOUGH_PASSES);
}

static void large_spans_that_are_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_noticed((size_t)6 * MIB, 4);
}

static void slabs_that_are_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_noticed(1024, COUNT);
}

static void pages_that_are_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(4096, SY_CHECKED); /* no magazines */
    static void *kept[COUNT];
    for (size_t i = 0; i < 5000; i++) memset(kept[i] = sy_cache_alloc(cache), 1, 4096);
    for (int round = 0; round < 2; round++) {
        size_t before = stats_of(cache).discarded;
        for (size_t i = 0; i < 5000; i++) /* no slab becomes empty */
            if (i % 8) sy_cache_free(cache, kept[i]);
        for (int i = 0; i < ENOUGH_PASSES && stats_of(cache).discarded == before; i++) pass();
        assert_true(stats_of(cache).discarded > (size_t)10 * MIB);
        for (size_t i = 0; i < 5000; i++)
            if (i % 8) memset(kept[i] = sy_cache_alloc(cache), 1, 4096);
        pass();
        assert_int_equal(decay_times(), round == 0 ? 2 : 4);
    }
    for (size_t i = 0; i < 5000; i++) sy_cache_free(cache, kept[i]);
    end(cache);
}

/* The mark of a returned page outlives the pass that returned it. All marks end with each fourth
 * pass, so the page is noticed in some of four places between these. */
static void pages_that_are_used_again_a_pass_later(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    sy_cache *cache = make(4096, SY_CHECKED);
    static void *kept[COUNT];
    for (size_t i = 0; i < 5000; i++) memset(kept[i] = sy_cache_alloc(cache), 1, 4096);
    for (unsigned place = 0; place < 4 && decay_times() == 1; place++) {
        passes(place);
        size_t before = stats_of(cache).discarded;
        for (size_t i = 0; i < 5000; i++)
            if (i % 8) sy_cache_free(cache, kept[i]);
        for (int i = 0; i < ENOUGH_PASSES && stats_of(cache).discarded == before; i++) pass();
        assert_true(stats_of(cache).discarded > (size_t)10 * MIB);
        pass();
        for (size_t i = 0; i < 5000; i++)
            if (i % 8) memset(kept[i] = sy_cache_alloc(cache), 1, 4096);
        pass();
    }
    assert_int_equal(decay_times(), 2);
    for (size_t i = 0; i < 5000; i++) sy_cache_free(cache, kept[i]);
    end(cache);
}

/* ---- what does not count ---- */

/* Of `count` objects that were lost, `again` are used after `later` passes: the interval stays. */
static void is_not_noticed(size_t count, size_t again, unsigned later) {
    object_bytes = (size_t)300 * 1024;
    object_count = count;
    take_all();
    lose(0);
    passes(later);
    object_count = again;
    take_all();
    pass();
    assert_int_equal(decay_times(), 1);
    free_from(0);
}

static void memory_that_is_used_again_late_does_not_count(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_not_noticed(70, 70, 5); /* four decay times, and the rest of the pass at work */
}

static void a_little_memory_does_not_count(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_not_noticed(20, 20, 0);
}

static void a_small_part_does_not_count(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_not_noticed(400, 40, 0);
}

/* ---- memory that falls ---- */

enum { ROUNDS = 12 };

/* The interval in quarters of the decay time. */
static uint64_t quarters(void) { return sy_reclaim_interval() * 4 / DECAY_NS; }

static void free_part(size_t round, size_t part) {
    for (size_t i = 0; i < part; i++) sy_free(all[round * part + i]);
}

/* Frees ROUNDS parts of `part` objects, a pass after each. Returns the shortest interval. */
static uint64_t fall(size_t part) {
    uint64_t least = quarters();
    for (size_t round = 0; round < ROUNDS; round++) {
        free_part(round, part);
        pass();
        if (quarters() < least) least = quarters();
    }
    return least;
}

static void take_for_a_fall(size_t part) {
    object_bytes = (size_t)300 * 1024;
    object_count = ROUNDS * part;
    take_all();
    passes(ENOUGH_PASSES);
    assert_int_equal(quarters(), 4);
}

static void falling_memory_makes_passes_more_frequent(void **state) {
    (void)state;
    take_for_a_fall(30);
    assert_int_equal(fall(30), 1);
    passes(ENOUGH_PASSES);
    assert_int_equal(quarters(), 4);
}

static void the_end_of_a_fall_is_slow(void **state) {
    (void)state;
    take_for_a_fall(30);
    fall(30);
    assert_int_equal(quarters(), 1);
    for (int i = 0; i < ENOUGH_PASSES && quarters() == 1; i++) pass();
    assert_int_equal(quarters(), 2);
    pass();
    assert_int_equal(quarters(), 4);
}

static void a_fall_within_one_pass_does_not_count(void **state) {
    (void)state;
    object_bytes = (size_t)300 * 1024;
    object_count = 200;
    take_all();
    passes(ENOUGH_PASSES);
    free_from(0);
    for (int i = 0; i < ENOUGH_PASSES; i++, pass()) assert_int_equal(quarters(), 4);
}

static void a_fall_of_little_memory_does_not_count(void **state) {
    (void)state;
    take_for_a_fall(6);
    assert_int_equal(fall(6), 4);
}

/* 4 of 350 MiB in each pass. */
static void a_fall_by_a_small_part_does_not_count(void **state) {
    (void)state;
    take_for_a_fall(14);
    static void *others[1024];
    for (size_t i = 0; i < 1024; i++) must((others[i] = sy_malloc(object_bytes)) != NULL);
    passes(ENOUGH_PASSES);
    assert_int_equal(fall(14), 4);
    for (size_t i = 0; i < 1024; i++) sy_free(others[i]);
}

/* 4 MiB of spans return with each pass, and once 27 MiB of pages, of which 2 MiB at a time are used
 * again. */
static void a_fall_does_not_count_if_memory_is_used_again(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    enum { PAGES = 8000, AGAIN = 580 };
    static void *pages[PAGES];
    sy_cache *cache = make(4096, SY_CHECKED); /* no magazines */
    for (size_t i = 0; i < PAGES; i++) memset(pages[i] = sy_cache_alloc(cache), 1, 4096);
    take_for_a_fall(12);
    for (size_t i = 0; i < PAGES; i++) /* no slab becomes empty */
        if (i % 8) sy_cache_free(cache, pages[i]);
    size_t at = 0;
    for (size_t round = 0; round < 5; round++) {
        free_part(round, 12);
        bool gone = at > 0 || stats_of(cache).discarded > (size_t)20 * MIB;
        for (size_t taken = 0; gone && taken < AGAIN; at++)
            if (at % 8) memset(pages[at] = sy_cache_alloc(cache), 1, 4096), taken++;
        pass();
        assert_int_equal(quarters(), 4);
    }
    assert_true(at > 0);
    for (size_t i = 0; i < PAGES; i++)
        if (i < at || i % 8 == 0) sy_cache_free(cache, pages[i]);
    for (size_t round = 5; round < ROUNDS; round++) free_part(round, 12);
    end(cache);
}

static void memory_that_is_used_again_ends_a_fall(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    take_for_a_fall(60);
    assert_int_equal(fall(60), 1);
    pass();
    object_count = 600;
    take_all();
    pass();
    assert_int_equal(quarters(), 8);
    free_from(0);
}

/* ---- the way back ---- */

static void after_calm_passes_the_interval_is_halved(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_noticed((size_t)300 * 1024, 70);
    assert_int_equal(decay_times(), 4);
    passes(CALM);
    assert_int_equal(decay_times(), 2);
    passes(CALM);
    assert_int_equal(decay_times(), 1);
    passes(2 * CALM);
    assert_int_equal(decay_times(), 1);
}

static void a_new_decay_time_begins_anew(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    is_noticed((size_t)300 * 1024, 70);
    sy_set_decay(3 * DECAY_MS);
    assert_int_equal(decay_times(), 3);
    sy_set_decay(DECAY_MS);
    assert_int_equal(decay_times(), 1);
}

static void the_longest_decay_time_does_not_wrap(void **state) {
    (void)state;
    sy_set_decay(UINT64_MAX);
    assert_true(sy_reclaim_interval() > UINT64_MAX / 32);
    sy_set_decay(DECAY_MS);
}

/* No memory has a mark of being returned early. */
static int begin_without_marks(void **state) {
    begin(state);
    passes(ENOUGH_PASSES);
    sy_set_decay(DECAY_MS);
    take_turns(SY_TURNS_PER_LOOK); /* time is counted from here */
    return 0;
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_without_marks, leave)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(units_that_are_used_again),
        TEST(units_of_chunks_in_use_that_are_used_again),
        TEST(units_that_are_used_again_within_the_pass),
        TEST(large_spans_that_are_used_again),
        TEST(slabs_that_are_used_again),
        TEST(pages_that_are_used_again),
        TEST(pages_that_are_used_again_a_pass_later),
        TEST(memory_that_is_used_again_late_does_not_count),
        TEST(a_little_memory_does_not_count),
        TEST(a_small_part_does_not_count),
        TEST(falling_memory_makes_passes_more_frequent),
        TEST(the_end_of_a_fall_is_slow),
        TEST(a_fall_within_one_pass_does_not_count),
        TEST(a_fall_of_little_memory_does_not_count),
        TEST(a_fall_by_a_small_part_does_not_count),
        TEST(a_fall_does_not_count_if_memory_is_used_again),
        TEST(memory_that_is_used_again_ends_a_fall),
        TEST(after_calm_passes_the_interval_is_halved),
        TEST(a_new_decay_time_begins_anew),
        TEST(the_longest_decay_time_does_not_wrap),
    };
    return cmocka_run_group_tests_name("interval", tests, NULL, NULL);
}
