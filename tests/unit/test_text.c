/*
 * test_text.c: text put together without allocating.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void assert_text(const sy_text *text, const char *expected) {
    assert_int_equal(text->length, strlen(expected));
    assert_memory_equal(text->bytes, expected, text->length);
}

static void pieces_follow_one_another(void **state) {
    (void)state;
    sy_text text = {.length = 0};
    sy_text_add(&text, "size ");
    sy_text_add_number(&text, 4096);
    sy_text_add(&text, "");
    sy_text_add(&text, " at ");
    sy_text_add_hex(&text, 0xdeadbeef);
    assert_text(&text, "size 4096 at 0xdeadbeef");
}

static void numbers_at_the_ends_of_their_range(void **state) {
    (void)state;
    sy_text text = {.length = 0};
    sy_text_add_number(&text, 0);
    sy_text_add(&text, " ");
    sy_text_add_number(&text, UINT64_MAX);
    sy_text_add(&text, " ");
    sy_text_add_hex(&text, 0);
    sy_text_add(&text, " ");
    sy_text_add_hex(&text, UINT64_MAX);
    sy_text_add(&text, " ");
    sy_text_add_in_base(&text, 10, 2);
    assert_text(&text, "0 18446744073709551615 0x0 0xffffffffffffffff 1010");
}

static void what_does_not_fit_is_cut_off(void **state) {
    (void)state;
    struct {
        sy_text text;
        char guard;
    } it = {.text.length = 0, .guard = 'g'};
    for (int i = 0; i < 100; i++) sy_text_add(&it.text, "0123456789");
    sy_text_add_number(&it.text, 123);
    assert_int_equal(it.text.length, SY_TEXT_MAX);
    assert_int_equal(it.text.bytes[SY_TEXT_MAX - 1], '0' + (SY_TEXT_MAX - 1) % 10);
    assert_int_equal(it.guard, 'g');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_one_another),
        cmocka_unit_test(numbers_at_the_ends_of_their_range),
        cmocka_unit_test(what_does_not_fit_is_cut_off),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
