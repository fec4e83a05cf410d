/*
 * test_glob.c: which names a pattern means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/glob.h"
#include "support/child.h"

static bool fits(const char *pattern, const char *name) {
    return sy_glob(pattern, strlen(pattern), name);
}

static void plain_text_means_itself(void **state) {
    (void)state;
    assert_true(fits("order", "order"));
    assert_true(fits("", ""));
    assert_false(fits("order", "orders"));
    assert_false(fits("orders", "order"));
    assert_false(fits("", "order"));
}

static void a_question_mark_is_one_character(void **state) {
    (void)state;
    assert_true(fits("o?der", "order"));
    assert_true(fits("???", "abc"));
    assert_false(fits("???", "ab"));
    assert_false(fits("?", ""));
}

static void a_star_is_any_text(void **state) {
    (void)state;
    assert_true(fits("*", ""));
    assert_true(fits("*", "order"));
    assert_true(fits("heap-*", "heap-64"));
    assert_true(fits("*-64", "heap-64"));
    assert_true(fits("a*b*c", "aXbXbc"));
    assert_true(fits("**", "order"));
    assert_true(fits("*a?c", "abcaac"));
    assert_false(fits("heap-*", "heap"));
    assert_false(fits("a*b*c", "aXcXb"));
}

static void only_the_given_length_is_the_pattern(void **state) {
    (void)state;
    assert_true(sy_glob("order+trade", 5, "order"));
    assert_false(sy_glob("order+trade", 6, "order"));
    assert_true(sy_glob("*+x", 1, "order"));
}

/* The definition itself, which takes as long as it takes. */
static bool slowly_fits(const char *pattern, const char *name) {
    if (!*pattern) return !*name;
    if (*pattern == '*')
        return slowly_fits(pattern + 1, name) || (*name && slowly_fits(pattern, name + 1));
    return *name && (*pattern == '?' || *pattern == *name) && slowly_fits(pattern + 1, name + 1);
}

static void random_text(uint64_t *state, const char *letters, char *text, size_t most) {
    size_t length = next_random(state) % (most + 1);
    for (size_t i = 0; i < length; i++) text[i] = letters[next_random(state) % strlen(letters)];
    text[length] = 0;
}

static void it_is_what_the_definition_says(void **state) {
    (void)state;
    uint64_t random = 1;
    char pattern[8], name[10];
    int fitting = 0;
    for (int i = 0; i < 200000; i++) {
        random_text(&random, "ab?**", pattern, sizeof pattern - 1);
        random_text(&random, "ab", name, sizeof name - 1);
        assert_int_equal(fits(pattern, name), slowly_fits(pattern, name));
        fitting += fits(pattern, name);
    }
    assert_in_range(fitting, 20000, 180000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_means_itself),
        cmocka_unit_test(a_question_mark_is_one_character),
        cmocka_unit_test(a_star_is_any_text),
        cmocka_unit_test(only_the_given_length_is_the_pattern),
        cmocka_unit_test(it_is_what_the_definition_says),
    };
    return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
