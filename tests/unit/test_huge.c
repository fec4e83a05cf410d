/*
 * test_huge.c: memory for caches that grow, and for large spans of a program that writes its spans
 * densely, is backed by huge pages ahead of use. This happens in large programs only, not near the
 * memory limit, and not after a huge page that took long. Passes return what caches do not use,
 * also in the child of a fork that came while a half was backed.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk/huge.h"
#include "chunk/large.h"
#include "chunk/pressure.h"
#include "os/fake.h"
#include "support/ages.h"
#include "support/resident.h"
#include "support/services.h"
#include "support/small_pages.h"

enum {
    MIB = 1 << 20,
    HALF = SY_HUGE_UNITS,
    UNITS = SY_CHUNK_UNITS,
    SLOW_NS = 500000,
    LATE_NS = 20000000,
    PAUSES = 64,
    CACHE_SLABS = 64, /* 4 MiB: the smallest cache that gets huge pages */
    SLOT = 1024,
};

/* ---- the state of memory ---- */

static sy_chunk_stats counted(void) { return sy_chunk_count(); }
static size_t dirty_units(void) { return counted().units_free - counted().units_clean; }
static uint64_t asked(void) { return sy_fake_calls(SY_FAKE_MAKE_HUGE); }
static uint64_t made(void) { return sy_fake_bytes(SY_FAKE_MAKE_HUGE); }

static sy_slab *take_run(unsigned units, bool *clean) {
    sy_slab *run = sy_run_take(&sy_memory_main, units * (size_t)SY_UNIT_BYTES, 1, 0, clean);
    must(run != NULL);
    return run;
}

static unsigned first_unit(const sy_slab *run) { return run->start >> SY_UNIT_SHIFT & (UNITS - 1); }

/* Fills up the chunks that have room, then takes the first unit of a new chunk. */
static sy_slab *fill_up(sy_slab **fillers, size_t *count, bool *clean) {
    for (*count = 0;; ++*count) {
        sy_slab *run = take_run(1, clean);
        if (first_unit(run) == 1 && *clean) return run;
        fillers[*count] = run;
        must(*count < (size_t)10 * UNITS);
    }
}

static sy_slab *fillers[10 * UNITS];
static size_t filler_count;

static sy_slab *first_of_a_chunk(bool *clean) { return fill_up(fillers, &filler_count, clean); }

static void give_fillers(void) {
    while (filler_count) sy_run_give(fillers[--filler_count]);
}

/* The first run of a new chunk, for which its half is backed if nothing speaks against it. */
static sy_slab *back_first(void) {
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    sy_chunk_back_ahead(run, clean);
    return run;
}

static void give_all(sy_slab *run) {
    sy_run_give(run);
    give_fillers();
    sound(NULL);
}

static int begin_large(void **state) {
    begin(state);
    sy_set_decay(0);
    must(sy_set_options("huge=2M") == 0);
    sy_fake_set_memory_limit(SIZE_MAX);
    must(!sy_pressure_take_reading(false));
    return 0;
}

static int leave_large(void **state) {
    must(sy_set_options("huge=128M") == 0);
    return leave(state);
}

/* ---- halves of chunks ---- */

static void the_first_run_of_a_half_backs_all_of_it(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    uint64_t asked_before = asked(), made_before = made();
    size_t dirty = dirty_units();
    int64_t room = atomic_load(&sy_pressure_room);
    errno = KEPT_ERRNO;
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_int_equal(asked() - asked_before, 1);
    assert_int_equal(made() - made_before, SY_HUGE_BYTES);
    assert_int_equal(dirty_units() - dirty, HALF - 2); /* without the run and unit 0 */
    assert_int_equal(room - atomic_load(&sy_pressure_room), (HALF - 2) * SY_UNIT_BYTES);
    assert_true(is_resident((void *)(run->start + (HALF - 2) * (size_t)SY_UNIT_BYTES)));
    assert_false(is_resident((void *)(run->start + (HALF - 1) * (size_t)SY_UNIT_BYTES)));
    give_all(run);
}

static void further_runs_use_what_is_backed(void **state) {
    (void)state;
    sy_slab *run = back_first(), *more[HALF];
    uint64_t before = asked();
    bool clean;
    for (unsigned i = 0; i < HALF - 2; i++) {
        more[i] = take_run(1, &clean);
        assert_false(clean);
        assert_int_equal(first_unit(more[i]), i + 2);
        sy_chunk_back_ahead(more[i], clean);
    }
    assert_int_equal(asked(), before);
    more[HALF - 2] = take_run(1, &clean); /* the first of the second half */
    assert_true(clean);
    sy_chunk_back_ahead(more[HALF - 2], clean);
    assert_int_equal(asked(), before + 1);
    for (unsigned i = 0; i < HALF - 1; i++) sy_run_give(more[i]);
    give_all(run);
}

static void a_run_across_the_middle_backs_the_second_half(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = back_first();
    sy_slab *most = take_run(HALF - 4, &clean);
    uint64_t before = made();
    sy_slab *across = take_run(4, &clean); /* two dirty units, two clean ones */
    assert_int_equal(first_unit(across), HALF - 2);
    assert_false(clean);
    sy_chunk_back_ahead(across, clean);
    assert_int_equal(made() - before, SY_HUGE_BYTES);
    assert_true(is_resident((void *)(across->start + 10 * (size_t)SY_UNIT_BYTES)));
    sy_run_give(across);
    sy_run_give(most);
    give_all(run);
}

static void a_half_with_dirty_units_is_left_alone(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean), *next = take_run(1, &clean);
    uint64_t before = asked();
    sy_run_give(next);
    sy_chunk_back_ahead(run, true);
    assert_int_equal(asked(), before);
    next = take_run(1, &clean);
    sy_run_give(run);
    sy_chunk_back_ahead(next, true);
    assert_int_equal(asked(), before);
    give_all(next);
}

static void a_run_of_dirty_units_backs_nothing(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean), *second = take_run(1, &clean);
    sy_run_give(run);
    run = take_run(1, &clean);
    assert_false(clean);
    sy_run_give(second);
    sy_trim(); /* the others are clean */
    uint64_t before = asked();
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before);
    give_all(run);
}

static void a_chunk_with_holes_is_left_alone(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    sy_chunk_punched(run);
    uint64_t before = asked();
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before);
    give_all(run);
}

/* Unit 0 holds nothing, but is a part of the huge page. It goes with unit 1. */
static void a_trim_returns_what_was_not_used(void **state) {
    (void)state;
    sy_slab *run = back_first();
    char *start = (char *)run->start - SY_UNIT_BYTES;
    bool clean;
    sy_slab *second = take_run(1, &clean); /* the chunk stays */
    assert_int_equal(second->start, run->start + SY_UNIT_BYTES);
    memset((void *)run->start, 1, SY_UNIT_BYTES);
    sy_trim();
    assert_int_equal(dirty_units(), 0);
    assert_false(is_resident(start + 3 * (size_t)SY_UNIT_BYTES));
    assert_true(is_resident(start));
    sy_run_give(run);
    sy_trim();
    assert_false(is_resident(start));
    assert_false(is_resident(start + SY_UNIT_BYTES));
    assert_true(is_resident((char *)second->start));
    give_all(second);
}

/* ---- fork ---- */

static sy_slab *backing; /* in a half that another thread backs */
static pthread_barrier_t half_backed, forked;

static char *second_unit(void) { return (char *)backing->start + SY_UNIT_BYTES; }

/* The memory is there, and is not noted yet. The half still has the advice that a huge page needs,
 * if the system knows it. */
static void stop_there(void) {
    (void)sy_os_huge((char *)backing->start - SY_UNIT_BYTES, SY_HUGE_BYTES, true);
    memset(second_unit(), 0, SY_UNIT_BYTES);
    pthread_barrier_wait(&half_backed);
    pthread_barrier_wait(&forked);
}

static void *back_half(void *arg) {
    sy_chunk_back_ahead(backing, true);
    return arg;
}

static void expect_dirty(void *arg) { must(dirty_units() == *(const size_t *)arg); }

static void return_what_was_backed(void *arg) {
    const size_t *dirty = arg;
    must(dirty_units() - *dirty == HALF - 2);
    must(is_resident(second_unit()));
    must(keeps_small_pages(second_unit()) || !has_small_page_advice());
    sy_trim();
    must(dirty_units() == 0);
    must(!is_resident(second_unit()));
    must(sy_chunk_verify(&sy_memory_main) == 0);
    size_t none = 0;
    must(in_child(expect_dirty, &none) == 0);
}

static void a_child_returns_what_a_lost_thread_was_backing(void **state) {
    (void)state;
    bool clean;
    pthread_t thread;
    backing = first_of_a_chunk(&clean);
    size_t dirty = dirty_units();
    must(pthread_barrier_init(&half_backed, NULL, 2) == 0);
    must(pthread_barrier_init(&forked, NULL, 2) == 0);
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, stop_there);
    must(pthread_create(&thread, NULL, back_half, NULL) == 0);
    pthread_barrier_wait(&half_backed);
    assert_int_equal(in_child(return_what_was_backed, &dirty), 0);
    (void)sy_os_huge((char *)backing->start - SY_UNIT_BYTES, SY_HUGE_BYTES, false);
    pthread_barrier_wait(&forked);
    must(pthread_join(thread, NULL) == 0);
    assert_int_equal(dirty_units() - dirty, HALF - 2);
    give_all(backing);
}

static void a_child_finds_clean_what_the_system_refused_to_back(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    size_t dirty = dirty_units();
    sy_fake_fail_nth(SY_FAKE_MAKE_HUGE, 1);
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(in_child(expect_dirty, &dirty), 0);
    give_all(run);
}

/* ---- when there are none ---- */

static void only_a_large_program_gets_huge_pages(void **state) {
    (void)state;
    assert_true(sy_huge_is_allowed(2 * MIB / SY_UNIT_BYTES));
    assert_false(sy_huge_is_allowed(2 * MIB / SY_UNIT_BYTES - 1));
    must(sy_set_options("huge=off") == 0);
    assert_false(sy_huge_is_allowed(SIZE_MAX / SY_UNIT_BYTES));
    must(sy_set_options("huge=128M") == 0);
    assert_true(sy_huge_is_allowed(2048));
    assert_false(sy_huge_is_allowed(2047));
}

static void take_long(void) { sy_fake_advance_clock(SLOW_NS); }
static void take_less(void) { sy_fake_advance_clock(SLOW_NS - 1); }

static void after_a_slow_one_there_is_a_pause(void **state) {
    (void)state;
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, take_long);
    sy_slab *slow = back_first();
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, take_less);
    size_t dirty = dirty_units();
    uint64_t before = asked();
    char *second = (char *)slow->start + (HALF - 1) * (size_t)SY_UNIT_BYTES;
    sy_fake_advance_clock((PAUSES - 1) * (uint64_t)SLOW_NS - 1);
    assert_false(sy_huge_back(second));
    assert_int_equal(asked(), before);
    assert_int_equal(dirty_units(), dirty);
    sy_fake_advance_clock(1);
    assert_true(sy_huge_back(second));
    assert_int_equal(asked(), before + 1);
    assert_true(sy_huge_back(second)); /* it was quick enough, so there is no pause */
    assert_int_equal(asked(), before + 2);
    give_all(slow);
}

/* Only the clock advances: the thread does not work. */
static void wait_long(void) { sy_fake_let_wait(LATE_NS); }
static void wait_less(void) { sy_fake_let_wait(LATE_NS - 1); }

static void after_a_long_wait_there_is_a_pause(void **state) {
    (void)state;
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, wait_less);
    sy_slab *run = back_first();
    char *second = (char *)run->start + (HALF - 1) * (size_t)SY_UNIT_BYTES;
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, wait_long);
    assert_true(sy_huge_back(second));
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, NULL);
    sy_fake_advance_clock((PAUSES - 1) * (uint64_t)LATE_NS - 1);
    assert_false(sy_huge_back(second));
    sy_fake_advance_clock(1);
    assert_true(sy_huge_back(second));
    give_all(run);
}

static void the_system_may_refuse(void **state) {
    (void)state;
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    size_t dirty = dirty_units();
    sy_fake_fail_nth(SY_FAKE_MAKE_HUGE, 1);
    errno = KEPT_ERRNO;
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_int_equal(dirty_units(), dirty);
    uint64_t before = asked();
    sy_fake_advance_clock(PAUSES * (uint64_t)SLOW_NS - 1);
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before);
    sy_fake_advance_clock(1);
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before + 1);
    assert_int_equal(dirty_units() - dirty, HALF - 2);
    give_all(run);
}

static void read_below(size_t limit, size_t resident) {
    sy_fake_set_memory_limit(limit);
    sy_fake_set_resident(resident);
    (void)sy_pressure_take_reading(false);
}

/* The mark is at 560 MiB, and a 64th of it is 8.75 MiB. */
static void near_the_limit_there_are_none(void **state) {
    (void)state;
    const size_t limit = (size_t)640 * MIB, mark = (size_t)560 * MIB, near = mark / 64;
    read_below(limit, mark - 3 * near);
    assert_true(sy_pressure_is_far());
    read_below(limit, mark - 2 * near);
    assert_false(sy_pressure_is_far());
    read_below(limit, mark + MIB);
    assert_false(sy_pressure_is_far());
    bool clean;
    sy_slab *run = first_of_a_chunk(&clean);
    uint64_t before = asked();
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before);
    read_below(limit, 100 * (size_t)MIB);
    sy_chunk_back_ahead(run, clean);
    assert_int_equal(asked(), before + 1);
    read_below(SIZE_MAX, 0);
    assert_true(sy_pressure_is_far());
    give_all(run);
}

/* Where all programs get huge pages, an eighth of each size is enough: here of 16 MiB. */
static void where_they_are_usual_a_smaller_program_gets_them(void **state) {
    (void)state;
    const size_t units = 16 * MIB / SY_UNIT_BYTES;
    must(sy_set_options("huge=16M") == 0);
    assert_false(sy_huge_is_allowed(units - 1));
    sy_fake_set_huge_is_usual(true);
    assert_true(sy_huge_is_allowed(units / 8));
    assert_false(sy_huge_is_allowed(units / 8 - 1));
    must(sy_set_options("huge=off") == 0);
    assert_false(sy_huge_is_allowed(SIZE_MAX));
}

/* ---- caches ---- */

/* Makes slabs until the cache has `slabs`, or cannot be larger (locked memory). Returns how often
 * huge pages were asked for. */
static uint64_t grow_cache(sy_cache *cache, size_t slabs, size_t size) {
    uint64_t before = asked();
    for (size_t i = stats_of(cache).in_use; stats_of(cache).slabs < slabs; i++) {
        must(i < COUNT);
        if (!(objects[i] = sy_cache_alloc(cache))) break;
        memset(objects[i], 1, size);
    }
    return asked() - before;
}

static void destroy_full(sy_cache *cache) {
    sy_cache_stats stats = stats_of(cache);
    for (size_t i = 0; i < stats.in_use; i++) sy_cache_free(cache, objects[i]);
    end(cache);
}

static void a_cache_of_four_mib_gets_huge_pages(void **state) {
    (void)state;
    sy_cache *cache = make(SLOT, 0);
    assert_int_equal(grow_cache(cache, CACHE_SLABS, SLOT), 0);
    assert_in_range(grow_cache(cache, 4 * (size_t)UNITS, SLOT), 4, 7); /* 12 MiB: 6 halves */
    sound(cache);
    destroy_full(cache);
}

static void where_they_are_usual_a_cache_of_512_kib_gets_them(void **state) {
    (void)state;
    sy_fake_set_huge_is_usual(true);
    sy_cache *cache = make(SLOT, 0);
    assert_int_equal(grow_cache(cache, CACHE_SLABS / 8, SLOT), 0);
    assert_in_range(grow_cache(cache, 2 * (size_t)UNITS, SLOT), 3, 4); /* 7.5 MiB */
    sound(cache);
    destroy_full(cache);
}

static void other_caches_get_none(void **state) {
    (void)state;
    const struct {
        size_t size;
        unsigned flags;
    } rows[] = {{SLOT, SY_NO_DUMP}, {SLOT, SY_LOCKED}, {sy_os_page_size() + 8, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sy_cache *cache = sy_cache_create(
            &(sy_cache_config){.name = "other", .size = rows[i].size, .flags = rows[i].flags});
        must(cache != NULL);
        assert_int_equal(grow_cache(cache, 2 * (size_t)CACHE_SLABS, 1), 0);
        destroy_full(cache);
    }
    must(sy_set_options("huge=off") == 0);
    sy_cache *cache = make(SLOT, 0);
    assert_int_equal(grow_cache(cache, 2 * (size_t)CACHE_SLABS, 1), 0);
    destroy_full(cache);
}

/* ---- large spans ---- */

static const size_t KIB = 1024;

static sy_slab *take_span(size_t bytes) {
    bool clean;
    sy_slab *span = sy_run_take(&sy_memory_main, bytes, 1, 0, &clean);
    must(span != NULL && span->bytes > SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES);
    return span;
}

/* A new span that the program is about to write. *bytes: those that were backed with huge pages. */
static sy_slab *take_to_write(size_t mib, size_t *bytes) {
    sy_slab *span = take_span(mib * MIB);
    uint64_t before = made();
    sy_run_back_ahead(span);
    *bytes = made() - before;
    must(*bytes == 0 || is_resident((char *)span->start + *bytes - 1));
    must(!is_resident((char *)span->start + *bytes));
    return span;
}

static void write_span(const sy_slab *span) { memset((void *)span->start, 1, span->bytes); }

static void give_span(sy_slab *span) {
    sy_run_give(span);
    sy_trim();
}

/* The spans before were written, and `mib` MiB are in use. */
static sy_slab *begin_dense(size_t mib) {
    size_t backed;
    sy_slab *first = take_to_write(5, &backed);
    must(backed == 0);
    write_span(first);
    give_span(first);
    sy_slab *base = take_span(mib * MIB); /* no matter if this one is written */
    must(sy_memory_main.dense && !sy_memory_main.watched);
    return base;
}

static int begin_spans(void **state) {
    sy_memory_main.dense = false;
    must(!sy_memory_main.watched);
    return begin_large(state);
}

static void a_span_gets_them_if_the_span_before_was_written(void **state) {
    (void)state;
    size_t backed;
    sy_slab *first = take_to_write(40, &backed);
    assert_int_equal(backed, 0); /* nothing is known yet */
    sy_slab *second = take_to_write(40, &backed);
    assert_int_equal(backed, 0); /* nor now; from now on the second one is watched */
    write_span(second);
    errno = KEPT_ERRNO;
    sy_slab *third = take_to_write(15, &backed);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_int_equal(backed, 14 * MIB);
    sy_slab *fourth = take_to_write(15, &backed);
    assert_int_equal(backed, 0); /* the third is not written yet, except ahead */
    write_span(third);
    sy_slab *fifth = take_to_write(15, &backed);
    assert_int_equal(backed, 14 * MIB);
    sy_slab *all[] = {first, second, third, fourth, fifth};
    for (int i = 0; i < 5; i++) give_span(all[i]);
}

/* Most of the gauge has to be written, since the object may end before the span. */
static void most_of_the_gauge_has_to_be_written(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80), *span = take_to_write(7, &backed);
    assert_int_equal(backed, 6 * MIB);
    char *gauge = (char *)span->start + 6 * MIB;
    sy_slab *second = take_to_write(7, &backed);
    memset(gauge, 1, 9 * 64 * KIB);
    sy_slab *third = take_to_write(7, &backed);
    assert_int_equal(backed, 0);
    memset(gauge + 9 * 64 * KIB, 1, 64 * KIB);
    sy_slab *fourth = take_to_write(7, &backed);
    assert_int_equal(backed, 6 * MIB);
    sy_slab *all[] = {base, span, second, third, fourth};
    for (int i = 0; i < 5; i++) give_span(all[i]);
}

/* So of many spans of which only the start is used, one has huge pages at most. */
static void a_span_that_was_not_written_stops_them(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80), *span = take_to_write(7, &backed), *more[8];
    assert_int_equal(backed, 6 * MIB);
    for (int i = 0; i < 8; i++) {
        more[i] = take_to_write(7, &backed);
        assert_int_equal(backed, 0);
        write_span(more[i]);
    }
    give_span(more[7]);
    assert_ptr_equal(sy_memory_main.watched, span);
    give_span(span); /* not written, so the next one has no huge pages */
    span = take_to_write(7, &backed);
    assert_int_equal(backed, 0);
    write_span(span);
    give_span(span);
    span = take_to_write(7, &backed);
    assert_int_equal(backed, 6 * MIB);
    for (int i = 0; i < 7; i++) give_span(more[i]);
    give_span(span);
    give_span(base);
}

/* A span without huge pages that is never written, like a buffer with much room, does not keep them
 * from the spans that come later. */
static void a_span_without_any_stops_none(void **state) {
    (void)state;
    size_t backed;
    sy_slab *buffer = take_to_write(40, &backed), *all[2];
    for (int i = 0; i < 2; i++) {
        all[i] = take_to_write(40, &backed);
        assert_int_equal(backed, i ? 20 * MIB : 0);
        write_span(all[i]);
    }
    for (int i = 0; i < 2; i++) give_span(all[i]);
    give_span(buffer);
}

/* The same if the system refused its huge pages. */
static void a_span_that_was_refused_them_stops_none(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80);
    sy_fake_fail_nth(SY_FAKE_MAKE_HUGE, 1);
    sy_slab *span = take_to_write(7, &backed);
    assert_int_equal(backed, 0);
    assert_ptr_equal(sy_memory_main.watched, span);
    sy_fake_advance_clock(PAUSES * (uint64_t)SLOW_NS);
    sy_slab *next = take_to_write(7, &backed);
    assert_ptr_equal(sy_memory_main.watched, next);
    give_span(next);
    give_span(span);
    give_span(base);
}

static void get_none(void *unused) {
    size_t backed;
    (void)unused;
    must(!sy_memory_main.watched && !sy_memory_main.dense);
    sy_slab *span = take_to_write(7, &backed);
    must(backed == 0);
    write_span(span);
    sy_slab *next = take_to_write(7, &backed);
    must(backed == 6 * MIB);
    give_span(next);
    give_span(span);
}

/* The watched span may be one of a thread that the child does not have. */
static void in_a_child_no_span_is_watched(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80), *span = take_to_write(7, &backed);
    must(sy_memory_main.watched == span);
    assert_int_equal(in_child(get_none, NULL), 0);
    assert_ptr_equal(sy_memory_main.watched, span);
    give_span(span);
    give_span(base);
}

/* A gauge has 256 KiB at least. */
static void the_gauge_has_small_pages(void **state) {
    (void)state;
    const struct {
        size_t bytes, backed;
    } rows[] = {{6 * MIB + 192 * KIB, 4 * MIB}, {6 * MIB + 256 * KIB, 6 * MIB}};
    for (int i = 0; i < 2; i++) {
        sy_slab *base = begin_dense(80), *span = take_span(rows[i].bytes);
        uint64_t before = made();
        sy_run_back_ahead(span);
        assert_int_equal(made() - before, rows[i].backed);
        give_span(span);
        give_span(base);
    }
}

static void one_span_gets_a_part_of_what_is_in_use(void **state) {
    (void)state;
    const struct { size_t used, backed; } rows[] = {{40, 10}, {128, 32}, {1024, 32}};
    for (int i = 0; i < 3; i++) {
        size_t backed;
        sy_slab *base = begin_dense(rows[i].used), *span = take_to_write(100, &backed);
        assert_int_equal(backed, rows[i].backed * MIB);
        give_span(span);
        give_span(base);
    }
}

static void the_option_holds_for_spans(void **state) {
    (void)state;
    const struct {
        const char *option;
        bool some;
    } rows[] = {{"huge=160M", true}, {"huge=161M", false}, {"huge=off", false}};
    for (int i = 0; i < 3; i++) {
        size_t backed;
        sy_slab *base = begin_dense(40);
        must(sy_set_options(rows[i].option) == 0);
        sy_slab *span = take_to_write(15, &backed);
        assert_int_equal(backed > 0, rows[i].some);
        assert_int_equal(sy_memory_main.watched == span, strcmp(rows[i].option, "huge=off") != 0);
        must(sy_set_options("huge=2M") == 0);
        give_span(span);
        give_span(base);
    }
}

static void near_the_limit_spans_get_none(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80);
    read_below((size_t)640 * MIB, (size_t)560 * MIB);
    sy_slab *span = take_to_write(15, &backed);
    assert_int_equal(backed, 0);
    give_span(span);
    read_below(SIZE_MAX, 0);
    give_span(base);
}

/* The clock stands, so the huge page that is being made is not a slow one. */
static void come_near(void) {
    sy_fake_set_resident((size_t)560 * MIB);
    (void)sy_pressure_take_reading(false);
}

static void a_span_gets_no_more_once_the_limit_is_near(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80);
    read_below((size_t)640 * MIB, (size_t)100 * MIB);
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, come_near);
    sy_slab *span = take_to_write(15, &backed);
    assert_int_equal(backed, 2 * MIB);
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, NULL);
    give_span(span);
    read_below(SIZE_MAX, 0);
    give_span(base);
}

static void take_long_once(void) {
    sy_fake_advance_clock(SLOW_NS);
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, NULL);
}

static void a_slow_one_is_the_last_of_a_span(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80);
    sy_fake_run_before(SY_FAKE_MAKE_HUGE, take_long_once);
    sy_slab *span = take_to_write(15, &backed);
    assert_int_equal(backed, 2 * MIB);
    write_span(span);
    sy_slab *next = take_to_write(15, &backed);
    assert_int_equal(backed, 0);
    sy_fake_advance_clock(PAUSES * (uint64_t)SLOW_NS);
    sy_slab *last = take_to_write(15, &backed);
    assert_int_equal(backed, 14 * MIB);
    sy_slab *all[] = {base, span, next, last};
    for (int i = 0; i < 4; i++) give_span(all[i]);
}

static void a_span_goes_on_with_small_pages(void **state) {
    (void)state;
    size_t backed;
    sy_slab *base = begin_dense(80);
    sy_fake_fail_nth(SY_FAKE_MAKE_HUGE, 3);
    sy_slab *span = take_to_write(15, &backed);
    assert_int_equal(backed, 4 * MIB);
    sy_fake_advance_clock(PAUSES * (uint64_t)SLOW_NS);
    give_span(span);
    give_span(base);
}

/* The gauge is looked at before its memory goes. */
static void a_span_that_moves_or_shrinks_was_written(void **state) {
    (void)state;
    size_t backed;
    for (int moves = 0; moves < 2; moves++) {
        sy_slab *base = begin_dense(80), *span = take_to_write(15, &backed),
                *to = take_span(16 * MIB);
        assert_int_equal(backed, 14 * MIB);
        write_span(span);
        if (moves)
            (void)sy_run_move(span, to, 15 * MIB);
        else
            assert_true(sy_run_resize(span, 8 * MIB));
        assert_null(sy_memory_main.watched);
        give_span(span);
        span = take_to_write(15, &backed);
        assert_int_equal(backed, 14 * MIB);
        give_span(span);
        give_span(to);
        give_span(base);
    }
}

static size_t resident_from(const sy_slab *span, size_t from) {
    size_t page = sy_os_page_size();
    for (size_t at = from; at < span->bytes; at += page)
        if (!is_resident((char *)span->start + at)) return 0;
    return span->bytes - from;
}

/* The memory of kept spans goes to the end of a new one. If the start gets huge pages, it has whole
 * ones and a gauge of 256 KiB. */
static void kept_memory_goes_behind_huge_pages(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    for (int off = 0; off < 2; off++) {
        size_t count, used, kept, backed;
        sy_slab *base = begin_dense(80), *source = take_span(9 * MIB);
        write_span(source);
        sy_run_give(source);
        if (off) must(sy_set_options("huge=off") == 0);
        sy_slab *span = take_to_write(16, &backed);
        assert_int_equal(backed, off ? 0 : 8 * MIB);
        const size_t fresh = off ? 7 * MIB : 8 * MIB + 256 * KIB;
        assert_int_equal(resident_from(span, fresh), 16 * MIB - fresh);
        assert_false(is_resident((char *)span->start + fresh - 1));
        sy_large_count(&sy_memory_main, &count, &used, &kept);
        assert_int_equal(kept, fresh - 7 * MIB);
        write_span(span);
        if (!off) { /* a span with too little room for that gets none of the kept memory */
            sy_slab *next = take_span(5 * MIB + 512 * KIB);
            sy_large_count(&sy_memory_main, &count, &used, &kept);
            assert_int_equal(kept, fresh - 7 * MIB);
            give_span(next);
        }
        must(sy_set_options("huge=2M") == 0);
        give_span(span);
        give_span(base);
    }
}

/* While the gauge of a span with huge pages is not written, no other span gets any, so all kept
 * memory moves to a new span. The same near the limit. */
static void without_huge_pages_all_kept_memory_moves(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    for (int near = 0; near < 2; near++) {
        size_t count, used, kept, backed;
        sy_slab *base = begin_dense(80), *source = take_span(9 * MIB);
        if (near) read_below((size_t)640 * MIB, (size_t)560 * MIB);
        sy_slab *before = take_to_write(15, &backed);
        assert_int_equal(backed, near ? 0 : 14 * MIB);
        if (near) write_span(before);
        sy_run_give(source);
        sy_slab *span = take_span(16 * MIB);
        sy_large_count(&sy_memory_main, &count, &used, &kept);
        assert_int_equal(kept, 0);
        read_below(SIZE_MAX, 0);
        give_span(span);
        give_span(before);
        give_span(base);
    }
}

/* Of the heap's functions, those after which the program has to write. */
static void only_memory_to_be_written_gets_them(void **state) {
    (void)state;
    sy_slab *base = begin_dense(80);
    uint64_t before = made();
    char *zeros = sy_calloc(1, 15 * MIB);
    char *written = sy_malloc(MIB);
    memset(written, 1, MIB);
    char *grown = sy_realloc(written, 15 * MIB);
    assert_int_equal(made(), before);
    assert_null(sy_memory_main.watched);
    char *object = sy_malloc(15 * MIB);
    assert_int_equal(made() - before, 14 * MIB);
    memset(object, 1, 15 * MIB);
    char *aligned = sy_aligned_alloc(8 * MIB, 15 * MIB);
    assert_int_equal(made() - before, 28 * MIB);
    sy_free(zeros);
    sy_free(grown);
    sy_free(object);
    sy_free(aligned);
    sy_trim();
    give_span(base);
}

#define LARGE(name) cmocka_unit_test_setup_teardown(name, begin_large, leave_large)
#define SPANS(name) cmocka_unit_test_setup_teardown(name, begin_spans, leave_large)

int main(void) {
    must_have(SY_OS_HUGE_PAGES, "huge pages");
    const struct CMUnitTest tests[] = {
        LARGE(the_first_run_of_a_half_backs_all_of_it),
        LARGE(further_runs_use_what_is_backed),
        LARGE(a_run_across_the_middle_backs_the_second_half),
        LARGE(a_half_with_dirty_units_is_left_alone),
        LARGE(a_run_of_dirty_units_backs_nothing),
        LARGE(a_chunk_with_holes_is_left_alone),
        LARGE(a_trim_returns_what_was_not_used),
        LARGE(a_child_returns_what_a_lost_thread_was_backing),
        LARGE(a_child_finds_clean_what_the_system_refused_to_back),
        LARGE(only_a_large_program_gets_huge_pages),
        LARGE(after_a_slow_one_there_is_a_pause),
        LARGE(after_a_long_wait_there_is_a_pause),
        LARGE(the_system_may_refuse),
        LARGE(near_the_limit_there_are_none),
        LARGE(where_they_are_usual_a_smaller_program_gets_them),
        LARGE(a_cache_of_four_mib_gets_huge_pages),
        LARGE(where_they_are_usual_a_cache_of_512_kib_gets_them),
        LARGE(other_caches_get_none),
        SPANS(a_span_gets_them_if_the_span_before_was_written),
        SPANS(most_of_the_gauge_has_to_be_written),
        SPANS(a_span_that_was_not_written_stops_them),
        SPANS(a_span_without_any_stops_none),
        SPANS(a_span_that_was_refused_them_stops_none),
        SPANS(in_a_child_no_span_is_watched),
        SPANS(the_gauge_has_small_pages),
        SPANS(one_span_gets_a_part_of_what_is_in_use),
        SPANS(the_option_holds_for_spans),
        SPANS(near_the_limit_spans_get_none),
        SPANS(a_span_gets_no_more_once_the_limit_is_near),
        SPANS(a_slow_one_is_the_last_of_a_span),
        SPANS(a_span_goes_on_with_small_pages),
        SPANS(a_span_that_moves_or_shrinks_was_written),
        SPANS(kept_memory_goes_behind_huge_pages),
        SPANS(without_huge_pages_all_kept_memory_moves),
        SPANS(only_memory_to_be_written_gets_them),
    };
    take_small_pages_only(); /* also where huge pages are set to `always` */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
