/*
 * test_fail.c: which allocations and calls are made to fail, and that no others are. The tests call
 * the deciding function directly, not through the functions of caches and heaps.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/fail.h>
#include <slabyard/heap.h>
#include <slabyard/options.h>

#include "debug/fail.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"

enum { ASKED_MAX = 64 };

static const char *asked_cache;
static int asked_times;

static void ask_often(void *arg) {
    char *answers = arg;
    for (int i = 0; i < asked_times; i++) answers[i] = sy_fail_due(asked_cache, 64) ? 'x' : '.';
}

/* Asks once for each sign of `answers`: x for an allocation that has to fail, . for others. */
static void expect(const char *cache, const char *answers) {
    char got[ASKED_MAX + 1] = "";
    asked_cache = cache;
    asked_times = (int)strlen(answers);
    must(asked_times <= ASKED_MAX);
    assert_false(sy_fake_catch(ask_often, got));
    assert_string_equal(got, answers);
}

static void set(const char *specification) { assert_int_equal(sy_set_failures(specification), 0); }

/* ---- which allocation of a sequence ---- */

static void the_nth_fails_once(void **state) {
    (void)state;
    set("order:3");
    expect("order", "..x....");
    set("order:1");
    expect("order", "x...");
}

static void each_nth_fails(void **state) {
    (void)state;
    set("order:every:3");
    expect("order", "..x..x..x.");
    set("order:every:1");
    expect("order", "xxx");
}

static void those_that_are_larger_fail(void **state) {
    (void)state;
    set("order:size>64");
    assert_false(sy_fail_due("order", 64));
    assert_true(sy_fail_due("order", 65));
    assert_false(sy_fail_due("trade", 65));
    set("size>0");
    assert_false(sy_fail_due("trade", 0));
    assert_true(sy_fail_due("trade", 1));
}

static void ask_for_sequence(const char *specification, char *answers) {
    set(specification);
    asked_cache = "order";
    asked_times = ASKED_MAX;
    assert_false(sy_fake_catch(ask_often, answers));
}

static void chance_is_repeated_for_the_same_seed(void **state) {
    (void)state;
    char first[ASKED_MAX], second[ASKED_MAX], other[ASKED_MAX];
    ask_for_sequence("random:0.5:7", first);
    ask_for_sequence("random:.5:7", second);
    ask_for_sequence("order:random:0.500000000:8", other);
    assert_memory_equal(first, second, ASKED_MAX);
    assert_memory_not_equal(first, other, ASKED_MAX);
}

static void ask_silently(void *arg) {
    int *due = arg;
    for (int i = 0; i < asked_times; i++) *due += sy_fail_due("order", 64);
}

static int count_due(const char *specification, int times) {
    int due = 0;
    set(specification);
    asked_times = times;
    assert_false(sy_fake_catch(ask_silently, &due));
    return due;
}

/* Within six standard deviations of the expected number; the sequence is also a fixed one. */
static void chance_is_as_great_as_said(void **state) {
    (void)state;
    assert_in_range(count_due("random:0.01:1", 100000), 1000 - 6 * 32, 1000 + 6 * 32);
    assert_in_range(count_due("random:0.5:1", 100000), 50000 - 6 * 159, 50000 + 6 * 159);
    assert_int_equal(count_due("random:1:1", 1000), 1000);
    assert_int_equal(count_due("random:0.000000001:1", 1000), 0);
}

/* ---- which allocations ---- */

static void others_are_not_counted(void **state) {
    (void)state;
    set("order:2");
    expect("orders", "...");
    expect("orde", "...");
    expect("order", ".");
    expect("", "...");
    expect("order", "x.");
}

static void without_a_name_all_are_counted(void **state) {
    (void)state;
    const char *same[] = {"3", "*:3"};
    for (size_t i = 0; i < 2; i++) {
        set(same[i]);
        expect("order", ".");
        expect("trade", ".");
        expect("heap-64", "x.");
    }
    set("every:2");
    expect("order", ".x.");
    expect("trade", "x.");
}

static void patterns_stand_for_names(void **state) {
    (void)state;
    set("heap-*:every:1");
    expect("heap-64", "x");
    expect("heap-", "x");
    expect("heap", ".");
    set("*order?:every:1");
    expect("order", ".");
    expect("orders", "x");
    expect("order order1", "x");
    expect("order order", ".");
    set("order|tr*|x:every:1");
    expect("order", "x");
    expect("trade", "x");
    expect("x", "x");
    expect("order|tr", ".");
    expect("", ".");
}

static void names_may_have_colons(void **state) {
    (void)state;
    set("std::list:2");
    expect("list", "..");
    expect("std::list", ".x.");
    set("std::list:every:2");
    expect("std::list", ".x.x");
}

/* ---- several rules ---- */

static void each_rule_counts_for_itself(void **state) {
    (void)state;
    set("order:2+*:2+trade:every:2");
    expect("order", ".x.");
    expect("trade", ".x.x");
    set("2+5");
    expect("order", ".x..x.");
    set("5+2");
    expect("order", ".x..x.");
}

static void setting_begins_anew(void **state) {
    (void)state;
    set("order:3");
    expect("order", "..");
    set("order:3");
    expect("order", "..x");
    assert_int_equal(sy_failures(), 1);
    set("trade:1");
    assert_int_equal(sy_failures(), 0);
    expect("order", "...");
    set(NULL);
    expect("trade", "..");
    set("trade:1");
    set("");
    expect("trade", "..");
}

static void failures_are_counted(void **state) {
    (void)state;
    set("order:every:2+os:populate:every:1");
    expect("order", ".x.x.");
    assert_int_equal(sy_failures(), 2);
}

/* ---- what is reported ---- */

static void ask_for_two(void *arg) {
    (void)arg;
    sy_fail_due("order", 64);
    sy_fail_due("heap", 200000);
}

static void a_failure_is_told(void **state) {
    (void)state;
    set("every:1");
    assert_false(sy_fake_catch(ask_for_two, NULL));
    assert_string_equal(sy_fake_written(),
                        "slabyard: made allocation 1 of cache \"order\" (64 bytes) fail\n"
                        "slabyard: made allocation 2 of cache \"heap\" (200000 bytes) fail\n");
}

static void ask_for_trade_and_order(void *arg) {
    (void)arg;
    sy_fail_due("trade", 64);
    sy_fail_due("order", 64);
}

static void the_first_rule_is_the_one_that_is_told(void **state) {
    (void)state;
    set("2+*:every:1+order:every:1");
    assert_false(sy_fake_catch(ask_for_trade_and_order, NULL));
    assert_string_equal(sy_fake_written(),
                        "slabyard: made allocation 1 of cache \"trade\" (64 bytes) fail\n"
                        "slabyard: made allocation 2 of cache \"order\" (64 bytes) fail\n");
    assert_int_equal(sy_failures(), 2);
}

static void nothing_else_is_told(void **state) {
    (void)state;
    set("trade:1");
    assert_false(sy_fake_catch(ask_for_two, NULL));
    assert_string_equal(sy_fake_written(), "");
}

static void ask_with_errno(void *arg) {
    (void)arg;
    errno = 4321;
    must(!sy_fail_due("order", 64) && errno == 4321);
    must(sy_fail_due("order", 64) && errno == ENOMEM);
}

static void errno_is_enomem_or_kept(void **state) {
    (void)state;
    set("order:2");
    assert_false(sy_fake_catch(ask_with_errno, NULL));
}

/* ---- which functions call the deciding function ---- */

static void wanted_are_those_that_a_rule_names(void **state) {
    (void)state;
    assert_false(sy_fail_wants("order"));
    set("order:3+heap-*:size>100");
    assert_true(sy_fail_wants("order"));
    assert_true(sy_fail_wants("heap-64"));
    assert_false(sy_fail_wants("heap"));
    set("os:*:3");
    assert_false(sy_fail_wants("commit"));
    set("random:0.5:1");
    assert_true(sy_fail_wants("order"));
}

/* A rule whose count has passed still applies to its cache until it is replaced. */
static void wanted_does_not_end_with_the_failure(void **state) {
    (void)state;
    set("order:1");
    expect("order", "x.");
    assert_true(sy_fail_wants("order"));
}

/* The flag that these functions read first. */
static void armed_is_what_has_rules_for_allocations(void **state) {
    (void)state;
    assert_false(sy_fail_armed);
    set("os:commit:3");
    assert_false(sy_fail_armed);
    set("os:commit:3+order:3");
    assert_true(sy_fail_armed);
    set(NULL);
    assert_false(sy_fail_armed);
}

/* ---- calls to the system ---- */

static void do_nothing(void) {}

static const sy_os_background idle = {.body = do_nothing, .name = "idle"};
static uintptr_t reader;
static void hook(void *arg) { (void)arg; }

static int fails(const void *result) { return result ? 0 : -1; }

/* Makes the call on two committed pages. */
static int make_call(const char *call, char *start) {
    size_t page = sy_os_page_size();
    if (strcmp(call, "reserve") == 0) return fails(sy_os_reserve(page, page, NULL));
    if (strcmp(call, "commit") == 0) return sy_os_commit(start, page);
    if (strcmp(call, "populate") == 0) return sy_os_populate(start, page);
    if (strcmp(call, "discard") == 0) return sy_os_discard(start, page);
    if (strcmp(call, "move") == 0) {
        bool lost;
        if (sy_os_move(start, start + page, page, &lost) == page) return 0;
        errno = ENOMEM; /* it leaves errno as it was */
        return -1;
    }
    if (strcmp(call, "decommit") == 0) return sy_os_decommit(start, page);
    if (strcmp(call, "release") == 0) return sy_os_release(start, page);
    if (strcmp(call, "huge") == 0) return sy_os_huge(start, page, true);
    if (strcmp(call, "guard") == 0) return sy_os_guard(start, page, true);
    if (strcmp(call, "start_thread") == 0) return sy_os_start_thread(&idle);
    if (strcmp(call, "start_reader") == 0) return sy_os_start_reader(&idle, &reader);
    if (strcmp(call, "at_thread_exit") == 0) return sy_os_at_thread_exit(hook, NULL);
    must(strcmp(call, "at_fork") == 0);
    return sy_os_at_fork(NULL, NULL, NULL);
}

typedef struct called {
    const char *call;
    char *start;
} called;

static void make_it_fail(void *arg) {
    const called *it = arg;
    errno = 0;
    must(make_call(it->call, it->start) == -1);
    must(errno == ENOMEM);
}

static void each_call_can_be_made_to_fail(void **state) {
    (void)state;
    size_t page = sy_os_page_size();
    for (const char *const *call = sy_os_calls; *call; call++) {
        char specification[64], told[128];
        called it = {*call, sy_os_reserve(2 * page, page, NULL)};
        must(it.start && sy_os_commit(it.start, 2 * page) == 0);
        it.start[0] = 17;
        snprintf(specification, sizeof specification, "os:%s:1", *call);
        snprintf(told, sizeof told, "slabyard: made call 1 of sy_os_%s fail\n", *call);
        sy_fake_reset();
        size_t reserved = sy_fake_reserved();
        set(specification);
        assert_false(sy_fake_catch(make_it_fail, &it));
        assert_string_equal(sy_fake_written(), told);
        assert_int_equal(sy_fake_reserved(), reserved);
        assert_int_equal(it.start[0], 17);
        assert_int_equal(sy_failures(), 1);
        set(NULL);
        sy_os_release(it.start, 2 * page);
    }
}

static void ask_system(void *arg) {
    char *answers = arg, *start = sy_os_reserve(sy_os_page_size(), sy_os_page_size(), NULL);
    for (int i = 0; i < asked_times; i++)
        answers[i] = sy_os_commit(start, sy_os_page_size()) == 0 ? '.' : 'x';
    sy_os_release(start, sy_os_page_size());
}

static void calls_are_counted_as_allocations_are(void **state) {
    (void)state;
    const char *rules[][2] = {{"os:commit:2", ".x.."},
                              {"os:commit:every:2", ".x.x"},
                              {"os:c*:3", "..x."},
                              {"os:discard|commit:1", "x..."},
                              {"os:commit:random:1:9", "xxxx"},
                              {"os:discard:1", "...."},
                              {"*:every:1", "...."}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char answers[5] = "";
        asked_times = 4;
        set(rules[i][0]);
        assert_false(sy_fake_catch(ask_system, answers));
        assert_string_equal(answers, rules[i][1]);
    }
}

static void allocate_twice(void *arg) {
    (void)arg;
    errno = 0;
    must(!sy_malloc(100) && errno == ENOMEM);
    must(sy_failures() > 0);
    must(sy_set_failures(NULL) == 0);
    void *object = sy_malloc(100);
    must(object);
    sy_free(object);
}

static void fail_each_reserve(void *arg) {
    (void)arg;
    must(sy_set_failures("os:reserve:every:1") == 0);
    must(!sy_fake_catch(allocate_twice, NULL));
}

/* In a child, where the library has not started. */
static void the_library_asks_the_system_as_ever(void **state) {
    (void)state;
    assert_int_equal(in_child(fail_each_reserve, NULL), 0);
}

/* ---- threads, fork ---- */

enum { THREADS = 4, TURNS = 10000 };

static void *ask_in_turns(void *arg) {
    uintptr_t due = 0;
    (void)arg;
    for (int i = 0; i < TURNS; i++) due += sy_fail_due("order", 64);
    return (void *)due;
}

static void ask_in_threads(void *arg) {
    uintptr_t *due = arg;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, ask_in_turns, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *one;
        must(pthread_join(threads[i], &one) == 0);
        *due += (uintptr_t)one;
    }
}

static void threads_count_together(void **state) {
    (void)state;
    const struct {
        const char *specification;
        uintptr_t due;
    } cases[] = {{"order:20000", 1}, {"order:every:10000", THREADS * TURNS / 10000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uintptr_t due = 0;
        set(cases[i].specification);
        assert_false(sy_fake_catch(ask_in_threads, &due));
        assert_int_equal(due, cases[i].due);
        assert_int_equal(sy_failures(), cases[i].due);
    }
}

static _Atomic bool over;

static void *set_often(void *arg) {
    while (!over) must(sy_set_failures("order:every:2+trade:5") == 0);
    return arg;
}

static void set_once(void *arg) {
    (void)arg;
    must(sy_set_failures("trade:1") == 0);
    must(sy_failures() == 0);
}

static void start_library(void) { sy_free(sy_malloc(1)); }

/* Another thread is changing the rules at the moment of the fork. */
static void a_child_can_set_its_own(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t thread;
    start_library();
    over = false;
    must(pthread_create(&thread, NULL, set_often, NULL) == 0);
    for (int i = 0; i < 50; i++) assert_int_equal(in_child(set_once, NULL), 0);
    over = true;
    must(pthread_join(thread, NULL) == 0);
}

static void ask_on(void *arg) {
    char *answers = arg;
    must(!sy_fake_catch(ask_often, answers));
    must(strcmp(answers, ".x..") == 0);
    must(sy_failures() == 1);
}

static void a_child_counts_on(void **state) {
    (void)state;
    char answers[ASKED_MAX] = "";
    set("order:4");
    expect("order", "..");
    asked_times = 4;
    assert_int_equal(in_child(ask_on, answers), 0);
    expect("order", ".x.");
}

/* ---- the option ---- */

static void start_with_option(void *arg) {
    sy_fake_set_option("SLABYARD", arg);
    start_library();
}

static void expect_in_child(void (*body)(void *), const char *option) {
    char text[128];
    snprintf(text, sizeof text, "%s", option);
    assert_int_equal(in_child(body, text), 0);
}

static void count_by_option(void *arg) {
    start_with_option(arg);
    must(!sy_fail_due("order", 64) && !sy_fail_due("trade", 64));
    must(!sy_fake_catch(ask_with_errno, NULL));
}

static void the_environment_is_heard(void **state) {
    (void)state;
    expect_in_child(count_by_option, "fail=order:3");
}

static void fail_at_start(void *arg) {
    sy_fake_set_option("SLABYARD", arg);
    must(!sy_fake_catch(allocate_twice, NULL));
}

static void calls_of_the_start_are_counted(void **state) {
    (void)state;
    expect_in_child(fail_at_start, "fail=os:reserve:every:1");
}

static void set_options_often(void *arg) {
    start_with_option(arg);
    must(sy_set_options("fail=order:1") == 0);
    must(sy_fail_wants("order") && !sy_fail_wants("trade"));
    must(sy_set_options("check") == 0 && sy_fail_wants("order"));
    errno = 0;
    must(sy_set_options("fail=order:0") == -1 && errno == EINVAL && sy_fail_wants("order"));
    must(sy_set_options("fail=off") == 0 && !sy_fail_wants("order"));
}

static void options_can_be_set_by_call(void **state) {
    (void)state;
    expect_in_child(set_options_often, "fail=trade:1");
}

static void set_before_start(void *arg) {
    sy_fake_set_option("SLABYARD", arg);
    must(sy_set_failures("order:1") == 0);
    start_library();
    must(sy_fail_wants("order") && !sy_fail_wants("trade"));
}

static void what_is_said_later_holds(void **state) {
    (void)state;
    expect_in_child(set_before_start, "fail=trade:1");
}

static void tell_a_file(void *arg) {
    char told[256] = "";
    const char *path = strchr(arg, '/');
    start_with_option(arg);
    must(!sy_fake_catch(ask_for_two, NULL));
    must(strcmp(sy_fake_written(), "") == 0);
    FILE *file = fopen(path, "r");
    must(file && fread(told, 1, sizeof told - 1, file) > 0 && fclose(file) == 0);
    must(strcmp(told, "slabyard: made allocation 1 of cache \"order\" (64 bytes) fail\n"
                      "slabyard: made allocation 1 of cache \"heap\" (200000 bytes) fail\n") == 0);
}

static void failures_are_told_where_reports_go(void **state) {
    (void)state;
    char option[128], path[] = "/tmp/test_fail_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(option, sizeof option, "fail=order:1+heap:1,report=%s", path);
    expect_in_child(tell_a_file, option);
    unlink(path);
}

/* ---- specifications ---- */

static void what_is_no_specification_changes_nothing(void **state) {
    (void)state;
    const char *wrong[] = {"order",
                           "order:",
                           ":3",
                           "order:0",
                           "0",
                           "order:x",
                           "order:-1",
                           "order: 1",
                           "order:3x",
                           "18446744073709551617",
                           "size>18446744073709551616",
                           "99999999999999999999999",
                           "every:0",
                           "every:",
                           "every",
                           "random:7",
                           "order:random:7",
                           "random:0.5",
                           "random:0:7",
                           "random:0.0:7",
                           "random:1.1:7",
                           "random:2:7",
                           "random:18446744074:7", /* in billionths, 290448384 beyond 2^64 */
                           "random:1.000000001:7",
                           "random:0.0000000001:7",
                           "random:x:7",
                           "random:.:7",
                           "random:1.:7",
                           "random:0.5.5:7",
                           "random::7",
                           "random:0.5:x",
                           "size>",
                           "size>x",
                           "size>-1",
                           "os:3",
                           "os::3",
                           "os:every:3",
                           "os:random:0.5:3",
                           "os:mmap:3",
                           "os:commit",
                           "os:commit:0",
                           "os:commit:size>3",
                           "+",
                           "order:1+",
                           "+order:1",
                           "order:1++trade:1",
                           "order:1+trade"};
    set("order:3");
    expect("order", ".");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        if (sy_set_failures(wrong[i]) != -1) fail_msg("\"%s\" is taken", wrong[i]);
        assert_int_equal(errno, EINVAL);
        assert_false(sy_fail_valid(wrong[i]));
    }
    expect("order", ".x.");
}

static void what_is_one_is_taken(void **state) {
    (void)state;
    const char *right[] = {"",
                           "1",
                           "18446744073709551615",
                           "order:1",
                           "every:1",
                           "a:every:1",
                           "random:1:0",
                           "random:1.0:0",
                           "a:b:random:0.000000001:18446744073709551615",
                           "size>0",
                           "order:size>18446744073709551615",
                           "os:commit:1",
                           "os:*:every:2",
                           "os:start_thread:random:.1:2",
                           "order:1+os:commit:2+size>3"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(sy_fail_valid(right[i]));
        if (sy_set_failures(right[i]) != 0) fail_msg("\"%s\" is not taken", right[i]);
    }
}

static void a_specification_has_at_most_255_bytes(void **state) {
    (void)state;
    char text[258];
    memset(text, 'a', sizeof text);
    memcpy(text + 253, ":1", 3);
    set(text);
    memcpy(text + 253, "a:1", 4);
    assert_int_equal(sy_set_failures(text), -1);
    assert_int_equal(errno, EINVAL);
}

static void a_specification_has_at_most_16_rules(void **state) {
    (void)state;
    const char *many = "1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17";
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)strlen(many) - 3, many);
    set(text);
    expect("order", "xxxxxxxxxxxxxxxx.");
    assert_int_equal(sy_set_failures(many), -1);
    assert_int_equal(errno, EINVAL);
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    return sy_set_failures(NULL);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        /* In children, in which the options have not been read yet. */
        cmocka_unit_test(the_environment_is_heard),
        cmocka_unit_test(calls_of_the_start_are_counted),
        cmocka_unit_test(options_can_be_set_by_call),
        cmocka_unit_test(what_is_said_later_holds),
        cmocka_unit_test(failures_are_told_where_reports_go),
        TEST(the_library_asks_the_system_as_ever),
        TEST(the_nth_fails_once),
        TEST(each_nth_fails),
        TEST(those_that_are_larger_fail),
        TEST(chance_is_repeated_for_the_same_seed),
        TEST(chance_is_as_great_as_said),
        TEST(others_are_not_counted),
        TEST(without_a_name_all_are_counted),
        TEST(patterns_stand_for_names),
        TEST(names_may_have_colons),
        TEST(each_rule_counts_for_itself),
        TEST(setting_begins_anew),
        TEST(failures_are_counted),
        TEST(a_failure_is_told),
        TEST(the_first_rule_is_the_one_that_is_told),
        TEST(nothing_else_is_told),
        TEST(errno_is_enomem_or_kept),
        TEST(wanted_are_those_that_a_rule_names),
        TEST(wanted_does_not_end_with_the_failure),
        TEST(armed_is_what_has_rules_for_allocations),
        TEST(each_call_can_be_made_to_fail),
        TEST(calls_are_counted_as_allocations_are),
        TEST(threads_count_together),
        TEST(a_child_can_set_its_own),
        TEST(a_child_counts_on),
        TEST(what_is_no_specification_changes_nothing),
        TEST(what_is_one_is_taken),
        TEST(a_specification_has_at_most_255_bytes),
        TEST(a_specification_has_at_most_16_rules),
    };
    return cmocka_run_group_tests_name("fail", tests, NULL, NULL);
}
