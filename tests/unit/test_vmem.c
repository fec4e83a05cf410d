/*
 * test_vmem.c: what vmem.h promises about arenas, and what arenas say about themselves, one
 * behaviour a test, through the public header only. test_vmem_segments.c, test_vmem_imports.c and
 * test_vmem_cached.c test the other parts of vmem.h in the same way.
 *
 * tests/fuzz/fuzz_vmem.c compares sequences of operations with a model, and test_vmem_exhaustive.c
 * compares all short sequences on small arenas. test_vmem_failures.c tests arenas that get no
 * memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/arenas.h"
#include "support/child.h"

/* ---- create ---- */

static void an_arena_of_zeroes_has_nothing(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){0});
    sy_vmem_stats stats = stats_of(arena);
    assert_int_equal(stats.quantum, 1);
    assert_int_equal(stats.total, 0);
    assert_int_equal(stats.spans, 0);
    assert_int_equal(stats.largest_free, 0);
    assert_string_equal(stats.name, "arena");
    not_given(arena, 1, ENOMEM);
    end(arena);
}

static void a_name_is_copied_and_cut(void **state) {
    (void)state;
    char name[] = "0123456789012345678901234567890123456789";
    sy_vmem *arena = make((sy_vmem_config){.name = name});
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(stats_of(arena).name, "0123456789012345678901234567890");
    assert_int_equal(strlen(stats_of(arena).name), SY_VMEM_NAME_MAX);
    end(arena);
}

static void create_refuses_no_config(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_vmem_create(NULL));
    assert_int_equal(errno, EINVAL);
}

static void create_refuses_a_quantum_that_is_no_power_of_two(void **state) {
    (void)state;
    not_created((sy_vmem_config){.quantum = 3}, EINVAL);
    not_created((sy_vmem_config){.quantum = SIZE_MAX}, EINVAL);
    end(make((sy_vmem_config){.quantum = SIZE_MAX / 2 + 1}));
}

static void create_refuses_a_span_off_the_quantum(void **state) {
    (void)state;
    not_created((sy_vmem_config){.quantum = 8, .base = 4, .size = 16}, EINVAL);
    not_created((sy_vmem_config){.quantum = 8, .base = 8, .size = 12}, EINVAL);
}

static void create_refuses_a_span_past_the_end(void **state) {
    (void)state;
    not_created((sy_vmem_config){.base = 2, .size = SIZE_MAX}, EINVAL);
    not_created((sy_vmem_config){.base = UINTPTR_MAX, .size = 2}, EINVAL);
    end(make((sy_vmem_config){.base = 1, .size = SIZE_MAX}));
    end(make((sy_vmem_config){.base = UINTPTR_MAX, .size = 1}));
}

static void create_refuses_more_than_16_cached_sizes(void **state) {
    (void)state;
    not_created((sy_vmem_config){.cached_max = 17}, EINVAL);
    not_created((sy_vmem_config){.quantum = 4096, .cached_max = 16 * 4096 + 1}, EINVAL);
    not_created((sy_vmem_config){.cached_max = SIZE_MAX}, EINVAL);
    end(make((sy_vmem_config){.quantum = 4096, .cached_max = 16 * 4096}));
}

static void create_refuses_one_function_without_the_other(void **state) {
    (void)state;
    not_created((sy_vmem_config){.import = import}, EINVAL);
    not_created((sy_vmem_config){.release = release}, EINVAL);
    sy_vmem *source = make_plain(100);
    not_created((sy_vmem_config){.import = import, .source = source}, EINVAL);
    end(source);
}

static void create_refuses_an_import_size_without_imports(void **state) {
    (void)state;
    not_created((sy_vmem_config){.import_min = 100}, EINVAL);
}

static void create_refuses_a_source_of_a_larger_quantum(void **state) {
    (void)state;
    sy_vmem *source = make((sy_vmem_config){.quantum = 16});
    not_created((sy_vmem_config){.quantum = 8, .source = source}, EINVAL);
    end(make((sy_vmem_config){.quantum = 16, .source = source}));
    end(source);
}

static void create_refuses_what_is_reserved(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        sy_vmem_config config = {.size = 16};
        config.reserved[i] = 1;
        not_created(config, EINVAL);
    }
}

/* Every quantum cache takes one of 16,384 client numbers. */
static void use_all_client_numbers(void *arg) {
    enum { ARENAS_MAX = 16384 / SY_VMEM_CACHED_SIZES + 1 };
    static sy_vmem *arenas[ARENAS_MAX];
    sy_vmem_config config = {.size = 1000, .cached_max = SY_VMEM_CACHED_SIZES};
    size_t count = 0;
    (void)arg;
    errno = 0;
    while (count < ARENAS_MAX && (arenas[count] = sy_vmem_create(&config)) != NULL) count++;
    must(count > 0 && count < ARENAS_MAX && errno == ENOSPC);
    must(sy_vmem_destroy(arenas[--count]) == 0);
    must((arenas[count++] = sy_vmem_create(&config)) != NULL);
    while (count > 0) must(sy_vmem_destroy(arenas[--count]) == 0);
}

static void create_fails_without_client_numbers(void **state) {
    (void)state;
    assert_int_equal(in_child(use_all_client_numbers, NULL), 0);
}

/* ---- destroy ---- */

static void destroying_nothing_is_nothing(void **state) {
    (void)state;
    assert_int_equal(sy_vmem_destroy(NULL), 0);
}

static void destroy_refuses_while_anything_is_allocated(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    uintptr_t value = get(arena, 7);
    errno = 0;
    assert_int_equal(sy_vmem_destroy(arena), -1);
    assert_int_equal(errno, EBUSY);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 7);
    give(arena, get(arena, 93), 93);
    give(arena, value, 7);
    end(arena);
}

static void be_child(void *arg) {
    uintptr_t value;
    must(sy_vmem_alloc(arg, 10, SY_VMEM_BEST, &value) == 0);
    must(sy_vmem_free(arg, value, 10) == 0);
    must(sy_vmem_verify(arg) == 0);
}

/* A fork takes the locks of all arenas that there are. */
static void arenas_are_destroyed_in_any_order(void **state) {
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    (void)state;
    for (size_t order = 0; order < 4; order++) {
        sy_vmem *arenas[4];
        for (size_t i = 0; i < 4; i++) arenas[i] = make_plain(100);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(in_child(be_child, arenas[orders[order][3]]), 0);
            end(arenas[orders[order][i]]);
        }
    }
}

/* The statistics say how much was committed for the arena, exact to a page. Returns these bytes. */
static size_t expect_bytes(const sy_vmem *arena, size_t committed) {
    size_t held = sy_fake_committed() - committed, page = (size_t)sysconf(_SC_PAGESIZE);
    assert_in_range(stats_of(arena).bytes, held - page, held);
    return held;
}

static void destroy_gives_all_memory_back(void **state) {
    (void)state;
    end(make_plain(0)); /* starts the library */
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    sy_vmem *arena = make_plain(200000);
    for (size_t i = 0; i < 100000; i++) get(arena, 1);
    size_t most = expect_bytes(arena, committed);
    for (size_t i = 0; i < 100000; i++) give(arena, i, 1);
    assert_true(expect_bytes(arena, committed) < most / 4); /* much of it goes earlier */
    end(arena);
    assert_int_equal(sy_fake_reserved(), reserved);
    assert_int_equal(sy_fake_committed(), committed);
}

static void destroy_gives_imported_spans_back(void **state) {
    (void)state;
    supply from = {.next = 100, .more = 50};
    sy_vmem *arena = make(supplied(&from));
    uintptr_t value = get(arena, 8);
    assert_int_equal(from.released, 0);
    give(arena, value, 8);
    end(arena);
    nothing_is_out(&from);
}

/* ---- add ---- */

static void add_refuses_what_is_no_span(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.quantum = 8});
    not_added(arena, 0, 0, EINVAL);
    not_added(arena, 4, 8, EINVAL);
    not_added(arena, 8, 4, EINVAL);
    not_added(arena, UINTPTR_MAX - 7, 16, EINVAL);
    not_added(arena, 16, SIZE_MAX - 7, EINVAL);
    end(arena);
}

static void add_refuses_what_is_there(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    not_added(arena, 100, 100, EEXIST);
    not_added(arena, 199, 1, EEXIST);
    not_added(arena, 0, 101, EEXIST);
    not_added(arena, 50, 1000, EEXIST);
    not_added(arena, 120, 10, EEXIST);
    assert_int_equal(sy_vmem_add(arena, 0, 100), 0);
    assert_int_equal(sy_vmem_add(arena, 200, 1), 0);
    assert_int_equal(sy_vmem_size(arena, BOTH), 201);
    end(arena);
}

static void add_refuses_what_an_import_brought(void **state) {
    (void)state;
    supply from = {.next = 1000};
    sy_vmem *arena = make(supplied(&from));
    uintptr_t value = get(arena, 10);
    not_added(arena, 1009, 1, EEXIST);
    give(arena, value, 10);
    assert_int_equal(sy_vmem_add(arena, 1009, 1), 0);
    end(arena);
}

static void an_arena_holds_no_more_than_a_size_can_say(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(SIZE_MAX);
    not_added(arena, UINTPTR_MAX, 1, ENOMEM);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), SIZE_MAX);
    assert_int_equal(get(arena, SIZE_MAX), 0);
    give(arena, 0, SIZE_MAX);
    end(arena);
}

static void spans_that_touch_stay_two(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(64);
    assert_int_equal(sy_vmem_add(arena, 64, 64), 0);
    not_given(arena, 65, ENOMEM);
    assert_int_equal(stats_of(arena).spans, 2);
    assert_int_equal(stats_of(arena).segments_free, 2);
    get_at(arena, 60, 4);
    get_at(arena, 64, 4);
    give(arena, 64, 4);
    give(arena, 60, 4);
    assert_int_equal(stats_of(arena).segments_free, 2);
    end(arena);
}

/* ---- contains, size, walk, statistics ---- */

static void an_arena_contains_its_spans_and_nothing_else(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    assert_int_equal(sy_vmem_contains(arena, 100, 100), 1);
    assert_int_equal(sy_vmem_contains(arena, 150, 1), 1);
    assert_int_equal(sy_vmem_contains(arena, 99, 1), 0);
    assert_int_equal(sy_vmem_contains(arena, 99, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 200, 1), 0);
    assert_int_equal(sy_vmem_contains(arena, 199, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 100, SIZE_MAX), 0);
    assert_int_equal(sy_vmem_contains(arena, 0, SIZE_MAX), 0);
    end(arena);
}

static void neighbouring_spans_contain_what_lies_in_both(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    assert_int_equal(sy_vmem_add(arena, 200, 50), 0);
    assert_int_equal(sy_vmem_add(arena, 251, 50), 0);
    assert_int_equal(sy_vmem_contains(arena, 100, 150), 1);
    assert_int_equal(sy_vmem_contains(arena, 199, 2), 1);
    assert_int_equal(sy_vmem_contains(arena, 199, 52), 0);
    assert_int_equal(sy_vmem_contains(arena, 251, 50), 1);
    end(arena);
}

/* A range that goes past the end of the integers does not go on at 0. */
static void what_an_arena_contains_does_not_wrap(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 9, .size = 10});
    assert_int_equal(sy_vmem_add(arena, 0, 10), 0);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX - 9, 10), 1);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX, 1), 1);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 5, SIZE_MAX), 0);
    end(arena);
}

static void sizes_are_of_what_is_asked(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    get_at(arena, 20, 30);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 30);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 70);
    assert_int_equal(sy_vmem_size(arena, BOTH), 100);
    give(arena, 20, 30);
    end(arena);
}

static sy_vmem *make_varied(void) {
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 10});
    assert_int_equal(sy_vmem_add(arena, 110, 10), 0);
    assert_int_equal(sy_vmem_add(arena, 0, 5), 0);
    get_at(arena, 103, 4);
    get_at(arena, 110, 10);
    return arena;
}

static void end_varied(sy_vmem *arena) {
    give(arena, 103, 4);
    give(arena, 110, 10);
    end(arena);
}

static void a_walk_shows_all_in_order_of_value(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    SHOWS(arena, ALL, {SY_VMEM_SPANS, 0, 5}, {SY_VMEM_FREE, 0, 5}, {SY_VMEM_SPANS, 100, 10},
          {SY_VMEM_FREE, 100, 3}, {SY_VMEM_ALLOCATED, 103, 4}, {SY_VMEM_FREE, 107, 3},
          {SY_VMEM_SPANS, 110, 10}, {SY_VMEM_ALLOCATED, 110, 10});
    end_varied(arena);
}

static void a_walk_shows_what_it_was_asked_for(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    SHOWS(arena, SY_VMEM_SPANS, {SY_VMEM_SPANS, 0, 5}, {SY_VMEM_SPANS, 100, 10},
          {SY_VMEM_SPANS, 110, 10});
    SHOWS(arena, SY_VMEM_ALLOCATED, {SY_VMEM_ALLOCATED, 103, 4}, {SY_VMEM_ALLOCATED, 110, 10});
    SHOWS(arena, SY_VMEM_FREE, {SY_VMEM_FREE, 0, 5}, {SY_VMEM_FREE, 100, 3},
          {SY_VMEM_FREE, 107, 3});
    end_varied(arena);
}

static void a_walk_of_nothing_calls_nobody(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){0});
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_each(arena, ALL, note, &seen), 0);
    assert_int_equal(seen.count, 0);
    end(arena);
}

static void walk_refuses_what_it_does_not_know(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    static const unsigned unknown[] = {0, 8, 9, ~0u};
    view seen = {.count = 0};
    for (size_t i = 0; i < 4; i++) {
        errno = 0;
        assert_int_equal(sy_vmem_each(arena, unknown[i], note, &seen), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(seen.count, 0);
    end(arena);
}

static int stop_at_allocated(void *arg, unsigned what, uintptr_t start, size_t size) {
    note(arg, what, start, size);
    return what == SY_VMEM_ALLOCATED ? 42 : 0;
}

static void a_visit_ends_the_walk(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_each(arena, ALL, stop_at_allocated, &seen), 42);
    assert_int_equal(seen.count, 5);
    end_varied(arena);
}

typedef struct freeing_view {
    sy_vmem *arena;
    view seen;
} freeing_view;

/* Frees the segment that is visited. At the last one, also allocates the whole arena and frees
 * it. */
static int change_all(void *arg, unsigned what, uintptr_t start, size_t size) {
    freeing_view *it = arg;
    note(&it->seen, what, start, size);
    assert_int_equal(what, SY_VMEM_ALLOCATED);
    give(it->arena, start, size);
    if (it->seen.count < 5) return 0;
    uintptr_t all = get(it->arena, 50);
    assert_int_equal(all, 0);
    give(it->arena, all, 50);
    assert_int_equal(sy_vmem_add(it->arena, 100, 10), 0);
    return 0;
}

static void a_walk_shows_what_was_at_one_moment(void **state) {
    (void)state;
    freeing_view it = {.arena = make_plain(50)};
    for (uintptr_t i = 0; i < 5; i++) get_at(it.arena, i * 10, 10);
    assert_int_equal(sy_vmem_each(it.arena, SY_VMEM_ALLOCATED, change_all, &it), 0);
    assert_int_equal(it.seen.count, 5);
    for (uintptr_t i = 0; i < 5; i++) assert_int_equal(it.seen.entries[i].start, i * 10);
    assert_int_equal(sy_vmem_size(it.arena, SY_VMEM_FREE), 60);
    end(it.arena);
}

static void statistics_count_everything(void **state) {
    (void)state;
    supply from = {.next = 1000};
    sy_vmem_config config = supplied(&from);
    config.size = 64;
    config.quantum = 4;
    sy_vmem *arena = make(config);
    uintptr_t a = get(arena, 10), b = get(arena, 64);
    from.refuses = true;
    not_given(arena, 100, ENOMEM);
    sy_vmem_stats stats = stats_of(arena);
    assert_string_equal(stats.name, "ports");
    assert_int_equal(stats.quantum, 4);
    assert_int_equal(stats.total, 128);
    assert_int_equal(stats.allocated, 76);
    assert_int_equal(stats.free, 52);
    assert_int_equal(stats.cached, 0);
    assert_int_equal(stats.imported, 64);
    assert_in_range(stats.largest_free, 52 - 52 / 8, 52);
    assert_int_equal(stats.spans, 2);
    assert_int_equal(stats.imported_spans, 1);
    assert_int_equal(stats.segments_allocated, 2);
    assert_int_equal(stats.segments_free, 1);
    assert_true(stats.buckets > 0 && stats.bytes > 0);
    assert_int_equal(stats.allocs, 2);
    assert_int_equal(stats.failures, 6);
    give(arena, a, 10);
    give(arena, b, 64);
    stats = stats_of(arena);
    assert_int_equal(stats.frees, 2);
    assert_int_equal(stats.imports, 1);
    assert_int_equal(stats.releases, 1);
    assert_int_equal(stats.total, 64);
    assert_int_equal(stats.imported, 0);
    assert_int_equal(stats.spans, 1);
    end(arena);
}

static void statistics_need_a_place(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    errno = 0;
    assert_int_equal(sy_vmem_get_stats(arena, NULL), -1);
    assert_int_equal(errno, EINVAL);
    end(arena);
}

static void the_largest_free_segment_is_known_to_an_eighth(void **state) {
    (void)state;
    for (size_t size = 1; size < SIZE_MAX / 3; size += 1 + size / 5) {
        sy_vmem *arena = make_plain(size);
        assert_in_range(stats_of(arena).largest_free, size - size / 8, size);
        end(arena);
    }
}

/* Allocates segments of 1 to 8 quanta, frees every second one and allocates it again. *probes and
 * *steps: how many segments were looked at for an allocation and for a free, times 100. */
static void work_per_operation(size_t count, uint64_t *probes, uint64_t *steps) {
    uintptr_t *values = malloc(count * sizeof *values);
    sy_vmem *arena = make_plain(count * 16);
    for (size_t i = 0; i < count; i++) values[i] = get(arena, 1 + i % 8);
    sy_vmem_stats before = stats_of(arena);
    for (size_t i = 0; i < count; i += 2) give(arena, values[i], 1 + i % 8);
    for (size_t i = 0; i < count; i += 2) values[i] = get(arena, 1 + i % 8);
    sy_vmem_stats after = stats_of(arena);
    *probes = (after.probes - before.probes) * 100 / (after.allocs - before.allocs);
    *steps = (after.steps - before.steps) * 100 / (after.frees - before.frees);
    for (size_t i = 0; i < count; i++) give(arena, values[i], 1 + i % 8);
    end(arena);
    free(values);
}

static void operations_take_no_longer_among_many(void **state) {
    (void)state;
    uint64_t probes, steps, probes_many, steps_many;
    work_per_operation(100, &probes, &steps);
    work_per_operation(100000, &probes_many, &steps_many);
    assert_true(probes_many <= probes * 2 + 100);
    assert_true(steps_many <= 400); /* the table has no more entries than buckets */
}

static sy_vmem *growing;
static bool is_growing;

/* Does what another thread might do meanwhile. */
static void grow_too(void) {
    uintptr_t value;
    if (is_growing) return;
    is_growing = true;
    must(sy_vmem_alloc(growing, 1, SY_VMEM_INSTANT, &value) == 0);
    is_growing = false;
}

static void a_table_that_comes_twice_is_given_back(void **state) {
    (void)state;
    enum { UNITS = 5000 };
    size_t reserved = sy_fake_reserved();
    growing = make_plain(4 * UNITS);
    sy_fake_run_before(SY_FAKE_RESERVE, grow_too);
    for (int i = 0; i < UNITS; i++) get(growing, 1);
    sy_fake_run_before(SY_FAKE_RESERVE, NULL);
    assert_int_equal(sy_vmem_verify(growing), 0);
    sy_vmem_stats stats = stats_of(growing);
    for (uintptr_t value = 0; value < stats.allocated; value++) give(growing, value, 1);
    end(growing);
    assert_int_equal(sy_fake_reserved(), reserved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_arena_of_zeroes_has_nothing),
        TEST(a_name_is_copied_and_cut),
        TEST(create_refuses_no_config),
        TEST(create_refuses_a_quantum_that_is_no_power_of_two),
        TEST(create_refuses_a_span_off_the_quantum),
        TEST(create_refuses_a_span_past_the_end),
        TEST(create_refuses_more_than_16_cached_sizes),
        TEST(create_refuses_one_function_without_the_other),
        TEST(create_refuses_an_import_size_without_imports),
        TEST(create_refuses_a_source_of_a_larger_quantum),
        TEST(create_refuses_what_is_reserved),
        TEST(create_fails_without_client_numbers),
        TEST(destroying_nothing_is_nothing),
        TEST(destroy_refuses_while_anything_is_allocated),
        TEST(arenas_are_destroyed_in_any_order),
        TEST(destroy_gives_all_memory_back),
        TEST(destroy_gives_imported_spans_back),
        TEST(add_refuses_what_is_no_span),
        TEST(add_refuses_what_is_there),
        TEST(add_refuses_what_an_import_brought),
        TEST(an_arena_holds_no_more_than_a_size_can_say),
        TEST(spans_that_touch_stay_two),
        TEST(an_arena_contains_its_spans_and_nothing_else),
        TEST(neighbouring_spans_contain_what_lies_in_both),
        TEST(what_an_arena_contains_does_not_wrap),
        TEST(sizes_are_of_what_is_asked),
        TEST(a_walk_shows_all_in_order_of_value),
        TEST(a_walk_shows_what_it_was_asked_for),
        TEST(a_walk_of_nothing_calls_nobody),
        TEST(walk_refuses_what_it_does_not_know),
        TEST(a_visit_ends_the_walk),
        TEST(a_walk_shows_what_was_at_one_moment),
        TEST(statistics_count_everything),
        TEST(statistics_need_a_place),
        TEST(the_largest_free_segment_is_known_to_an_eighth),
        TEST(operations_take_no_longer_among_many),
        TEST(a_table_that_comes_twice_is_given_back),
    };
    return cmocka_run_group_tests_name("vmem", tests, NULL, NULL);
}
