/*
 * test_lookup.c: each address in the stacks of a report is looked up once, and as many stacks
 * together as there is room for. This program answers the lookups: it returns lines of as many
 * addresses as the test wants, besides those that are needed. symbols.c has a test of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/lookup.h"
#include "report/symbols.h"
#include "support/child.h"

static size_t questions, asked_count, needed_count, said_beyond;
static uintptr_t asked[SY_SYMBOLS_MAX];

void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep) {
    must(deep && count <= SY_SYMBOLS_MAX && needed <= count);
    questions++;
    asked_count = count;
    needed_count = needed;
    for (size_t i = 0; i < count; i++) asked[i] = (uintptr_t)addresses[i];
    size_t said = needed + said_beyond;
    symbols->count = said < count ? said : count;
}

/* The lines of address n are at `lines` + n, so the lines of each address differ. */
static const char lines[1 << 14];

const char *sy_symbols_lines(const sy_symbols *symbols, size_t index) {
    must(index < symbols->count);
    return lines + asked[index];
}

static int begin(void **state) {
    (void)state;
    questions = 0;
    said_beyond = SIZE_MAX / 2;
    sy_lookup_forget();
    return 0;
}

/* Stacks of three frames. The first differs, the other two are the same in all stacks. */
typedef struct stacks {
    size_t next, end;
    const void *frames[3];
} stacks;

static void set_frames(const void **frames, size_t stack) {
    frames[0] = (const void *)(stack + 1000);
    frames[1] = (const void *)7;
    frames[2] = NULL;
}

static bool next_stack(void *stacks_, const void *const **frames, size_t *depth) {
    stacks *later = stacks_;
    if (later->next == later->end) return false;
    set_frames(later->frames, later->next++);
    *frames = later->frames;
    *depth = 3;
    return true;
}

static void look_at(size_t stack, size_t end) {
    stacks later = {.next = stack + 1, .end = end};
    const void *frames[3];
    set_frames(frames, stack);
    sy_lookup_stack(frames, 3, true, next_stack, &later);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(sy_lookup_lines(frames[i]), lines + (uintptr_t)frames[i]);
}

static void one_question_is_for_all_stacks(void **state) {
    (void)state;
    for (size_t i = 0; i < 100; i++) look_at(i, 100);
    assert_int_equal(questions, 1);
    assert_int_equal(asked_count, 102);
    assert_int_equal(needed_count, 3);
}

static void what_has_no_room_is_asked_for_later(void **state) {
    (void)state;
    enum { ALL = 3 * SY_SYMBOLS_MAX };
    for (size_t i = 0; i < ALL; i++) look_at(i, ALL);
    assert_int_equal(questions, 4); /* each includes the two common frames */
    assert_in_range(asked_count, 3, SY_SYMBOLS_MAX);
}

/* As when the child dies, or has no more room for lines. */
static void what_was_not_said_is_asked_for_once_more(void **state) {
    (void)state;
    said_beyond = 9;
    for (size_t i = 0; i < 100; i++) look_at(i, 100);
    assert_int_equal(questions, 10);
    said_beyond = 0;
    for (size_t i = 0; i < 100; i++) look_at(i, 100);
    assert_int_equal(questions, 110);
}

static void a_stack_by_itself_asks_for_its_own_frames(void **state) {
    (void)state;
    const void *frames[] = {(void *)5, (void *)6, (void *)5};
    sy_lookup_stack(frames, 3, true, NULL, NULL);
    assert_int_equal(asked_count, 2);
    assert_int_equal(needed_count, 2);
    assert_null(sy_lookup_lines((void *)7));
    sy_lookup_stack(frames, 0, true, NULL, NULL);
    assert_int_equal(questions, 1);
}

static void a_stack_that_is_too_deep_is_cut(void **state) {
    (void)state;
    static const void *frames[SY_SYMBOLS_MAX + 1];
    for (size_t i = 0; i <= SY_SYMBOLS_MAX; i++) frames[i] = (const void *)(i + 1);
    sy_lookup_stack(frames, SY_SYMBOLS_MAX + 1, true, NULL, NULL);
    assert_int_equal(asked_count, SY_SYMBOLS_MAX);
    assert_non_null(sy_lookup_lines(frames[SY_SYMBOLS_MAX - 1]));
    assert_null(sy_lookup_lines(frames[SY_SYMBOLS_MAX]));
}

static void what_is_forgotten_is_asked_for_again(void **state) {
    (void)state;
    look_at(0, 1);
    sy_lookup_forget();
    assert_null(sy_lookup_lines((void *)7));
    look_at(0, 1);
    assert_int_equal(questions, 2);
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_question_is_for_all_stacks),
        TEST(what_has_no_room_is_asked_for_later),
        TEST(what_was_not_said_is_asked_for_once_more),
        TEST(a_stack_by_itself_asks_for_its_own_frames),
        TEST(a_stack_that_is_too_deep_is_cut),
        TEST(what_is_forgotten_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
