/*
 * test_getters.c: what was set by a call or an option can be asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/heaps.h>
#include <slabyard/limit.h>
#include <slabyard/options.h>
#include <slabyard/reclaim.h>

#include "os/fake.h"
#include "support/child.h"

enum { MIB = 1 << 20 };

static void note(void *arg, size_t used, size_t soft) { (void)arg, (void)used, (void)soft; }

static void options_are_known_to_the_first_call_here(void *arg) {
    (void)arg;
    sy_limit limit;
    sy_fake_set_option("SLABYARD", "decay=7s,slack=40%,limit=64M");
    errno = 77;
    must(sy_get_decay() == 7000 && sy_get_slack() == 40 && errno == 77);
    must(sy_get_limit(&limit) == 0 && limit.hard == 64 * MIB && limit.soft == 0);
    must(sy_set_options("decay=off,slack=off,limit=off") == 0);
    must(sy_get_decay() == 0 && sy_get_slack() == 0);
    must(sy_get_limit(&limit) == 0 && limit.hard == 0);
}

static void options_are_known_to_the_first_call(void **state) {
    (void)state;
    assert_int_equal(in_child(options_are_known_to_the_first_call_here, NULL), 0);
}

static void without_a_start_here(void *arg) {
    (void)arg;
    sy_limit limit = {.hard = 5};
    sy_set_decay(20);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 0;
    must(sy_get_limit(&limit) == -1 && errno == ENOMEM && limit.hard == 5);
    errno = 77;
    must(sy_get_decay() == 20 && sy_get_slack() == 0 && errno == 77);
    sy_fake_reset();
    must(sy_get_limit(&limit) == 0 && limit.hard == 0);
}

static void without_a_start_there_are_no_options(void **state) {
    (void)state;
    assert_int_equal(in_child(without_a_start_here, NULL), 0);
}

static void the_limit_is_as_it_was_set(void **state) {
    (void)state;
    int arg;
    const sy_limit set = {.hard = 900 * MIB, .soft = 800 * MIB, .callback = note, .arg = &arg};
    sy_limit limit;
    memset(&limit, 0xa5, sizeof limit);
    assert_int_equal(sy_set_limit(&set), 0);
    assert_int_equal(sy_get_limit(&limit), 0);
    assert_int_equal(limit.hard, set.hard);
    assert_int_equal(limit.soft, set.soft);
    assert_true(limit.callback == note && limit.arg == &arg);
    assert_int_equal(sy_set_limit(&limit), 0); /* `reserved` is 0 */
    assert_int_equal(sy_set_limit(NULL), 0);
    assert_int_equal(sy_get_limit(&limit), 0);
    assert_true(!limit.hard && !limit.soft && !limit.callback && !limit.arg);
    errno = 0;
    assert_int_equal(sy_get_limit(NULL), -1);
    assert_int_equal(errno, EINVAL);
}

static void the_decay_time_is_as_it_was_set(void **state) {
    (void)state;
    sy_set_decay(1);
    assert_int_equal(sy_get_decay(), 1);
    sy_set_decay(0);
    assert_int_equal(sy_get_decay(), 0);
    sy_set_decay(UINT64_MAX);
    uint64_t most = sy_get_decay();
    assert_true(most > UINT64_C(1000) * 3600 * 24 * 365);
    sy_set_decay(most);
    assert_true(sy_get_decay() == most);
}

static void the_slack_is_as_it_was_set(void **state) {
    (void)state;
    assert_int_equal(sy_get_slack(), 0);
    sy_set_slack(25);
    assert_int_equal(sy_get_slack(), 25);
    sy_set_slack(0);
    assert_int_equal(sy_get_slack(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_known_to_the_first_call), /* first: the library starts in it */
        cmocka_unit_test(without_a_start_there_are_no_options),
        cmocka_unit_test(the_limit_is_as_it_was_set),
        cmocka_unit_test(the_decay_time_is_as_it_was_set),
        cmocka_unit_test(the_slack_is_as_it_was_set),
    };
    return cmocka_run_group_tests_name("getters", tests, NULL, NULL);
}
