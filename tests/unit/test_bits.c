/*
 * test_bits.c: the functions of base/bits.h return the same as simple loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "support/child.h"

static void powers_of_two_are_told_from_the_rest(void **state) {
    (void)state;
    assert_false(sy_is_power_of_two(0));
    for (unsigned bit = 0; bit < 8 * sizeof(size_t); bit++) {
        assert_true(sy_is_power_of_two((size_t)1 << bit));
        if (bit > 0) assert_false(sy_is_power_of_two(((size_t)1 << bit) + 1));
        if (bit > 1) assert_false(sy_is_power_of_two(((size_t)1 << bit) - 1));
    }
}

static void rounding_finds_the_nearest_multiples(void **state) {
    (void)state;
    for (size_t unit = 1; unit <= 64; unit *= 2)
        for (size_t value = 0; value < 200; value++) {
            size_t down = value / unit * unit, up = down == value ? value : down + unit;
            assert_int_equal(sy_round_down(value, unit), down);
            assert_int_equal(sy_round_up(value, unit), up);
            assert_int_equal(sy_divide_up(value, unit), up / unit);
        }
    assert_int_equal(sy_divide_up(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
}

static void the_ends_of_a_word_are_found(void **state) {
    (void)state;
    for (unsigned low = 0; low < 64; low++)
        for (unsigned high = low; high < 64; high++) {
            uint64_t word = UINT64_C(1) << low | UINT64_C(1) << high;
            assert_int_equal(sy_lowest_bit(word), low);
            assert_int_equal(sy_highest_bit(word), high);
            assert_int_equal(sy_count_bits(word), 1 + (low != high));
        }
}

static void low_bits_of_a_whole_word_and_more_are_all(void **state) {
    (void)state;
    assert_int_equal(sy_low_bits(0), 0);
    assert_int_equal(sy_low_bits(1), 1);
    assert_int_equal(sy_low_bits(63), UINT64_MAX >> 1);
    assert_int_equal(sy_low_bits(64), UINT64_MAX);
    assert_int_equal(sy_low_bits(65), UINT64_MAX);
}

/* A word with long runs of equal bits: the union or the intersection of random words. */
static uint64_t some_word(uint64_t *random) {
    uint64_t a = next_random(random), b = next_random(random), c = next_random(random);
    return next_random(random) % 2 ? a | b | c : a & b;
}

static unsigned run_the_obvious_way(uint64_t word, unsigned length, unsigned align) {
    for (unsigned start = 0; start + length <= 64; start += align)
        if ((word >> start & sy_low_bits(length)) == sy_low_bits(length)) return start;
    return 64;
}

static void the_lowest_aligned_run_is_found(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 300; i++) {
        uint64_t word = i == 0 ? 0 : i == 1 ? UINT64_MAX : some_word(&random);
        for (unsigned length = 1; length <= 64; length++)
            for (unsigned align = 1; align <= 32; align *= 2)
                assert_int_equal(sy_find_run(word, length, align),
                                 run_the_obvious_way(word, length, align));
    }
}

static void the_longest_run_is_measured(void **state) {
    (void)state;
    uint64_t random = 2;
    assert_int_equal(sy_longest_run(0), 0);
    assert_int_equal(sy_longest_run(UINT64_MAX), 64);
    for (int i = 0; i < 300; i++) {
        uint64_t word = some_word(&random);
        unsigned longest = 0;
        for (unsigned bit = 0, run = 0; bit < 64; bit++) {
            run = word >> bit & 1 ? run + 1 : 0;
            if (run > longest) longest = run;
        }
        assert_int_equal(sy_longest_run(word), longest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_are_told_from_the_rest),
        cmocka_unit_test(rounding_finds_the_nearest_multiples),
        cmocka_unit_test(the_ends_of_a_word_are_found),
        cmocka_unit_test(low_bits_of_a_whole_word_and_more_are_all),
        cmocka_unit_test(the_lowest_aligned_run_is_found),
        cmocka_unit_test(the_longest_run_is_measured),
    };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
