/*
 * test_pace.c: how far apart passes by age are, by tables of what passes return and what is used
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reclaim/pace.h"

static const size_t MIB = 1 << 20;

/* So many passes of a kind, each of which returned so much; before each of them so much was used
 * again early, and so much is in use. Then the passes are 2^stretch decay times apart. */
typedef struct row {
    unsigned passes;
    size_t returned, early, used;
    int stretch;
} row;

static void follow(const row *rows, size_t count) {
    sy_pace pace = {0};
    int stretch = 0;
    for (size_t i = 0; i < count; i++) {
        for (unsigned pass = 0; pass < rows[i].passes; pass++) {
            (void)sy_pace_adapt(&pace, &stretch, rows[i].early, rows[i].used);
            sy_pace_note(&pace, rows[i].returned);
        }
        if (stretch != rows[i].stretch) print_error("row %zu\n", i);
        assert_int_equal(stretch, rows[i].stretch);
    }
}

#define FOLLOW(...) \
    follow((const row[]){__VA_ARGS__}, sizeof((const row[]){__VA_ARGS__}) / sizeof(row))

static void without_returns_nothing_changes(void **state) {
    (void)state;
    FOLLOW({200, 0, 0, 100 * MIB, 0});
}

static void memory_that_is_used_again_makes_passes_rare(void **state) {
    (void)state;
    FOLLOW({1, 20 * MIB, 0, 0, 0}, {1, 20 * MIB, 8 * MIB, 0, 1}, {1, 20 * MIB, 8 * MIB, 0, 2},
           {5, 20 * MIB, 8 * MIB, 0, 2}, {60, 0, 0, 0, 1}, {59, 0, 0, 0, 1}, {1, 0, 0, 0, 0},
           {100, 0, 0, 0, 0});
}

static void little_that_is_used_again_does_not_matter(void **state) {
    (void)state;
    FOLLOW({1, MIB, 0, 0, 0}, {3, MIB, 8 * MIB - 1, 0, 0});
    FOLLOW({1, 100 * MIB, 0, 8000 * MIB, 0}, {1, 0, 25 * MIB, 8000 * MIB, 0});
    FOLLOW({1, 100 * MIB, 0, 8000 * MIB, 0}, {1, 0, 25 * MIB + 1, 8000 * MIB, 1});
}

/* Of 64 MiB in use a 32nd are 2 MiB; of a half of the time, 1 MiB. */
static void memory_that_falls_makes_passes_frequent(void **state) {
    (void)state;
    FOLLOW({2, 2 * MIB, 0, 64 * MIB, 0}, {1, MIB, 0, 64 * MIB, -1}, {1, MIB, 0, 64 * MIB, -2},
           {9, MIB, 0, 64 * MIB, -2}, {1, 0, 0, 64 * MIB, -2}, {1, 0, 0, 64 * MIB, -1},
           {1, 0, 0, 64 * MIB, 0}, {9, 0, 0, 64 * MIB, 0});
}

/* A service uses memory again as its load rises. When the load falls, that is long ago. */
static void memory_falls_after_it_was_used_again(void **state) {
    (void)state;
    FOLLOW({1, 20 * MIB, 0, 0, 0}, {1, 20 * MIB, 8 * MIB, 0, 1}, {1, 20 * MIB, 8 * MIB, 0, 2},
           {1, 2 * MIB, 0, 64 * MIB, 2}, {1, 2 * MIB, 0, 64 * MIB, 1}, {1, 2 * MIB, 0, 64 * MIB, 0},
           {2, MIB, 0, 64 * MIB, -2}, {1, 0, 0, 64 * MIB, -2}, {2, 0, 0, 64 * MIB, 0});
}

static void little_that_returns_is_no_fall(void **state) {
    (void)state;
    FOLLOW({9, 2 * MIB - 1, 0, 8 * MIB, 0});
    FOLLOW({9, 3 * MIB - 1, 0, 96 * MIB, 0});
    FOLLOW({3, 3 * MIB, 0, 96 * MIB, -1});
}

static void it_is_no_fall_if_it_is_used_again(void **state) {
    (void)state;
    FOLLOW({1, 32 * MIB, 0, 0, 0}, {3, 32 * MIB, 7 * MIB, 0, 0});
    FOLLOW({4, 32 * MIB, 0, 0, -2}, {1, 32 * MIB, 40 * MIB, 0, 1});
}

/* The marks of memory that was returned stay for four decay times, or end when it was too early. */
static void marks_end_after_four_decay_times(void **state) {
    (void)state;
    static const struct {
        int stretch;
        unsigned passes;
    } rows[] = {{0, 4}, {1, 2}, {2, 1}};
    for (size_t i = 0; i < 3; i++) {
        sy_pace pace = {0};
        for (unsigned pass = 1; pass <= 3 * rows[i].passes; pass++) {
            int stretch = rows[i].stretch;
            bool end = sy_pace_adapt(&pace, &stretch, 0, 0);
            assert_int_equal(end, pass % rows[i].passes == 0);
        }
    }
    sy_pace pace = {0};
    int stretch = 0;
    assert_true(sy_pace_adapt(&pace, &stretch, 8 * MIB, 0));
    assert_int_equal(pace.returned, 0);
}

static void times_are_stretched(void **state) {
    (void)state;
    assert_int_equal(sy_stretched(100, 2), 400);
    assert_int_equal(sy_stretched(100, 0), 100);
    assert_int_equal(sy_stretched(100, -2), 25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_returns_nothing_changes),
        cmocka_unit_test(memory_that_is_used_again_makes_passes_rare),
        cmocka_unit_test(little_that_is_used_again_does_not_matter),
        cmocka_unit_test(memory_that_falls_makes_passes_frequent),
        cmocka_unit_test(memory_falls_after_it_was_used_again),
        cmocka_unit_test(little_that_returns_is_no_fall),
        cmocka_unit_test(it_is_no_fall_if_it_is_used_again),
        cmocka_unit_test(marks_end_after_four_decay_times),
        cmocka_unit_test(times_are_stretched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
