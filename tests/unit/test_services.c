/*
 * test_services.c: what programs are told of the services that a platform has (debug/services.c),
 * and that what needs another one is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/audit.h>
#include <slabyard/cache.h>
#include <slabyard/heaps.h>
#include <slabyard/options.h>
#include <slabyard/reclaim.h>

#include "debug/options.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/services.h"

static void each_service_has_a_name(void **state) {
    (void)state;
    assert_int_equal(sy_platform_has("free-addresses"), has_all(SY_OS_FREE_ADDRESSES));
    assert_int_equal(sy_platform_has("guards"), has_all(SY_OS_GUARDS));
    assert_int_equal(sy_platform_has("threads"), has_all(SY_OS_THREADS));
    assert_int_equal(sy_platform_has("detectors"), has_all(SY_OS_DETECTORS));
}

static void others_are_unknown(void **state) {
    (void)state;
    const char *const names[] = {"", "guard", "guardss", NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        errno = 0;
        assert_int_equal(sy_platform_has(names[i]), -1);
        assert_int_equal(errno, EINVAL);
    }
}

static int visit_leak(void *arg, const sy_leak *leak) {
    (void)arg, (void)leak;
    return 0;
}

static void calls_fail_without_their_service(void **state) {
    (void)state;
    errno = 0;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .flags = SY_GUARD});
    assert_int_equal(cache ? 0 : errno, has_all(SY_OS_GUARDS) ? 0 : ENOTSUP);
    assert_int_equal(sy_cache_destroy(cache), 0);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.flags = SY_LOCKED});
    assert_int_equal(heap ? 0 : errno, has_all(SY_OS_LOCKS) ? 0 : ENOTSUP);
    if (heap) assert_int_equal(sy_heap_destroy(heap), 0);
    if (!has_all(SY_OS_BACKGROUND)) {
        assert_int_equal(sy_maintenance_start(), -1);
        assert_int_equal(errno, ENOTSUP);
    }
    if (!has_all(SY_OS_COPIES)) {
        assert_int_equal(sy_leak_each(NULL, SY_LEAKS_UNREACHABLE, visit_leak, NULL), -1);
        assert_int_equal(errno, ENOTSUP);
    }
}

typedef struct need {
    const char *option, *value, *initial;
    unsigned service;
} need;

static const need needs_of[] = {
    {"guard", "1/10", "off", SY_OS_GUARDS},     {"sample", "1/10", "off", SY_OS_GUARDS},
    {"lock", "yes", "no", SY_OS_LOCKS},         {"explain", "yes", "auto", SY_OS_ACCESSES},
    {"unwind", "frames", "auto", SY_OS_STACKS}, {"leaks", "unreachable", "off", SY_OS_COPIES},
    {"huge", "64M", "128M", SY_OS_HUGE_PAGES},
};

static void options_are_refused_without_their_service(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof needs_of / sizeof *needs_of; i++) {
        const need *it = &needs_of[i];
        char text[80], value[80];
        snprintf(text, sizeof text, "stats=yes,%s=%s,stats=no", it->option, it->value);
        errno = 0;
        int said = sy_set_options(text);
        assert_int_equal(said ? errno : 0, has_all(it->service) ? 0 : ENOTSUP);
        if (said) {
            assert_true(sy_get_option(it->option, value, sizeof value) > 0);
            assert_string_equal(value, it->initial);
        }
        snprintf(text, sizeof text, "%s=%s", it->option, it->initial);
        assert_int_equal(sy_set_options(text), 0); /* as it is anyway */
    }
}

static void load(void *text) {
    sy_fake_set_option("SLABYARD", text);
    sy_options_load();
}

static void the_start_says_what_the_platform_lacks(void **state) {
    (void)state;
    if (has_all(SY_OS_GUARDS)) skip();
    sy_fake_catch(load, "guard=all,check,help");
    assert_non_null(strstr(sy_fake_written(), "option \"guard\" cannot be set (SLABYARD), this "
                                              "platform lacks guard pages\n"));
    assert_non_null(strstr(sy_fake_written(), "Not on this platform, which lacks guard pages.\n"));
    char value[8];
    assert_true(sy_get_option("check", value, sizeof value) > 0);
    assert_string_equal(value, "yes");
}

static void the_library_has_the_version_of_its_headers(void **state) {
    (void)state;
    assert_int_equal(sy_version(), SY_VERSION);
    assert_in_range(SY_VERSION, SY_VERSION_MAJOR * 10000, SY_VERSION_MAJOR * 10000 + 9999);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_says_what_the_platform_lacks), /* before the options are read */
        cmocka_unit_test(each_service_has_a_name),
        cmocka_unit_test(the_library_has_the_version_of_its_headers),
        cmocka_unit_test(others_are_unknown),
        cmocka_unit_test(calls_fail_without_their_service),
        cmocka_unit_test(options_are_refused_without_their_service),
    };
    return cmocka_run_group_tests_name("services", tests, NULL, NULL);
}
