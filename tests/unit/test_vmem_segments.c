/*
 * test_vmem_segments.c: what vmem.h promises about allocating by each fit and under constraints,
 * about freeing and resizing, one behaviour a test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/arenas.h"
#include "support/child.h"
#include "vmem/arena.h"

/* ---- alloc ---- */

static void zero_is_a_value(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1);
    assert_int_equal(get(arena, 1), 0);
    not_given(arena, 1, ENOMEM);
    give(arena, 0, 1);
    assert_int_equal(get_with(arena, 1, (sy_vmem_constraints){.max = 1}), 0);
    give(arena, 0, 1);
    end(arena);
}

static void the_last_integer_is_a_value(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 1, .size = 2});
    get_at(arena, UINTPTR_MAX - 1, 1);
    assert_int_equal(get(arena, 1), UINTPTR_MAX);
    give(arena, UINTPTR_MAX - 1, 1);
    give(arena, UINTPTR_MAX, 1);
    assert_int_equal(get(arena, 2), UINTPTR_MAX - 1);
    give(arena, UINTPTR_MAX - 1, 2);
    end(arena);
}

static void sizes_are_rounded_to_the_quantum(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 64, .size = 64, .quantum = 16});
    uintptr_t a = get(arena, 1), b = get(arena, 17);
    assert_int_equal(a % 16, 0);
    assert_int_equal(b % 16, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 48);
    not_given(arena, 17, ENOMEM);
    give(arena, a, 1);
    give(arena, b, 17);
    end(arena);
}

static void alloc_refuses_no_size(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    not_given(arena, 0, EINVAL);
    end(arena);
}

static void alloc_refuses_sizes_that_overflow(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 20, .quantum = 4096});
    not_given(arena, SIZE_MAX, EINVAL);
    not_given(arena, SIZE_MAX - 4094, EINVAL);
    not_given(arena, SIZE_MAX - 4095, ENOMEM);
    end(arena);
}

static void what_is_too_large_is_no_room(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    not_given(arena, 101, ENOMEM);
    not_given(arena, SIZE_MAX, ENOMEM);
    not_given(arena, SIZE_MAX / 2 + 1, ENOMEM);
    end(arena);
}

static void alloc_refuses_an_unknown_fit(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 100, .cached_max = 8});
    uintptr_t value;
    for (int fit = SY_VMEM_NEXT + 1; fit < 100; fit += 31) {
        errno = 0;
        assert_int_equal(sy_vmem_alloc(arena, 1, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_int_equal(sy_vmem_xalloc(arena, 1, NULL, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, EINVAL);
    }
    end(arena);
}

/* Instant fit looks first at the lists whose segments are all large enough, but then at others
 * too. */
static void any_fit_finds_the_one_that_fits_exactly(void **state) {
    (void)state;
    for (size_t size = 1; size < 1200; size += 1 + size / 16) {
        for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
            sy_vmem *arena = make_plain(size);
            assert_int_equal(get_by(arena, size, (sy_vmem_fit)fit), 0);
            give(arena, 0, size);
            end(arena);
        }
    }
}

static void best_fit_takes_the_smallest(void **state) {
    (void)state;
    static const size_t sizes[] = {90, 70, 68, 65, 66, 81};
    sy_vmem *arena = make_plain(0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(sy_vmem_add(arena, 1000 * (i + 1), sizes[i]), 0);
    assert_int_equal(get_by(arena, 64, SY_VMEM_BEST), 4000);
    assert_int_equal(get_by(arena, 64, SY_VMEM_BEST), 5000);
    assert_int_equal(get_by(arena, 67, SY_VMEM_BEST), 3000);
    assert_int_equal(get_by(arena, 82, SY_VMEM_BEST), 1000);
    give(arena, 4000, 64);
    give(arena, 5000, 64);
    give(arena, 3000, 67);
    give(arena, 1000, 82);
    end(arena);
}

static void next_fit_uses_every_id_before_it_repeats_one(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 10, .size = 5});
    for (uintptr_t i = 0; i < 23; i++) {
        uintptr_t id = get_by(arena, 1, SY_VMEM_NEXT);
        assert_int_equal(id, 10 + i % 5);
        give(arena, id, 1);
    }
    end(arena);
}

static void next_fit_goes_around_what_is_in_use(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(6);
    get_at(arena, 1, 1);
    get_at(arena, 4, 1);
    static const uintptr_t turns[] = {0, 2, 3, 5, 0, 2};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), turns[i]);
        give(arena, turns[i], 1);
    }
    give(arena, 1, 1);
    give(arena, 4, 1);
    end(arena);
}

static void next_fit_goes_on_in_the_next_span(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 2});
    assert_int_equal(sy_vmem_add(arena, UINTPTR_MAX, 1), 0);
    assert_int_equal(sy_vmem_add(arena, 0, 1), 0);
    static const uintptr_t turns[] = {0, 100, 101, UINTPTR_MAX, 0, 100};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), turns[i]);
        give(arena, turns[i], 1);
    }
    end(arena);
}

static void next_fit_takes_larger_pieces_where_they_fit(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    assert_int_equal(get_by(arena, 6, SY_VMEM_NEXT), 0);
    give(arena, 0, 6);
    assert_int_equal(get_by(arena, 5, SY_VMEM_NEXT), 0); /* 6 to 9 are too few for 5 */
    assert_int_equal(get_by(arena, 2, SY_VMEM_NEXT), 5);
    give(arena, 0, 5);
    give(arena, 5, 2);
    end(arena);
}

/* The last segment chosen, 2 to 5, is freed. Another segment grows over this place and shrinks. */
static void next_fit_goes_on_from_a_place_that_others_had(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    get_at(arena, 0, 2);
    assert_int_equal(get_by(arena, 4, SY_VMEM_NEXT), 2);
    give(arena, 2, 4);
    assert_int_equal(sy_vmem_resize(arena, 0, 2, 10), 0);
    assert_int_equal(get(arena, 10), 10);
    assert_int_equal(sy_vmem_resize(arena, 0, 10, 2), 0);
    assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), 6);
    give(arena, 0, 2);
    give(arena, 6, 1);
    give(arena, 10, 10);
    end(arena);
}

/* ---- freeing, coalescing ---- */

enum { RUN = 128 };

static void free_in_order(sy_vmem *arena, const size_t *order) {
    for (size_t i = 0; i < RUN; i++) get_at(arena, 1000 + i, 1);
    not_given(arena, 1, ENOMEM);
    for (size_t i = 0; i < RUN; i++) {
        give(arena, 1000 + order[i], 1);
        assert_int_equal(sy_vmem_verify(arena), 0);
    }
    assert_int_equal(stats_of(arena).segments_free, 1);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        assert_int_equal(get_by(arena, RUN, (sy_vmem_fit)fit), 1000);
        give(arena, 1000, RUN);
    }
}

static void contiguous_quanta_are_one_segment_however_they_were_freed(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 1000, .size = RUN});
    size_t order[RUN];
    uint64_t random = 1;
    for (size_t i = 0; i < RUN; i++) order[i] = i;
    free_in_order(arena, order);
    for (size_t i = 0; i < RUN; i++) order[i] = RUN - 1 - i;
    free_in_order(arena, order);
    for (size_t i = 0; i < RUN; i++) order[i] = i * 2 % RUN + i * 2 / RUN;
    free_in_order(arena, order);
    for (int round = 0; round < 20; round++) {
        for (size_t i = RUN; i > 1; i--) {
            size_t j = next_random(&random) % i, kept = order[i - 1];
            order[i - 1] = order[j];
            order[j] = kept;
        }
        free_in_order(arena, order);
    }
    end(arena);
}

/* A run of free quanta between allocated ones, wherever it lies. */
static void contiguous_quanta_among_others_can_be_had_together(void **state) {
    (void)state;
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        for (uintptr_t start = 1; start < 1024 - RUN; start += 37) {
            sy_vmem *arena = make_plain(1024);
            for (size_t i = 0; i < 1024; i++) get(arena, 1);
            for (size_t i = 0; i < RUN; i++) give(arena, start + i * 55 % RUN, 1);
            not_given(arena, RUN + 1, ENOMEM);
            assert_int_equal(get_by(arena, RUN, (sy_vmem_fit)fit), start);
            for (uintptr_t i = 0; i < start; i++) give(arena, i, 1);
            for (uintptr_t i = start + RUN; i < 1024; i++) give(arena, i, 1);
            give(arena, start, RUN);
            end(arena);
        }
    }
}

static void either_function_frees_what_the_other_gave(void **state) {
    (void)state;
    for (size_t cached = 0; cached <= 8; cached += 8) {
        sy_vmem *arena = make((sy_vmem_config){.size = 100, .cached_max = cached});
        uintptr_t a = get(arena, 4), b = get_with(arena, 4, (sy_vmem_constraints){.align = 4});
        assert_int_equal(sy_vmem_xfree(arena, a, 4), 0);
        assert_int_equal(sy_vmem_free(arena, b, 4), 0);
        sy_vmem_drain(arena);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 100);
        assert_int_equal(faults, 0);
        end(arena);
    }
}

typedef int free_function(sy_vmem *arena, uintptr_t value, size_t size);

static free_function *const free_functions[] = {sy_vmem_free, sy_vmem_xfree};

static void freeing_what_is_not_allocated_is_told(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .base = 0x40, .size = 0x100});
    get_at(arena, 0x50, 16);
    static const uintptr_t wrong[] = {0x40, 0x51, 0x4f, 0x60, 0, UINTPTR_MAX, 0x140};
    for (size_t i = 0; i < 14; i++) {
        errno = 0;
        assert_int_equal(free_functions[i % 2](arena, wrong[i / 2], 16), -1);
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_NOT_ALLOCATED, wrong[i / 2], 16, 0);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 16);
    }
    give(arena, 0x50, 16);
    assert_int_equal(faults, 0);
    assert_int_equal(sy_vmem_free(arena, 0x50, 16), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 0x50, 16, 0);
    end(arena);
}

static void freeing_with_another_size_is_told(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .base = 0x40, .size = 0x100});
    get_at(arena, 0x50, 16);
    static const size_t wrong[] = {15, 17, 1, 0, SIZE_MAX};
    for (size_t i = 0; i < 10; i++) {
        errno = 0;
        assert_int_equal(free_functions[i % 2](arena, 0x50, wrong[i / 2]), -1);
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_SEGMENT_SIZE, 0x50, wrong[i / 2], 16);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 16);
    }
    give(arena, 0x50, 16);
    end(arena);
}

static void the_handler_of_a_fault_may_use_the_arena(void **state) {
    (void)state;
    sy_vmem *arena = used_by_handler = make((sy_vmem_config){.name = "ports", .size = 100});
    sy_set_fault_handler(use_the_arena);
    assert_int_equal(sy_vmem_free(arena, 50, 1), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 50, 1, 0);
    assert_int_equal(sy_vmem_resize(arena, 50, 1, 2), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 50, 1, 0);
    end(arena);
}

/* ---- xalloc ---- */

static void align_and_phase_are_kept(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 96, .size = 4096, .quantum = 8});
    uintptr_t a = get_with(arena, 8, (sy_vmem_constraints){.align = 256});
    uintptr_t b = get_with(arena, 8, (sy_vmem_constraints){.align = 256, .phase = 24});
    uintptr_t c = get_with(arena, 8, (sy_vmem_constraints){.align = 8});
    assert_int_equal(a % 256, 0);
    assert_int_equal(b % 256, 24);
    assert_int_equal(c % 8, 0);
    give(arena, a, 8);
    give(arena, b, 8);
    give(arena, c, 8);
    end(arena);
}

static void the_phase_may_lie_before_the_first_multiple(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 10, .size = 4});
    assert_int_equal(get_with(arena, 1, (sy_vmem_constraints){.align = 64, .phase = 11}), 11);
    not_given_with(arena, 1, (sy_vmem_constraints){.align = 64, .phase = 11}, ENOMEM);
    give(arena, 11, 1);
    end(arena);
}

static void alignment_near_the_end_of_the_integers_does_not_wrap(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 99, .size = 100});
    not_given_with(arena, 1, (sy_vmem_constraints){.align = 4096}, ENOMEM);
    not_given_with(arena, 1, (sy_vmem_constraints){.align = SIZE_MAX / 2 + 1}, ENOMEM);
    sy_vmem_constraints top = {.align = 4096, .phase = 4095};
    assert_int_equal(get_with(arena, 1, top), UINTPTR_MAX);
    not_given_with(arena, 2, (sy_vmem_constraints){.align = 4096, .phase = 4095}, ENOMEM);
    give(arena, UINTPTR_MAX, 1);
    end(arena);
}

/* The first candidate crosses a boundary. The same free segment has another one behind it. */
static void nocross_tries_beyond_the_boundary(void **state) {
    (void)state;
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        sy_vmem *arena = make((sy_vmem_config){.base = 60, .size = 20});
        sy_vmem_constraints with = {.nocross = 64};
        uintptr_t value;
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, (sy_vmem_fit)fit, &value), 0);
        assert_true(value >= 64 && value <= 72);
        give(arena, value, 8);
        with = (sy_vmem_constraints){.nocross = 64, .align = 4, .phase = 3};
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, (sy_vmem_fit)fit, &value), 0);
        assert_true(value == 67 || value == 71);
        give(arena, value, 8);
        end(arena);
    }
}

static void a_segment_may_touch_a_boundary_but_not_cross_it(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 56, .size = 8});
    assert_int_equal(get_with(arena, 8, (sy_vmem_constraints){.nocross = 64}), 56);
    give(arena, 56, 8);
    assert_int_equal(get_with(arena, 8, (sy_vmem_constraints){.nocross = 8}), 56);
    give(arena, 56, 8);
    not_given_with(arena, 5, (sy_vmem_constraints){.nocross = 64, .min = 60}, ENOMEM);
    end(arena);
    arena = make((sy_vmem_config){.base = 60, .size = 8});
    not_given_with(arena, 8, (sy_vmem_constraints){.nocross = 64}, ENOMEM);
    not_given_with(arena, 5, (sy_vmem_constraints){.nocross = 64}, ENOMEM);
    end(arena);
}

static void min_and_max_bound_all_of_a_segment(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1000);
    sy_vmem_constraints with = {.min = 500, .max = 510};
    uintptr_t a = get_with(arena, 4, with), b = get_with(arena, 6, with);
    assert_true(a >= 500 && a + 4 <= 510 && b >= 500 && b + 6 <= 510);
    not_given_with(arena, 1, with, ENOMEM);
    give(arena, a, 4);
    give(arena, b, 6);
    get_at(arena, 500, 10);
    give(arena, 500, 10);
    assert_true(get_with(arena, 1, (sy_vmem_constraints){.min = 999}) == 999);
    give(arena, 999, 1);
    end(arena);
}

static void max_0_is_the_end_of_the_integers(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 9, .size = 10});
    sy_vmem_constraints with = {.min = UINTPTR_MAX - 1};
    assert_int_equal(get_with(arena, 2, with), UINTPTR_MAX - 1);
    give(arena, UINTPTR_MAX - 1, 2);
    with.max = UINTPTR_MAX;
    assert_int_equal(get_with(arena, 1, with), UINTPTR_MAX - 1);
    not_given_with(arena, 1, with, ENOMEM);
    give(arena, UINTPTR_MAX - 1, 1);
    end(arena);
}

static void all_constraints_hold_together(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 20, .quantum = 16});
    sy_vmem_constraints with = {
        .align = 256, .phase = 64, .nocross = 1024, .min = 5000, .max = 100000};
    for (int i = 0; i < 40; i++) {
        uintptr_t value = get_with(arena, 400, with);
        assert_int_equal(value % 256, 64);
        assert_true(value % 1024 + 400 <= 1024);
        assert_true(value >= 5000 && value + 400 <= 100000);
    }
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_each(arena, SY_VMEM_ALLOCATED, note, &seen), 0);
    assert_int_equal(seen.count, 40);
    for (size_t i = 0; i < 40; i++) give(arena, seen.entries[i].start, 400);
    end(arena);
}

static void best_fit_under_constraints_takes_the_smallest_that_has_a_place(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 1001, .size = 10}); /* the smallest, no place */
    assert_int_equal(sy_vmem_add(arena, 2000, 30), 0);
    assert_int_equal(sy_vmem_add(arena, 3001, 20), 0);
    sy_vmem_constraints with = {.align = 16};
    uintptr_t value;
    assert_int_equal(sy_vmem_xalloc(arena, 8, &with, SY_VMEM_BEST, &value), 0);
    assert_int_equal(value, 3008);
    give(arena, value, 8);
    end(arena);
}

static void xalloc_refuses_what_is_no_alignment(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 16, .quantum = 16});
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 48}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 8}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = SIZE_MAX}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.nocross = 48}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.nocross = 8}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 64, .phase = 64}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 64, .phase = 24}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.phase = 16}, EINVAL);
    end(arena);
}

static void xalloc_refuses_what_no_value_satisfies(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1 << 16);
    not_given_with(arena, 65, (sy_vmem_constraints){.nocross = 64}, EINVAL);
    not_given_with(arena, 11, (sy_vmem_constraints){.min = 100, .max = 110}, EINVAL);
    not_given_with(arena, 1, (sy_vmem_constraints){.min = 100, .max = 100}, EINVAL);
    not_given_with(arena, 1, (sy_vmem_constraints){.min = 100, .max = 99}, EINVAL);
    not_given_with(arena, 2, (sy_vmem_constraints){.min = UINTPTR_MAX}, EINVAL);
    not_given_with(arena, SIZE_MAX, (sy_vmem_constraints){.min = 2}, EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 64},
                   EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 8}, EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 16, .phase = 12, .nocross = 16},
                   EINVAL);
    uintptr_t value =
        get_with(arena, 4, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 64});
    give(arena, value, 4);
    end(arena);
}

static void no_constraints_are_none(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    uintptr_t value;
    assert_int_equal(sy_vmem_xalloc(arena, 4, NULL, SY_VMEM_INSTANT, &value), 0);
    give(arena, value, 4);
    assert_int_equal(get_with(arena, 10, (sy_vmem_constraints){0}), 0);
    give(arena, 0, 10);
    end(arena);
}

/* ---- resize ---- */

static void a_segment_grows_and_shrinks_where_it_is(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    get_at(arena, 110, 10);
    assert_int_equal(sy_vmem_resize(arena, 110, 10, 30), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 30},
          {SY_VMEM_FREE, 140, 60});
    assert_int_equal(sy_vmem_resize(arena, 110, 30, 5), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 5},
          {SY_VMEM_FREE, 115, 85});
    assert_int_equal(sy_vmem_resize(arena, 110, 5, 5), 0);
    assert_int_equal(sy_vmem_resize(arena, 110, 5, 90), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 90});
    give(arena, 110, 90);
    end(arena);
}

static void a_segment_shrinks_before_another(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    get_at(arena, 0, 10);
    get_at(arena, 10, 10);
    assert_int_equal(sy_vmem_resize(arena, 0, 10, 4), 0);
    SHOWS(arena, BOTH, {SY_VMEM_ALLOCATED, 0, 4}, {SY_VMEM_FREE, 4, 6},
          {SY_VMEM_ALLOCATED, 10, 10});
    assert_int_equal(sy_vmem_resize(arena, 0, 4, 10), 0);
    give(arena, 0, 10);
    give(arena, 10, 10);
    end(arena);
}

static void a_segment_does_not_grow_beyond_what_is_free(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    assert_int_equal(sy_vmem_add(arena, 20, 20), 0);
    get_at(arena, 0, 5);
    get_at(arena, 10, 10);
    not_resized(arena, 0, 5, 11, ENOMEM);   /* another segment follows */
    not_resized(arena, 10, 10, 11, ENOMEM); /* the span ends */
    not_resized(arena, 0, 5, SIZE_MAX, ENOMEM);
    assert_int_equal(sy_vmem_resize(arena, 0, 5, 10), 0);
    give(arena, 0, 10);
    give(arena, 10, 10);
    get_at(arena, 39, 1);
    not_resized(arena, 39, 1, 2, ENOMEM); /* the integers of the arena end */
    give(arena, 39, 1);
    end(arena);
}

static void resize_refuses_no_size_and_overflow(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 4096, .quantum = 16});
    get_at(arena, 0, 16);
    not_resized(arena, 0, 16, 0, EINVAL);
    not_resized(arena, 0, 16, SIZE_MAX, EINVAL);
    not_resized(arena, 0, 16, SIZE_MAX - 15, ENOMEM);
    assert_int_equal(faults, 0);
    give(arena, 0, 16);
    end(arena);
}

static void resize_tells_what_free_tells(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .size = 100});
    get_at(arena, 10, 10);
    not_resized(arena, 11, 10, 12, EINVAL);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 11, 10, 0);
    not_resized(arena, 10, 9, 12, EINVAL);
    expect_fault(SY_FAULT_SEGMENT_SIZE, 10, 9, 10);
    give(arena, 10, 10);
    end(arena);
}

static void what_was_resized_is_freed_with_its_new_size(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .size = 4096, .quantum = 16});
    get_at(arena, 64, 64);
    assert_int_equal(sy_vmem_resize(arena, 64, 64, 100), 0);
    assert_int_equal(sy_vmem_free(arena, 64, 64), -1);
    expect_fault(SY_FAULT_SEGMENT_SIZE, 64, 64, 112);
    give(arena, 64, 100);
    end(arena);
}

/* ---- split: for the engine's arenas ---- */

static void the_parts_of_a_segment_are_freed_each_by_itself(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
        get_at(arena, 110, 30);
        assert_int_equal(sy_vmem_split(arena, 110, 12), 0);
        assert_int_equal(sy_vmem_verify(arena), 0);
        SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 12},
              {SY_VMEM_ALLOCATED, 122, 18}, {SY_VMEM_FREE, 140, 60});
        assert_int_equal(stats_of(arena).allocated, 30);
        give(arena, first ? 110 : 122, first ? 12 : 18);
        assert_int_equal(sy_vmem_verify(arena), 0);
        give(arena, first ? 122 : 110, first ? 18 : 12);
        SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 100});
        end(arena);
    }
}

/* Next fit goes on behind the value that it gave last, which lies in the second part now. */
static void next_fit_goes_on_behind_the_parts(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 100});
    assert_int_equal(get_by(arena, 30, SY_VMEM_NEXT), 0);
    assert_int_equal(sy_vmem_split(arena, 0, 12), 0);
    give(arena, 0, 12);
    assert_int_equal(get_by(arena, 5, SY_VMEM_NEXT), 30);
    give(arena, 30, 5);
    give(arena, 12, 18);
    end(arena);
}

/* A tag of the second part needs memory now and then. */
static void without_memory_a_segment_stays_whole(void **state) {
    (void)state;
    enum { SEGMENTS = 3000, SIZE = 2 };
    sy_vmem *arena = make((sy_vmem_config){.size = SEGMENTS * SIZE});
    size_t split = 0, refused = 0;
    for (size_t i = 0; i < SEGMENTS; i++) get_at(arena, i * SIZE, SIZE);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    for (size_t i = 0; i < SEGMENTS && !refused; i++) {
        errno = 0;
        if (sy_vmem_split(arena, i * SIZE, 1) == 0)
            split++;
        else
            refused++;
        if (refused) assert_int_equal(errno, ENOMEM);
    }
    sy_fake_reset();
    assert_int_equal(refused, 1);
    assert_int_equal(sy_vmem_verify(arena), 0);
    for (size_t i = 0; i < SEGMENTS; i++) {
        give(arena, i * SIZE, i < split ? 1 : SIZE);
        if (i < split) give(arena, i * SIZE + 1, 1);
    }
    end(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(zero_is_a_value),
        TEST(the_last_integer_is_a_value),
        TEST(sizes_are_rounded_to_the_quantum),
        TEST(alloc_refuses_no_size),
        TEST(alloc_refuses_sizes_that_overflow),
        TEST(what_is_too_large_is_no_room),
        TEST(alloc_refuses_an_unknown_fit),
        TEST(any_fit_finds_the_one_that_fits_exactly),
        TEST(best_fit_takes_the_smallest),
        TEST(next_fit_uses_every_id_before_it_repeats_one),
        TEST(next_fit_goes_around_what_is_in_use),
        TEST(next_fit_goes_on_in_the_next_span),
        TEST(next_fit_takes_larger_pieces_where_they_fit),
        TEST(next_fit_goes_on_from_a_place_that_others_had),
        TEST(contiguous_quanta_are_one_segment_however_they_were_freed),
        TEST(contiguous_quanta_among_others_can_be_had_together),
        TEST(either_function_frees_what_the_other_gave),
        TEST(freeing_what_is_not_allocated_is_told),
        TEST(freeing_with_another_size_is_told),
        TEST(the_handler_of_a_fault_may_use_the_arena),
        TEST(align_and_phase_are_kept),
        TEST(the_phase_may_lie_before_the_first_multiple),
        TEST(alignment_near_the_end_of_the_integers_does_not_wrap),
        TEST(nocross_tries_beyond_the_boundary),
        TEST(a_segment_may_touch_a_boundary_but_not_cross_it),
        TEST(min_and_max_bound_all_of_a_segment),
        TEST(max_0_is_the_end_of_the_integers),
        TEST(all_constraints_hold_together),
        TEST(best_fit_under_constraints_takes_the_smallest_that_has_a_place),
        TEST(xalloc_refuses_what_is_no_alignment),
        TEST(xalloc_refuses_what_no_value_satisfies),
        TEST(no_constraints_are_none),
        TEST(a_segment_grows_and_shrinks_where_it_is),
        TEST(a_segment_shrinks_before_another),
        TEST(a_segment_does_not_grow_beyond_what_is_free),
        TEST(resize_refuses_no_size_and_overflow),
        TEST(resize_tells_what_free_tells),
        TEST(what_was_resized_is_freed_with_its_new_size),
        TEST(the_parts_of_a_segment_are_freed_each_by_itself),
        TEST(next_fit_goes_on_behind_the_parts),
        TEST(without_memory_a_segment_stays_whole),
    };
    return cmocka_run_group_tests_name("vmem_segments", tests, NULL, NULL);
}
