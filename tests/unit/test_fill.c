/*
 * test_fill.c: runs that the program will write get the memory of free units, and of chunks without
 * runs, if it wrote the ones before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "chunk/chunk.h"
#include "chunk/gauge.h"
#include "chunk/large.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"

static const size_t UNIT = SY_UNIT_BYTES;

static sy_memory *const memory = &sy_memory_main;

static void sound(void) { must(sy_chunk_verify(memory) + sy_large_verify(memory) == 0); }

static sy_slab *take(size_t units, bool *clean) {
    sy_slab *run = sy_run_take(memory, units * UNIT, UNIT, 0, clean);
    must(run && run->bytes >= units * UNIT);
    sound();
    return run;
}

/* A run for an object that is written before it is read. */
static sy_slab *take_to_write(size_t units) { return take(units, NULL); }

static sy_slab *take_filled(size_t units, int content) {
    bool clean;
    sy_slab *run = take(units, &clean);
    memset((void *)run->start, content, units * UNIT);
    return run;
}

/* The units of a run whose first byte has this content. */
static size_t count_units(const sy_slab *run, int content) {
    size_t count = 0;
    for (size_t at = 0; at < run->bytes; at += UNIT)
        count += *(unsigned char *)(run->start + at) == content;
    return count;
}

static size_t clean_units(void) { return sy_chunk_count().units_clean; }

static size_t chunks(void) { return sy_chunk_count().chunks; }

/* A program that wrote its last span, and nothing is held. */
static void begin(bool dense) {
    sy_chunk_trim(memory);
    sy_slab *span = take_to_write(96);
    if (dense) memset((void *)span->start, 1, span->bytes);
    sy_run_give(span);
    must(memory->dense == dense && !memory->watched);
    sy_chunk_trim(memory);
}

static void end(void) {
    sy_chunk_trim(memory);
    assert_int_equal(chunks(), 0);
    assert_int_equal(sy_chunk_count().large_count, 0);
    sound();
}

/* Of a chunk one unit is used, and 62 are free and hold memory of this content. */
static sy_slab *leave_units(int content) {
    sy_slab *kept = take_filled(1, 9), *run = take_filled(62, content);
    sy_run_give(run);
    return kept;
}

static void a_large_span_takes_the_memory_of_free_units(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *kept = leave_units(5);
    size_t before = clean_units();
    sy_slab *span = take_to_write(100);
    assert_int_equal(count_units(span, 5), 60); /* whole pieces of four units */
    assert_int_equal(count_units(span, 0), 40);
    assert_int_equal(clean_units(), before + 60);
    assert_int_equal(*(unsigned char *)kept->start, 9);
    sy_slab *again = take_filled(62, 6); /* the units read as zero, and can be written */
    sy_run_give(again);
    sy_run_give(span);
    sy_run_give(kept);
    end();
}

/* The first bytes of a span get no memory, and neither does a rest behind whole pieces. */
static void it_takes_what_it_needs(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *kept[2], *runs[2];
    for (int i = 0; i < 2; i++) kept[i] = take_filled(1, 9), runs[i] = take_filled(62, 5);
    for (int i = 0; i < 2; i++) sy_run_give(runs[i]);
    size_t before = clean_units();
    sy_slab *span = take_to_write(90);
    assert_int_equal(count_units(span, 0), 2);
    assert_int_equal(count_units(span, 5), 88);
    assert_int_equal(clean_units(), before + 88);
    assert_int_equal(*(unsigned char *)(span->start + 88 * UNIT), 0);
    sy_run_give(span);
    for (int i = 0; i < 2; i++) sy_run_give(kept[i]);
    end();
}

static void a_run_takes_the_memory_of_other_chunks(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *kept = take_filled(1, 9), *middle = take_filled(30, 5), *last = take_filled(32, 9);
    sy_run_give(middle);
    size_t clean = clean_units();
    sy_slab *run = take_to_write(40); /* there is no room for it in this chunk */
    assert_int_equal(count_units(run, 5), 28);
    assert_int_equal(count_units(run, 0), 12);
    assert_int_equal(clean_units(), clean + 28 + 63 - 40);
    sy_run_give(run);
    sy_run_give(kept);
    sy_run_give(last);
    end();
}

static void a_chunk_without_runs_becomes_a_kept_span(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_run_give(take_filled(63, 5));
    assert_int_equal(chunks(), 1);
    sy_slab *span = take_to_write(64);
    assert_int_equal(chunks(), 0);
    assert_int_equal(count_units(span, 5), 63);
    sy_run_give(span);
    sy_slab *run = take_to_write(60); /* and the span a chunk again */
    assert_int_equal(chunks(), 1);
    sy_run_give(run);
    end();
}

/* Only the last of its units hold memory, which moves. */
static void a_chunk_with_little_memory_stays(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *low = take_filled(40, 6), *high = take_filled(12, 5);
    sy_run_give(low);
    sy_chunk_trim(memory);
    sy_run_give(high);
    sy_slab *span = take_to_write(64);
    assert_int_equal(chunks(), 1);
    assert_int_equal(count_units(span, 5), 12);
    sy_run_give(span);
    end();
}

static void what_reads_as_zero_gets_nothing(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    begin(sy_os_can_move());
    bool clean;
    sy_slab *kept = leave_units(5);
    size_t before = clean_units();
    sy_slab *span = take(100, &clean), *run = take(63, &clean);
    assert_true(clean);
    assert_int_equal(count_units(span, 0) + count_units(run, 0), 163);
    assert_true(clean_units() >= before);
    sy_run_give(run);
    sy_run_give(span);
    sy_run_give(kept);
    end();
}

static void a_program_that_writes_little_keeps_its_free_units(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    begin(false);
    sy_slab *kept = leave_units(5);
    size_t before = clean_units();
    sy_slab *span = take_to_write(100);
    assert_int_equal(count_units(span, 0), 100);
    assert_int_equal(clean_units(), before);
    sy_run_give(span);
    sy_run_give(kept);
    end();
}

/* Of a program that writes pages at a distance, as of a hash table in which little is used. */
static void each_fifth_page_is_little(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    static const size_t units[] = {5, 10, 20, 40, 64, 80, 128, 160}, apart[] = {5, 8, 16};
    for (size_t i = 0; i < 8 * 3; i++) {
        begin(true);
        sy_slab *span = take_to_write(units[i / 3]);
        for (size_t at = 0; at < span->bytes; at += apart[i % 3] * sy_os_page_size())
            *(char *)(span->start + at) = 1;
        sy_run_give(span);
        assert_false(memory->dense);
    }
    end();
}

static void runs_in_chunks_are_watched_too(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(false);
    sy_slab *run = take_to_write(8);
    assert_ptr_equal(memory->watched, run);
    memset((void *)run->start, 1, run->bytes);
    assert_true(sy_run_resize(run, UNIT));
    assert_true(memory->dense && !memory->watched);
    sy_run_give(run);
    run = take_to_write(3); /* too short */
    assert_null(memory->watched);
    sy_run_give(run);
    sy_chunk_trim(memory);
    run = take_to_write(8);
    assert_ptr_equal(memory->watched, run);
    sy_run_give(run);
    assert_true(!memory->dense && !memory->watched);
    end();
}

static void a_span_that_a_move_loses_is_replaced(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *kept = leave_units(5);
    sy_fake_lose_move();
    sy_slab *span = take_to_write(100);
    assert_int_equal(count_units(span, 0), 100);
    assert_int_equal(sy_chunk_count().large_count, 1);
    sy_run_give(span);
    sy_run_give(kept);
    end();
}

/* Units whose addresses were lost are never free again, and nobody gets them. */
static void a_run_that_a_move_loses_is_replaced(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    begin(true);
    sy_slab *kept = take_filled(1, 9), *middle = take_filled(30, 5), *last = take_filled(32, 9);
    sy_run_give(middle);
    sy_fake_lose_move();
    sy_slab *run = take_to_write(40);
    assert_int_equal(count_units(run, 0), 40);
    memset((void *)run->start, 1, run->bytes);
    sy_run_give(run);
    sy_run_give(kept);
    sy_run_give(last);
    sy_chunk_trim(memory);
    sound();
    assert_int_equal(chunks(), 1);
    assert_int_equal(sy_chunk_count().units_free, 63 - 40);
}

static void where_nothing_moves_nothing_is_filled(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_chunk_trim(memory);
    sy_fake_forbid_moves(true);
    memory->dense = true;
    sy_slab *kept = leave_units(5);
    sy_slab *span = take_to_write(100);
    assert_int_equal(count_units(span, 0), 100);
    assert_null(memory->watched);
    sy_run_give(span);
    sy_run_give(kept);
    memory->dense = false;
}

/* Each run keeps its content, whatever memory it was made of, and all goes back in the end. */
static void runs_of_all_sizes_keep_their_content(void **state) {
    (void)state;
    enum { RUNS = 40, ROUNDS = 4000 };
    static sy_slab *runs[RUNS];
    uint64_t random = 7;
    begin(sy_os_can_move());
    for (int round = 0; round < ROUNDS; round++) {
        size_t i = sy_random_next(&random) % RUNS;
        if (runs[i]) {
            assert_int_equal(count_units(runs[i], (int)i + 1), runs[i]->bytes / UNIT);
            sy_run_give(runs[i]);
        }
        size_t units = 1 + sy_random_next(&random) % (sy_random_next(&random) % 4 ? 63 : 200);
        runs[i] = take_to_write(units);
        memset((void *)runs[i]->start, (int)i + 1, runs[i]->bytes);
        if (round % 500 == 499) sy_chunk_trim(memory);
    }
    for (size_t i = 0; i < RUNS; i++) {
        if (runs[i]) sy_run_give(runs[i]);
        runs[i] = NULL;
    }
    end();
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

static int start(void **state) {
    (void)state;
    return sy_memory_part.start();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_large_span_takes_the_memory_of_free_units),
        TEST(it_takes_what_it_needs),
        TEST(a_run_takes_the_memory_of_other_chunks),
        TEST(a_chunk_without_runs_becomes_a_kept_span),
        TEST(a_chunk_with_little_memory_stays),
        TEST(what_reads_as_zero_gets_nothing),
        TEST(a_program_that_writes_little_keeps_its_free_units),
        TEST(each_fifth_page_is_little),
        TEST(runs_in_chunks_are_watched_too),
        TEST(a_span_that_a_move_loses_is_replaced),
        TEST(where_nothing_moves_nothing_is_filled),
        TEST(runs_of_all_sizes_keep_their_content),
        TEST(a_run_that_a_move_loses_is_replaced), /* last: its units are not free again */
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
