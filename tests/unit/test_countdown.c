/*
 * test_countdown.c: the count of allocations up to the next sample (magazine/countdown.h). Each
 * allocation is sampled by the same chance: the first one, those after a count that ended early,
 * and those after a change of the settings. Random numbers have a fixed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "debug/interval.h"
#include "magazine/countdown.h"

enum { TAG = 5, OTHER_TAG = 6, MANY = 1000000 };

/* One allocation, as the inline code and its slow path count it: whether it is sampled. */
static bool next_is_sampled(int32_t *word, int32_t tag, double chance, int32_t most) {
    *word -= SY_COUNTDOWN_ONE;
    return *word < 0 && sy_countdown_end(word, tag, chance, most);
}

static int begin(void **state) {
    (void)state;
    sy_interval_seed(42);
    return 0;
}

static void assert_near(double found, double wanted) {
    assert_true(found > wanted * 0.97 && found < wanted * 1.03);
}

/* `most`: after so many allocations a count ends early, which must not change the chance. */
static void each_allocation_has_the_chance(void **state) {
    static const double chances[] = {0.9, 0.5, 0.1, 0.02};
    static const int32_t mosts[] = {1, 3, 20, SY_COUNTDOWN_MAX - 1};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            int32_t word = 0;
            double samples = 0;
            for (int n = 0; n < MANY; n++)
                samples += next_is_sampled(&word, TAG, chances[i], mosts[j]);
            assert_near(samples / MANY, chances[i]);
        }
}

static void the_first_allocation_has_the_chance_too(void **state) {
    (void)state;
    double samples = 0;
    for (int n = 0; n < MANY; n++) {
        int32_t word = 0;
        samples += next_is_sampled(&word, TAG, 0.25, 100);
    }
    assert_near(samples / MANY, 0.25);
}

static void the_second_allocation_has_the_chance_too(void **state) {
    (void)state;
    double samples = 0;
    for (int n = 0; n < MANY; n++) {
        int32_t word = 0;
        next_is_sampled(&word, TAG, 0.25, 100);
        samples += next_is_sampled(&word, TAG, 0.25, 100);
    }
    assert_near(samples / MANY, 0.25);
}

/* A count that other settings have begun is no count up to a sample. */
static void a_count_of_other_settings_samples_nothing(void **state) {
    (void)state;
    double samples = 0;
    for (int n = 0; n < MANY; n++) {
        int32_t word = OTHER_TAG;
        samples += next_is_sampled(&word, TAG, 0.25, 100);
    }
    assert_near(samples / MANY, 0.25);
}

static void all_or_none_are_sampled(void **state) {
    (void)state;
    int32_t all = 0, none = 0;
    for (int n = 0; n < 1000; n++) {
        assert_true(next_is_sampled(&all, TAG, 1, 100));
        assert_false(next_is_sampled(&none, TAG, 0, 100));
    }
    none = TAG;
    assert_false(next_is_sampled(&none, TAG, 0, 100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_allocation_has_the_chance, begin),
        cmocka_unit_test_setup(the_first_allocation_has_the_chance_too, begin),
        cmocka_unit_test_setup(the_second_allocation_has_the_chance_too, begin),
        cmocka_unit_test_setup(a_count_of_other_settings_samples_nothing, begin),
        cmocka_unit_test_setup(all_or_none_are_sampled, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
