/*
 * test_vmem_cached.c: what vmem.h promises about quantum caches, one behaviour a test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/arenas.h"
#include "support/child.h"
#include "vmem/arena.h"

static sy_vmem *make_cached(size_t size) {
    return make((sy_vmem_config){.name = "ports", .size = size, .cached_max = 4});
}

static void a_cached_value_comes_back(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    for (size_t size = 1; size <= 4; size++) {
        uintptr_t value = get(arena, size);
        give(arena, value, size);
        assert_int_equal(get(arena, size), value);
        give(arena, value, size);
    }
    end(arena);
}

static void cached_values_are_given_once(void **state) {
    (void)state;
    enum { COUNT = 500 };
    sy_vmem *arena = make_cached(COUNT * 2);
    bool out[COUNT * 2] = {false};
    for (size_t i = 0; i < COUNT; i++) {
        uintptr_t value = get(arena, 2);
        assert_false(out[value] || out[value + 1]);
        out[value] = out[value + 1] = true;
    }
    not_given(arena, 2, ENOMEM);
    for (uintptr_t i = 0; i < COUNT; i++) give(arena, i * 2, 2);
    end(arena);
}

/* The value 0 can be cached too. */
static void zero_is_cached_like_any_other(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(arena, 1), 0);
        not_given(arena, 1, ENOMEM);
        give(arena, 0, 1);
    }
    end(arena);
}

static void what_waits_in_caches_is_counted_apart(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t a = get(arena, 3), b = get(arena, 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 6);
    assert_int_equal(stats_of(arena).allocated, 6);
    give(arena, a, 3);
    sy_vmem_stats stats = stats_of(arena);
    assert_int_equal(stats.allocated, 3);
    assert_true(stats.cached >= 3);
    assert_int_equal(stats.total, 1000);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), stats.free);
    assert_int_equal(sy_vmem_size(arena, BOTH), 1000);
    give(arena, b, 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
    end(arena);
}

static void draining_gives_all_back(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    give(arena, get(arena, 1), 1);
    give(arena, get(arena, 4), 4);
    assert_true(stats_of(arena).cached >= 5);
    sy_vmem_drain(arena);
    assert_int_equal(stats_of(arena).cached, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    assert_int_equal(stats_of(arena).segments_free, 1);
    end(arena);
}

static void caches_are_drained_before_there_is_no_room(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(64);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        give(arena, get(arena, 1), 1);
        uintptr_t value = get_by(arena, 64, (sy_vmem_fit)fit);
        give(arena, value, 64);
        give(arena, get(arena, 1), 1);
        assert_int_equal(get_with(arena, 64, (sy_vmem_constraints){.align = 64}), 0);
        give(arena, 0, 64);
        give(arena, get(arena, 1), 1); /* waits in a cache, and is drained for the next */
        for (uintptr_t i = 0; i < 16; i++) get(arena, 4);
        for (uintptr_t i = 0; i < 16; i++) give(arena, i * 4, 4);
    }
    end(arena);
}

/* Other fits, and allocations with constraints, take nothing from caches. */
static void only_instant_fit_is_served_from_caches(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 4);
    sy_vmem_stats before = stats_of(arena);
    uintptr_t a = get_by(arena, 4, SY_VMEM_BEST), b = get_by(arena, 4, SY_VMEM_NEXT);
    uintptr_t c = get_with(arena, 4, (sy_vmem_constraints){.align = 4});
    sy_vmem_stats after = stats_of(arena);
    assert_int_equal(after.allocs, before.allocs + 3);
    assert_int_equal(after.cached, before.cached);
    assert_int_equal(sy_vmem_xfree(arena, a, 4), 0);
    assert_int_equal(sy_vmem_xfree(arena, b, 4), 0);
    assert_int_equal(sy_vmem_xfree(arena, c, 4), 0);
    assert_int_equal(stats_of(arena).cached, before.cached);
    give(arena, value, 4);
    end(arena);
}

static void a_wrong_free_to_a_cache_is_told_when_it_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 9);
    assert_int_equal(sy_vmem_free(arena, 999, 4), 0);
    assert_int_equal(faults, 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    assert_int_equal(sy_vmem_free(arena, value, 2), 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_SEGMENT_SIZE, value, 2, 9);
    sy_vmem_drain(arena);
    assert_int_equal(faults, 0);
    give(arena, value, 9);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

static void a_wrong_xfree_of_a_cached_size_is_told_at_once(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    errno = 0;
    assert_int_equal(sy_vmem_xfree(arena, 999, 4), -1);
    assert_int_equal(errno, EINVAL);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    end(arena);
}

static void the_handler_may_use_an_arena_that_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = used_by_handler = make_cached(1000);
    sy_set_fault_handler(use_the_arena);
    assert_int_equal(sy_vmem_free(arena, 999, 4), 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    end(arena);
}

static void a_wrong_free_does_not_keep_the_others_of_its_magazine(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t values[20];
    for (size_t i = 0; i < 20; i++) values[i] = get(arena, 4);
    for (size_t i = 0; i < 20; i++) {
        give(arena, values[i], 4);
        if (i % 2) assert_int_equal(sy_vmem_free(arena, 900 + i, 4), 0);
    }
    sy_vmem_drain(arena);
    assert_true(faults > 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

/* The size of a segment at its free says which cache it goes to. */
static void what_was_resized_is_cached_as_what_it_is(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    get_at(arena, 500, 20);
    assert_int_equal(sy_vmem_resize(arena, 500, 20, 2), 0);
    give(arena, 500, 2);
    assert_int_equal(get(arena, 2), 500);
    assert_int_equal(sy_vmem_resize(arena, 500, 2, 30), 0);
    give(arena, 500, 30);
    sy_vmem_drain(arena);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    assert_int_equal(faults, 0);
    end(arena);
}

static void a_double_free_in_a_row_to_a_cache_is_told_at_once(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t values[300];
    for (size_t i = 0; i < 300; i++) values[i] = get(arena, 2);
    for (size_t i = 300; i-- > 0;) { /* value 0 comes last */
        give(arena, values[i], 2);
        errno = 0;
        assert_int_equal(sy_vmem_free(arena, values[i], 2), -1);
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_NOT_ALLOCATED, values[i], 2, 0);
    }
    end(arena);
}

static void a_later_double_free_to_a_cache_is_told_when_it_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 2), other = get(arena, 2);
    give(arena, value, 2);
    give(arena, other, 2);
    give(arena, value, 2);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, value, 2, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

static void what_is_cached_does_not_keep_an_arena(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t values[200];
    for (size_t i = 0; i < 200; i++) values[i] = get(arena, 1 + i % 4);
    for (size_t i = 0; i < 200; i++) give(arena, values[i], 1 + i % 4);
    assert_true(stats_of(arena).cached > 0);
    end(arena);
}

static void an_arena_with_caches_is_busy_like_any_other(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 1);
    errno = 0;
    assert_int_equal(sy_vmem_destroy(arena), -1);
    assert_int_equal(errno, EBUSY);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 1);
    give(arena, value, 1);
    assert_int_equal(get(arena, 1), value); /* the cache still works */
    give(arena, value, 1);
    sy_thread_flush();
    assert_int_equal(stats_of(arena).cached, 0);
    end(arena);
}

static void a_walk_drains_first(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(100);
    give(arena, get(arena, 2), 2);
    get_at(arena, 50, 3);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 0, 50}, {SY_VMEM_ALLOCATED, 50, 3}, {SY_VMEM_FREE, 53, 47});
    give(arena, 50, 3);
    end(arena);
}

static void *take_and_give(void *arg) {
    uintptr_t values[50];
    for (size_t i = 0; i < 50; i++) must(sy_vmem_alloc(arg, 2, SY_VMEM_INSTANT, &values[i]) == 0);
    for (size_t i = 0; i < 50; i++) must(sy_vmem_free(arg, values[i], 2) == 0);
    return NULL;
}

static void what_threads_leave_behind_can_be_had(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(100);
    for (int i = 0; i < 3; i++) {
        in_thread(take_and_give, arena);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
        assert_int_equal(get(arena, 100), 0);
        give(arena, 0, 100);
    }
    end(arena);
}

/* Imports fill magazines, whose values keep spans until the arena is drained. */
static void caches_over_imports_give_every_span_back(void **state) {
    (void)state;
    supply from = {.next = 64, .gap = 8};
    sy_vmem_config config = supplied(&from);
    config.cached_max = 8;
    config.import_min = 256;
    sy_vmem *arena = make(config);
    uintptr_t values[300];
    for (size_t i = 0; i < 300; i++) values[i] = get(arena, 1 + i % 8);
    for (size_t i = 0; i < 300; i++) give(arena, values[i], 1 + i % 8);
    sy_vmem_drain(arena);
    nothing_is_out(&from);
    give(arena, get(arena, 1), 1);
    end(arena);
    nothing_is_out(&from);
}

/* If a destroy finds a busy cache, the caches that it suspended before go on. */
static void an_arena_that_is_busy_keeps_all_its_caches(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(100);
    sy_client *first = &arena->caches[0].client, *last = &arena->caches[3].client;
    assert_true(sy_client_pin(last));
    errno = 0;
    assert_int_equal(sy_vmem_destroy(arena), -1);
    assert_int_equal(errno, EBUSY);
    assert_true(sy_client_pin(first));
    sy_client_unpin(first);
    sy_client_unpin(last);
    end(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_cached_value_comes_back),
        TEST(cached_values_are_given_once),
        TEST(zero_is_cached_like_any_other),
        TEST(what_waits_in_caches_is_counted_apart),
        TEST(draining_gives_all_back),
        TEST(caches_are_drained_before_there_is_no_room),
        TEST(only_instant_fit_is_served_from_caches),
        TEST(a_wrong_free_to_a_cache_is_told_when_it_is_drained),
        TEST(a_wrong_xfree_of_a_cached_size_is_told_at_once),
        TEST(the_handler_may_use_an_arena_that_is_drained),
        TEST(a_wrong_free_does_not_keep_the_others_of_its_magazine),
        TEST(what_was_resized_is_cached_as_what_it_is),
        TEST(a_double_free_in_a_row_to_a_cache_is_told_at_once),
        TEST(a_later_double_free_to_a_cache_is_told_when_it_is_drained),
        TEST(what_is_cached_does_not_keep_an_arena),
        TEST(an_arena_with_caches_is_busy_like_any_other),
        TEST(a_walk_drains_first),
        TEST(what_threads_leave_behind_can_be_had),
        TEST(caches_over_imports_give_every_span_back),
        TEST(an_arena_that_is_busy_keeps_all_its_caches),
    };
    return cmocka_run_group_tests_name("vmem_cached", tests, NULL, NULL);
}
