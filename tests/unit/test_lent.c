/*
 * test_lent.c: chunks that grow take memory that is held and free before they take clean units:
 * dirty units first, then large spans that are kept for reuse. Nothing is lost, whatever the system
 * refuses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk/chunk.h"
#include "chunk/large.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"
#include "vmem/arena.h"

static const size_t UNIT = SY_UNIT_BYTES, MIB = 1 << 20;
enum { UNITS = SY_RUN_UNITS_MAX };

static sy_slab *take(size_t bytes, bool *clean) {
    sy_slab *run = sy_run_take(&sy_memory_main, bytes, UNIT, 0, clean);
    must(run != NULL && run->bytes >= bytes);
    return run;
}

static sy_slab *take_filled(size_t bytes, int byte) {
    bool clean;
    sy_slab *run = take(bytes, &clean);
    memset((void *)run->start, byte, run->bytes);
    return run;
}

static size_t kept(void) {
    size_t count, used, bytes;
    sy_large_count(&sy_memory_main, &count, &used, &bytes);
    return bytes;
}

static void sound(void) {
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_vmem_verify(sy_memory_main.arena) == 0);
}

/* The number of the run's pages that begin with `byte`. */
static size_t count_pages(const sy_slab *run, int byte) {
    size_t count = 0;
    for (size_t at = 0; at < run->bytes; at += 4096) count += *(char *)(run->start + at) == byte;
    return count;
}

static const size_t PAGES = SY_UNIT_BYTES / 4096;

/* Begins with no memory but one chunk, one unit of which is in use; the others are clean. */
static sy_slab *begin(void) {
    bool clean;
    sy_fake_reset();
    sy_chunk_trim(&sy_memory_main);
    must(sy_chunk_count().chunks == 0 && kept() == 0);
    return take(1, &clean);
}

static void end(sy_slab *first) {
    sy_fake_reset();
    sy_run_give(first);
    sound();
    sy_chunk_trim(&sy_memory_main);
    must(sy_chunk_count().chunks == 0 && kept() == 0);
    must(sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED) == 0);
    sound();
}

static void kept_memory_is_taken_before_clean_units(void **state) {
    (void)state;
    sy_slab *first = begin(), *runs[UNITS];
    bool clean;
    sy_run_give(take_filled(10 * MIB, 1));
    for (unsigned i = 0; i < UNITS; i++) {
        runs[i] = take(1, &clean);
        assert_false(clean);
        assert_int_equal(count_pages(runs[i], 1), PAGES);
        assert_int_equal(kept(), 6 * MIB);
        sound();
    }
    sy_slab *next = take(1, &clean);
    assert_false(clean);
    assert_int_equal(kept(), 2 * MIB);
    assert_int_equal(sy_chunk_count().chunks, 3);
    sy_run_give(next);
    for (unsigned i = 0; i < UNITS; i++) sy_run_give(runs[i]);
    end(first);
}

static void dirty_units_are_taken_before_kept_memory(void **state) {
    (void)state;
    sy_slab *first = begin();
    bool clean;
    sy_run_give(take_filled(5 * UNIT, 2));
    sy_run_give(take_filled(5 * MIB, 1));
    sy_slab *run = take(5 * UNIT, &clean);
    assert_int_equal(count_pages(run, 2), 5 * PAGES);
    assert_int_equal(kept(), 5 * MIB);
    sy_run_give(run);
    end(first);
}

/* Clean units serve a run for which no kept span has room. */
static void kept_memory_that_is_too_short_stays(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_slab *first = begin();
    bool clean;
    size_t bytes = 0;
    sy_run_give(take_filled(5 * MIB, 1));
    while (kept() > 2 * MIB) must(sy_large_trim_step(&sy_memory_main, false, &bytes));
    sy_slab *run = take(40 * UNIT, &clean);
    assert_true(clean);
    assert_int_equal(count_pages(run, 0), 40 * PAGES);
    assert_int_equal(kept(), 2 * MIB);
    sy_slab *shorter = take(2 * MIB - UNIT, &clean); /* all but unit 0 of the span */
    assert_false(clean);
    assert_int_equal(count_pages(shorter, 1), shorter->bytes / 4096);
    assert_int_equal(kept(), 0);
    sy_run_give(run);
    sy_run_give(shorter);
    end(first);
}

/* Units behind the end of a span's memory are clean: they hold none. */
static void what_a_span_has_returned_is_clean(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_slab *first = begin();
    bool clean;
    size_t bytes = 0;
    sy_run_give(take_filled(5 * MIB, 1));
    while (kept() > MIB) must(sy_large_trim_step(&sy_memory_main, false, &bytes));
    sy_slab *run = take(1, &clean);
    sy_chunk_stats stats = sy_chunk_count();
    assert_int_equal(stats.units_free - stats.units_clean, MIB / UNIT - 2);
    assert_int_equal(kept(), 0);
    sy_run_give(run);
    end(first);
}

static void aligned_runs_are_taken_from_kept_memory(void **state) {
    (void)state;
    bool clean;
    for (size_t units = 1; units <= 32; units *= 2) {
        sy_slab *first = begin();
        sy_run_give(take_filled(5 * MIB, 1));
        sy_slab *run = sy_run_take(&sy_memory_main, units * UNIT, units * UNIT, 0, &clean);
        assert_non_null(run);
        assert_int_equal(run->start % (units * UNIT), 0);
        assert_int_equal(count_pages(run, 1), units * PAGES);
        sy_run_give(run);
        end(first);
    }
}

/* The smallest span that has room is lent, so that long ones stay for spans. */
static void the_smallest_span_is_lent(void **state) {
    (void)state;
    sy_slab *first = begin();
    bool clean;
    sy_slab *longer = take_filled(20 * MIB, 1), *shorter = take_filled(6 * MIB, 2);
    sy_run_give(shorter);
    sy_run_give(longer);
    sy_slab *run = take(1, &clean);
    assert_int_equal(count_pages(run, 2), PAGES);
    sy_slab *span = take(20 * MIB, &clean);
    assert_int_equal(count_pages(span, 1), span->bytes / 4096);
    sy_run_give(span);
    sy_run_give(run);
    end(first);
}

/* A chunk of a span of many mappings becomes one mapping before its addresses go back. If that
 * fails, they are lost, and nothing else. */
static void pieces_become_one_mapping_in_the_end(void **state) {
    (void)state;
    if (!sy_os_can_move()) skip();
    for (int refuse = 0; refuse < 2; refuse++) {
        sy_slab *first = begin();
        bool clean;
        sy_slab *one = take_filled(6 * MIB, 1), *two = take_filled(8 * MIB, 2);
        sy_run_give(one);
        sy_run_give(two);
        sy_run_give(take(14 * MIB, &clean)); /* made of the memory of both */
        sy_slab *run = take(1, &clean);
        uintptr_t start = run->start;
        sy_run_give(run);
        sy_run_give(first);
        if (refuse) sy_fake_fail_from(SY_FAKE_DECOMMIT, 1);
        sy_chunk_trim(&sy_memory_main);
        sy_fake_reset();
        assert_null(sy_slab_at(start));
        size_t lost = sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED);
        assert_int_equal(lost, refuse ? 16 * MIB : 0);
        assert_int_equal(sy_chunk_count().chunks + kept(), 0);
        sound();
    }
}

/* The n-th call to the system fails. The child ends with 1 if there were fewer calls. */
static void refused(void *arg) {
    bool clean;
    sy_slab *first = begin();
    sy_run_give(take_filled(10 * MIB, 1));
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    sy_slab *runs[300];
    unsigned count = 0;
    while (count < 300 && kept() > 0) {
        runs[count] = take(3 * UNIT, &clean);
        must(clean == (count_pages(runs[count], 0) == 3 * PAGES));
        count++;
    }
    uint64_t failures = sy_fake_failures(SY_FAKE_ANY);
    sy_fake_reset();
    sound();
    while (count > 0) sy_run_give(runs[--count]);
    end(first);
    if (!failures) _exit(1);
}

static void whatever_fails_nothing_is_lost(void **state) {
    (void)state;
    uint64_t n = 1;
    int status;
    while ((status = in_child(refused, &n)) == 0) n++;
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(n > 2);
}

/* Without memory for a segment's tag the span stays, and clean units serve. */
static void a_span_stays_where_it_cannot_be_lent(void **state) {
    (void)state;
    sy_slab *first = begin();
    const sy_vmem *arena = sy_memory_main.arena;
    uintptr_t segments[2000], wide;
    size_t held = 0;
    bool clean;
    must(sy_memory_take(&sy_memory_main, 2 * SY_CHUNK_BYTES, SY_CHUNK_BYTES, &wide));
    sy_run_give(take_filled(10 * MIB, 1));
    for (; held < 2000 && arena->spare >= SY_TAGS_PER_SPLIT; held++)
        must(sy_memory_take(&sy_memory_main, SY_CHUNK_BYTES, SY_CHUNK_BYTES, &segments[held]));
    must(held < 2000 && sy_memory_split(&sy_memory_main, wide, SY_CHUNK_BYTES));
    must(arena->spare == 0);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    sy_slab *run = take(1, &clean);
    assert_true(clean);
    assert_int_equal(kept(), 10 * MIB);
    sound();
    sy_run_give(run);
    while (held > 0) sy_memory_give(&sy_memory_main, segments[--held], SY_CHUNK_BYTES);
    for (int i = 0; i < 2; i++)
        sy_memory_give(&sy_memory_main, wide + (uintptr_t)i * SY_CHUNK_BYTES, SY_CHUNK_BYTES);
    end(first);
}

static int start(void **state) {
    (void)state;
    return sy_memory_part.start();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_memory_is_taken_before_clean_units),
        cmocka_unit_test(dirty_units_are_taken_before_kept_memory),
        cmocka_unit_test(kept_memory_that_is_too_short_stays),
        cmocka_unit_test(what_a_span_has_returned_is_clean),
        cmocka_unit_test(aligned_runs_are_taken_from_kept_memory),
        cmocka_unit_test(the_smallest_span_is_lent),
        cmocka_unit_test(whatever_fails_nothing_is_lost),
        cmocka_unit_test(a_span_stays_where_it_cannot_be_lent),
        cmocka_unit_test(pieces_become_one_mapping_in_the_end), /* last: addresses are lost */
    };
    return cmocka_run_group_tests_name("lent", tests, start, NULL);
}
