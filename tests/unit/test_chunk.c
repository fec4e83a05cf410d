/*
 * test_chunk.c: runs of units do not overlap, are aligned, are found by any address in them, are
 * zero if they are called clean, and go back to the system.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "chunk/chunk.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

static const size_t UNIT = SY_UNIT_BYTES;

static sy_slab *take(size_t bytes, size_t align, bool *clean) {
    sy_slab *run = sy_run_take(&sy_memory_main, bytes, align, 0, clean);
    must(run != NULL);
    must(run->start % align == 0 && run->start % UNIT == 0);
    must(run->bytes >= bytes && run->bytes % UNIT == 0);
    must(run->owner == NULL && run->free == NULL && run->first == 0 && run->holes == 0);
    return run;
}

static sy_slab *take_units(unsigned units) {
    bool clean;
    return take(units * UNIT, UNIT, &clean);
}

static void sound(void) { must(sy_chunk_verify(&sy_memory_main) == 0); }

static void any_address_leads_to_its_run(void **state) {
    (void)state;
    sy_slab *runs[3] = {take_units(1), take_units(5), take_units(63)};
    for (int i = 0; i < 3; i++) {
        for (uintptr_t at = runs[i]->start; at < runs[i]->start + runs[i]->bytes; at += UNIT) {
            assert_ptr_equal(sy_slab_at(at), runs[i]);
            assert_ptr_equal(sy_slab_at(at + UNIT - 1), runs[i]);
        }
        assert_ptr_not_equal(sy_slab_at(runs[i]->start - 1), runs[i]);
        assert_ptr_not_equal(sy_slab_at(runs[i]->start + runs[i]->bytes), runs[i]);
        assert_null(sy_slab_at(runs[i]->start & ~(uintptr_t)(SY_CHUNK_BYTES - 1)));
    }
    for (int i = 0; i < 3; i++) {
        uintptr_t start = runs[i]->start;
        sy_run_give(runs[i]);
        assert_null(sy_slab_at(start));
    }
    sound();
}

static void foreign_addresses_lead_nowhere(void **state) {
    (void)state;
    assert_null(sy_slab_at(0));
    assert_null(sy_slab_at(UINTPTR_MAX));
    assert_null(sy_slab_at((uintptr_t)&state));
    assert_null(sy_slab_at((uintptr_t)&sy_chunk_verify));
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) sy_slab_at(next_random(&random)); /* does not crash */
}

static void every_alignment_is_exact(void **state) {
    (void)state;
    for (size_t align = UNIT; align <= (size_t)1 << 30; align *= 2)
        for (size_t units = 1; units <= 70; units += 23) {
            bool clean;
            sy_slab *run = take(units * UNIT, align, &clean), *other = take(1, align, &clean);
            assert_ptr_equal(sy_slab_at(run->start), run);
            sy_run_give(run);
            sy_run_give(other);
        }
    sound();
}

static void sizes_round_up_to_units(void **state) {
    (void)state;
    static const size_t sizes[] = {1,        65536,    65537,   100000,  63 << 16,
                                   64 << 16, 65 << 16, 5 << 20, 33 << 20};
    for (int i = 0; i < 9; i++) {
        bool clean;
        sy_slab *run = take(sizes[i], UNIT, &clean);
        assert_int_equal(sy_round_up(sizes[i], UNIT) == run->bytes || run->bytes > 63 * UNIT, 1);
        sy_run_give(run);
    }
    sound();
}

static void more_than_there_is_is_refused(void **state) {
    (void)state;
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SY_ADDRESS_MAX, SY_RUN_BYTES_MAX + 1};
    const size_t top = SIZE_MAX / 2 + 1, all = SY_ADDRESS_BITS == 32 ? top : SY_ADDRESS_MAX + 1;
    const size_t aligns[] = {all, top};
    bool clean;
    for (int i = 0; i < 4; i++) {
        errno = 0;
        assert_null(sy_run_take(&sy_memory_main, sizes[i], UNIT, 0, &clean));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_run_take(&sy_memory_main, 1, aligns[i % 2], 0, &clean));
        assert_int_equal(errno, ENOMEM);
    }
    sound();
}

/* After mlockall(MCL_FUTURE). The fake counts the bytes that are locked or unlocked. */
static void runs_are_locked_where_all_memory_is(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    bool clean;
    sy_fake_reset();
    sy_fake_set_locks_all(true);
    sy_slab *run = take_units(2);
    assert_int_equal(sy_fake_bytes(SY_FAKE_LOCK), 2 * UNIT);
    assert_true(sy_run_resize(run, 5 * UNIT));
    assert_int_equal(sy_fake_bytes(SY_FAKE_LOCK), 5 * UNIT);
    sy_fake_fail_from(SY_FAKE_LOCK, 1);
    assert_false(sy_run_resize(run, 6 * UNIT));
    assert_int_equal(run->bytes, 5 * UNIT);
    sy_fake_succeed(SY_FAKE_LOCK);
    assert_true(sy_run_resize(run, 4 * UNIT - 1));
    assert_int_equal(run->bytes, 4 * UNIT);
    assert_int_equal(sy_fake_bytes(SY_FAKE_LOCK), 6 * UNIT);
    sy_run_give(run);
    assert_int_equal(sy_fake_bytes(SY_FAKE_LOCK), 10 * UNIT);
    sy_fake_fail_from(SY_FAKE_LOCK, 1);
    for (unsigned units = 1; units <= 100; units += 99) {
        errno = 0;
        assert_null(sy_run_take(&sy_memory_main, units * UNIT, UNIT, 0, &clean));
        assert_int_equal(errno, ENOMEM);
    }
    sy_fake_reset();
    sound();
}

/* Runs of all lengths are filled; their first and last words are checked. */
static void a_random_history_overlaps_nothing(void **state) {
    (void)state;
    enum { RUNS = 200 };
    static sy_slab *runs[RUNS];
    uint64_t random = 8;
    for (int step = 0; step < 4000; step++) {
        size_t i = next_random(&random) % RUNS;
        if (runs[i]) {
            uint64_t *words = (uint64_t *)runs[i]->start;
            size_t last = runs[i]->bytes / 8 - 1;
            assert_int_equal(words[0], i + 1);
            assert_int_equal(words[last], i + 1);
            sy_run_give(runs[i]);
            runs[i] = NULL;
        } else {
            bool clean;
            size_t units = 1 + next_random(&random) % (next_random(&random) % 8 ? 12 : 66);
            size_t align = UNIT << next_random(&random) % 4;
            runs[i] = take(units * UNIT, align, &clean);
            uint64_t *words = (uint64_t *)runs[i]->start;
            size_t last = runs[i]->bytes / 8 - 1;
            if (clean)
                for (size_t word = 0; word <= last; word += 64) assert_int_equal(words[word], 0);
            words[0] = words[last] = i + 1;
            for (size_t word = 512; word < last; word += 512) words[word] = 1;
        }
        if (step % 100 == 0) sound();
        if (step % 500 == 0) sy_chunk_trim(&sy_memory_main);
    }
    for (size_t i = 0; i < RUNS; i++)
        if (runs[i]) sy_run_give(runs[i]), runs[i] = NULL;
    sound();
}

static void what_was_used_is_dirty_until_a_trim(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *keep = take_units(1), *run = take(3 * UNIT, UNIT, &clean);
    uintptr_t start = run->start;
    memset((void *)start, 0xff, 3 * UNIT);
    sy_run_give(run);
    sy_chunk_stats stats = sy_chunk_count();
    assert_int_equal(stats.units_free - stats.units_clean, 3);
    run = take(3 * UNIT, UNIT, &clean); /* dirty ones are used first */
    assert_int_equal(run->start, start);
    assert_false(clean);
    sy_run_give(run);
    assert_int_equal(sy_chunk_trim(&sy_memory_main), 3 * UNIT);
    stats = sy_chunk_count();
    assert_int_equal(stats.units_free, stats.units_clean);
    run = take(3 * UNIT, UNIT, &clean);
    assert_true(clean);
    for (size_t i = 0; i < 3 * UNIT; i++) assert_int_equal(((unsigned char *)run->start)[i], 0);
    sy_run_give(run);
    sy_run_give(keep);
    sound();
}

static void an_empty_chunk_goes_back_whole(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_slab *runs[40];
    sy_chunk_trim(&sy_memory_main);
    sy_chunk_stats before = sy_chunk_count();
    for (int i = 0; i < 40; i++) memset((void *)(runs[i] = take_units(60))->start, 1, 60 * UNIT);
    assert_int_equal(sy_chunk_count().chunks - before.chunks, 40);
    for (int i = 0; i < 40; i++) sy_run_give(runs[i]);
    assert_true(sy_chunk_trim(&sy_memory_main) >= 40 * 60 * UNIT);
    sy_chunk_stats after = sy_chunk_count();
    assert_int_equal(after.chunks, before.chunks);
    assert_int_equal(after.units_free, before.units_free);
    sound();
}

static void the_tightest_free_run_is_used_first(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_slab *whole = take_units(63), *most = take_units(60);
    sy_slab *small = take_units(3); /* in the 3 units that the run of 60 left */
    assert_int_equal(small->start / SY_CHUNK_BYTES, most->start / SY_CHUNK_BYTES);
    sy_run_give(whole);
    sy_run_give(most);
    sy_run_give(small);
    sound();
}

static void a_span_grows_and_shrinks_in_place(void **state) {
    (void)state;
    sy_slab *run = take_units(4);
    uintptr_t start = run->start;
    assert_true(sy_run_resize(run, 4 * UNIT - 100));
    assert_int_equal(run->bytes, 4 * UNIT);
    if (sy_run_resize(run, 6 * UNIT)) {
        assert_int_equal(run->bytes, 6 * UNIT);
        assert_ptr_equal(sy_slab_at(start + 6 * UNIT - 1), run);
    }
    sound();
    assert_true(sy_run_resize(run, 2 * UNIT));
    assert_int_equal(run->bytes, 2 * UNIT);
    assert_ptr_equal(sy_slab_at(start + 2 * UNIT - 1), run);
    assert_ptr_not_equal(sy_slab_at(start + 2 * UNIT), run);
    assert_false(sy_run_resize(run, 0));
    assert_false(sy_run_resize(run, 64 * UNIT));
    assert_false(sy_run_resize(run, SY_ADDRESS_MAX / 4));
    assert_int_equal(run->bytes, 2 * UNIT);
    sy_run_give(run);
    sound();
}

static void a_span_does_not_grow_into_another(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *first = take_units(2), *second = take_units(2);
    sy_slab *low = first->start < second->start ? first : second;
    if (low->start + 2 * UNIT == (first->start + second->start - low->start)) {
        assert_false(sy_run_resize(low, 3 * UNIT));
        assert_int_equal(low->bytes, 2 * UNIT);
    }
    assert_int_equal(first->start + 2 * UNIT, second->start); /* so the chunk was searched */
    sy_run_give(first);
    sy_run_give(second);
    sound();
}

/* ---- failures ---- */

static void no_chunk(void *call) {
    bool clean;
    sy_slab *fill[200];
    int count = 0;
    must(sy_memory_part.start() == 0);
    sy_fake_fail_from(*(sy_fake_call *)call, 1);
    errno = 0;
    while ((fill[count] = sy_run_take(&sy_memory_main, UNIT, UNIT, 0, &clean)) != NULL)
        must(++count < 200);
    must(errno == ENOMEM);
    sound();
    sy_fake_reset();
    sy_run_give(take_units(63));
    while (count > 0) sy_run_give(fill[--count]);
    sound();
}

static void without_memory_there_is_no_run(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    assert_int_equal(in_child(no_chunk, &calls[0]), 0);
    assert_int_equal(in_child(no_chunk, &calls[1]), 0);
}

static void a_trim_that_fails_keeps_units_dirty(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *keep = take_units(1), *run = take_units(5);
    uintptr_t start = run->start;
    memset((void *)start, 0xff, 5 * UNIT);
    sy_run_give(run);
    sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    assert_int_equal(sy_chunk_trim(&sy_memory_main), 0);
    sound();
    sy_fake_reset();
    run = take(5 * UNIT, UNIT, &clean);
    assert_int_equal(run->start, start);
    assert_false(clean);
    sy_run_give(run);
    assert_int_equal(sy_chunk_trim(&sy_memory_main), 5 * UNIT);
    sy_run_give(keep);
    sound();
}

/* A chunk that could not be released is used again, and released when the system allows it. */
static void a_chunk_that_cannot_be_given_back_is_not_lost(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_chunk_trim(&sy_memory_main);
    size_t chunks = sy_chunk_count().chunks;
    sy_slab *run = take_units(63);
    uintptr_t start = run->start;
    memset((void *)start, 0xff, 63 * UNIT);
    sy_run_give(run);
    for (int i = 0; i < 3; i++) {
        sy_fake_fail_from(SY_FAKE_DISCARD, 1);
        assert_int_equal(sy_chunk_trim(&sy_memory_main), 0);
        sy_fake_reset();
        assert_int_equal(sy_chunk_count().chunks, chunks + 1);
        sound();
        run = take(63 * UNIT, UNIT, &clean);
        assert_int_equal(run->start, start);
        assert_false(clean);
        sy_run_give(run);
    }
    assert_true(sy_chunk_trim(&sy_memory_main) >= 63 * UNIT);
    assert_int_equal(sy_chunk_count().chunks, chunks);
    sound();
}

static void *take_and_give(void *arg) {
    sy_slab *mine[8] = {NULL};
    uint64_t random = (uintptr_t)arg;
    for (int step = 0; step < 2000; step++) {
        size_t i = next_random(&random) % 8;
        if (mine[i]) {
            must(*(uintptr_t *)mine[i]->start == (uintptr_t)arg);
            sy_run_give(mine[i]);
            mine[i] = NULL;
        } else {
            mine[i] = take_units(1 + (unsigned)(next_random(&random) % 20));
            *(uintptr_t *)mine[i]->start = (uintptr_t)arg;
        }
        if (step % 400 == 0) sy_chunk_trim(&sy_memory_main);
    }
    for (int i = 0; i < 8; i++)
        if (mine[i]) sy_run_give(mine[i]);
    return NULL;
}

static void threads_never_get_the_same_run(void **state) {
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    sound();
}

/* ---- trims in steps ---- */

static size_t trim_in_steps(bool aged, size_t most) {
    size_t bytes = 0, before = 0;
    uint64_t trim = sy_chunk_begin_trim(&sy_memory_main);
    while (sy_chunk_trim_step(&sy_memory_main, trim, aged, &bytes)) {
        sound();
        must(bytes - before <= most);
        before = bytes;
    }
    return bytes;
}

static void a_step_gives_back_a_few_units(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *kept = take_units(1), *run = take_units(60);
    memset((void *)run->start, 1, run->bytes);
    sy_run_give(run);
    assert_int_equal(trim_in_steps(false, 16 * UNIT), 60 * UNIT);
    assert_int_equal(trim_in_steps(false, 0), 0);
    sy_run_give(kept);
    assert_true(trim_in_steps(false, SY_CHUNK_BYTES) >= UNIT);
    assert_int_equal(sy_chunk_count().chunks, 0);
}

static void by_age_a_trim_takes_what_was_free_before(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *kept = take_units(1), *old = take_units(20), *young = take_units(30);
    sy_run_give(old);
    assert_int_equal(trim_in_steps(true, 0), 0);
    sy_run_give(young);
    assert_int_equal(trim_in_steps(true, 16 * UNIT), 20 * UNIT);
    assert_int_equal(trim_in_steps(true, 16 * UNIT), 30 * UNIT);
    sy_run_give(take_units(50)); /* used since the last trim: free for a short time only */
    assert_int_equal(trim_in_steps(true, 0), 0);
    sy_run_give(take_units(50));
    assert_int_equal(trim_in_steps(true, 0), 0);
    assert_int_equal(trim_in_steps(true, 16 * UNIT), 50 * UNIT);
    sy_run_give(kept);
    trim_in_steps(true, 0);
    trim_in_steps(true, SY_CHUNK_BYTES);
    assert_int_equal(sy_chunk_count().chunks, 0);
}

/* Between two steps, units that the trim has cleaned are taken. */
static void units_that_are_in_use_again_do_not_age(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    enum { OTHERS = 40 };
    sy_slab *others[OTHERS];
    sy_chunk_trim(&sy_memory_main);
    sy_slab *kept = take_units(1), *old = take_units(20);
    sy_run_give(old);
    assert_int_equal(trim_in_steps(true, 0), 0);
    size_t bytes = 0;
    uint64_t trim = sy_chunk_begin_trim(&sy_memory_main);
    while (!bytes) assert_true(sy_chunk_trim_step(&sy_memory_main, trim, true, &bytes));
    for (int i = 0; i < OTHERS; i++) others[i] = take_units(1);
    while (sy_chunk_trim_step(&sy_memory_main, trim, true, &bytes)) {}
    sound();
    for (int i = 0; i < OTHERS; i++) sy_run_give(others[i]);
    sy_run_give(kept);
    sy_chunk_trim(&sy_memory_main);
}

/* Each trim visits each chunk, while other threads take and give runs. */
static void trims_that_overlap_leave_nothing_out(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    enum { RUNS = 5 };
    sy_slab *runs[RUNS], *kept[RUNS];
    sy_chunk_trim(&sy_memory_main);
    for (int i = 0; i < RUNS; i++) runs[i] = take_units(62), kept[i] = take_units(1);
    for (int i = 0; i < RUNS; i++) sy_run_give(runs[i]);
    size_t first_bytes = 0, second_bytes = 0;
    uint64_t first = sy_chunk_begin_trim(&sy_memory_main);
    sy_chunk_trim_step(&sy_memory_main, first, false, &first_bytes);
    uint64_t second = sy_chunk_begin_trim(&sy_memory_main);
    bool more = true;
    while (more) {
        more = sy_chunk_trim_step(&sy_memory_main, first, false, &first_bytes);
        more |= sy_chunk_trim_step(&sy_memory_main, second, false, &second_bytes);
        sound();
    }
    assert_int_equal(first_bytes + second_bytes, RUNS * 62 * UNIT);
    for (int i = 0; i < RUNS; i++) sy_run_give(kept[i]);
    sy_chunk_trim(&sy_memory_main);
}

static int start(void **state) {
    (void)state;
    return sy_memory_part.start();
}

static void dirty_units_are_taken_first(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    bool clean;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *whole = take_units(63), *low = (sy_run_give(whole), take_units(1));
    sy_slab *middle = take_units(1), *high = take_units(1);
    uintptr_t start = high->start;
    must(low->start < middle->start && middle->start < high->start);
    sy_run_give(low);
    sy_chunk_trim(&sy_memory_main); /* clean again */
    sy_run_give(high);
    sy_slab *again = take(UNIT, UNIT, &clean);
    assert_int_equal(again->start, start);
    assert_false(clean);
    sy_run_give(again);
    sy_run_give(middle);
    sound();
}

static size_t dirty_units(void) {
    sy_chunk_stats stats = sy_chunk_count();
    return stats.units_free - stats.units_clean;
}

static void clean_units_are_exchanged_for_dirty_ones_that_lie_apart(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    enum { SINGLE = 12 };
    bool clean;
    sy_chunk_trim(&sy_memory_main);
    sy_slab *whole = take_units(63), *single[SINGLE];
    sy_run_give(whole);
    single[0] = take_units(1); /* keeps the chunk */
    sy_chunk_trim(&sy_memory_main);
    for (int i = 1; i < SINGLE; i++) single[i] = take_units(1);
    for (int i = 0; i < SINGLE; i += 2) sy_run_give(single[i]);
    assert_int_equal(dirty_units(), SINGLE / 2);
    sy_slab *pair = take(2 * UNIT, UNIT, &clean);
    assert_true(clean);
    assert_int_equal(dirty_units(), SINGLE / 2);
    sy_chunk_exchange(&sy_memory_main, 2 * UNIT);
    assert_int_equal(dirty_units(), SINGLE / 2 - 2);
    sy_slab *one = take(UNIT, UNIT, &clean);
    assert_false(clean);
    assert_int_equal(dirty_units(), SINGLE / 2 - 3);
    sy_run_give(one);
    sy_run_give(pair);
    for (int i = 1; i < SINGLE; i += 2) sy_run_give(single[i]);
    sy_chunk_trim(&sy_memory_main);
    sound();
}

static void a_run_does_not_grow_over_another(void **state) {
    (void)state;
    sy_chunk_trim(&sy_memory_main);
    sy_run_give(take_units(63)); /* so that all units are alike */
    sy_slab *first = take_units(1), *next = take_units(1), *last = take_units(1);
    must(first->start + UNIT == next->start && next->start + UNIT == last->start);
    sy_run_give(last);
    assert_false(sy_run_resize(first, 3 * UNIT));
    assert_int_equal(first->bytes, UNIT);
    assert_ptr_equal(sy_slab_at(next->start), next);
    sy_run_give(first);
    sy_run_give(next);
    sound();
}

/* The system gives no address space, or no memory for a header. */
static void a_chunk_that_cannot_be_had_leaves_nothing(void **state) {
    (void)state;
    enum { TIMES = 300 };
    bool clean;
    sy_slab *runs[64];
    size_t count = 0;
    sy_fake_fail_above(SY_FAKE_COMMIT, SY_CHUNK_BYTES / 2);
    while ((runs[count] = sy_run_take(&sy_memory_main, 63 * UNIT, UNIT, 0, &clean)))
        must(++count < 64);
    size_t allocated = sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED);
    size_t reserved = sy_fake_reserved();
    for (int i = 0; i < TIMES; i++) {
        errno = 0;
        must(!sy_run_take(&sy_memory_main, 63 * UNIT, UNIT, 0, &clean) && errno == ENOMEM);
    }
    assert_int_equal(sy_vmem_size(sy_memory_main.arena, SY_VMEM_ALLOCATED), allocated);
    assert_int_equal(sy_fake_reserved(), reserved);
    sy_fake_reset();
    while (count > 0) sy_run_give(runs[--count]);
    sound();
}

/* Mends counts as the child of a fork does, where another thread was changing them. */
static void torn_lists_are_made_anew(void **state) {
    (void)state;
    sy_slab *whole = take_units(63), *some = take_units(5);
    sy_memory_main.torn = true;
    sy_chunk_recover(&sy_memory_main);
    sound();
    assert_int_equal(whole->bytes, 63 * UNIT);
    assert_int_equal(some->bytes, 5 * UNIT);
    for (unsigned unit = 0; unit < 63; unit++)
        assert_ptr_equal(sy_slab_at(whole->start + unit * UNIT), whole);
    sy_run_give(whole);
    sy_run_give(some);
    sound();
}

static void neighbouring_units_go_back_together(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_chunk_trim(&sy_memory_main);
    sy_run_give(take_units(63)); /* so that all units are alike */
    sy_slab *stays = take_units(1), *goes = take_units(20);
    must(goes->start == stays->start + UNIT);
    sy_chunk_trim(&sy_memory_main);
    sy_run_give(goes);
    sy_fake_reset();
    assert_int_equal(sy_chunk_trim(&sy_memory_main), 20 * UNIT);
    assert_int_equal(sy_fake_calls(SY_FAKE_DISCARD), 1);
    sy_run_give(stays);
    sound();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_no_run), /* first: there is no chunk yet */
        cmocka_unit_test(any_address_leads_to_its_run),
        cmocka_unit_test(foreign_addresses_lead_nowhere),
        cmocka_unit_test(every_alignment_is_exact),
        cmocka_unit_test(sizes_round_up_to_units),
        cmocka_unit_test(more_than_there_is_is_refused),
        cmocka_unit_test(runs_are_locked_where_all_memory_is),
        cmocka_unit_test(a_random_history_overlaps_nothing),
        cmocka_unit_test(what_was_used_is_dirty_until_a_trim),
        cmocka_unit_test(an_empty_chunk_goes_back_whole),
        cmocka_unit_test(the_tightest_free_run_is_used_first),
        cmocka_unit_test(a_span_grows_and_shrinks_in_place),
        cmocka_unit_test(a_span_does_not_grow_into_another),
        cmocka_unit_test(a_trim_that_fails_keeps_units_dirty),
        cmocka_unit_test(a_chunk_that_cannot_be_given_back_is_not_lost),
        cmocka_unit_test(threads_never_get_the_same_run),
        cmocka_unit_test(a_step_gives_back_a_few_units),
        cmocka_unit_test(by_age_a_trim_takes_what_was_free_before),
        cmocka_unit_test(units_that_are_in_use_again_do_not_age),
        cmocka_unit_test(trims_that_overlap_leave_nothing_out),
        cmocka_unit_test(dirty_units_are_taken_first),
        cmocka_unit_test(clean_units_are_exchanged_for_dirty_ones_that_lie_apart),
        cmocka_unit_test(a_run_does_not_grow_over_another),
        cmocka_unit_test(a_chunk_that_cannot_be_had_leaves_nothing),
        cmocka_unit_test(torn_lists_are_made_anew),
        cmocka_unit_test(neighbouring_units_go_back_together),
    };
    return cmocka_run_group_tests_name("chunk", tests, start, NULL);
}
