/*
 * test_tools.c: the messages to AddressSanitizer, byte by byte, in the builds that have it. Other
 * builds send none. The reports are in tests/tools.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "cache/watched.h"
#include "debug/options.h"
#include "debug/tools.h"
#include "debug/watch.h"
#include "pool/checked.h"

extern __attribute__((weak)) int __asan_address_is_poisoned(const volatile void *address);

static bool hidden(const void *address) { return __asan_address_is_poisoned(address); }

static bool all(const char *start, size_t bytes, bool wanted) {
    for (size_t i = 0; i < bytes; i++)
        if (hidden(start + i) != wanted) return false;
    return true;
}

static int begin(void **state) {
    (void)state;
    assert_int_equal(sy_set_options("tools=auto"), 0);
    return 0;
}

static sy_cache *make(size_t size, unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "told", .size = size, .flags = flags});
    assert_non_null(cache);
    return cache;
}

/* ---- without a tool, or with messages off ---- */

static void the_option_decides(void **state) {
    (void)state;
    bool asan = sy_tool_present() == SY_TOOL_ASAN;
    unsigned brought = SY_TOLD | SY_CHECKED | SY_QUARANTINE | SY_AUDIT;
    assert_int_equal(sy_set_options("tools=off"), 0);
    assert_int_equal(sy_watch_checks(0, "any", true), 0);
    assert_int_equal(sy_watch_checks(SY_GUARD, "any", true), SY_GUARD);
    assert_int_equal(sy_set_options("tools=auto"), 0);
    assert_int_equal(sy_watch_checks(0, "any", true), asan ? brought : 0);
    assert_int_equal(sy_watch_checks(SY_GUARD, "any", true), asan ? brought : SY_GUARD);
    assert_int_equal(sy_set_options("tools=malloc"), 0);
    assert_int_equal(sy_watch_checks(SY_POISON, "any", true), SY_PASSED | SY_CHECKED);
    assert_int_equal(sy_watch_checks(0, "any", false), asan ? brought : 0);
}

static void pools_are_not_told_of(void **state) {
    (void)state;
    assert_int_equal(sy_set_options("tools=auto"), 0);
    assert_int_equal(sy_watch_untold(SY_GUARD, "any"), SY_GUARD);
    assert_int_equal(sy_watch_untold(SY_POISON, "any"), SY_POISON | SY_CHECKED);
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 40});
    assert_false(sy_pool_is_checked(pool));
    sy_pool_destroy(pool);
}

static void a_plain_build_has_no_tool(void **state) {
    (void)state;
    if (&__asan_address_is_poisoned) skip();
    assert_int_equal(sy_tool_present(), SY_TOOL_NONE);
}

static void zones_are_as_wide_as_wanted(void **state) {
    (void)state;
    assert_int_equal(sy_watch_zone(SY_CHECKED), 0);
    assert_int_equal(sy_watch_zone(SY_CHECKED | SY_TOLD), 16);
    assert_int_equal(sy_watch_zone(SY_CHECKED | SY_TOLD | SY_REDZONE), sy_options_now.redzone);
}

/* ---- objects ---- */

static void an_object_is_shown_exactly(void **state) {
    (void)state;
    for (size_t size = 1; size < 200; size += 7) {
        sy_cache *cache = make(size, 0);
        char *object = sy_cache_alloc(cache);
        assert_true(all(object, size, false));
        assert_true(all(object - 16, 16, true));
        assert_true(all(object + size, 16, true));
        sy_cache_free(cache, object);
        assert_true(all(object, size, true));
        assert_int_equal(sy_cache_destroy(cache), 0);
        assert_true(all(object - 16, size + 32, false));
    }
}

static void an_object_of_the_heap_has_the_size_that_was_asked_for(void **state) {
    (void)state;
    for (size_t size = 1; size < 1 << 20; size = size * 3 + 1) {
        char *object = sy_malloc(size);
        assert_true(all(object, size, false));
        assert_true(hidden(object + size) && hidden(object - 1));
        sy_free(object);
        assert_true(hidden(object) && hidden(object + size - 1));
    }
}

static void what_is_live_is_shown_when_its_cache_goes(void **state) {
    (void)state;
    sy_cache *cache = make(40, 0);
    char *object = sy_cache_alloc(cache);
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const char *start = (const char *)slab->start;
    size_t bytes = slab->bytes;
    assert_false(all(start, bytes, false));
    sy_cache_destroy_all(cache);
    assert_true(all(start, bytes, false));
}

/* AddressSanitizer judges the library's own accesses here too, in builds with it. */
static void the_librarys_checks_may_look(void **state) {
    (void)state;
    sy_cache *cache = make(40, SY_REDZONE | SY_POISON | SY_EDGES | SY_ZERO);
    void *objects[100];
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 100), 100);
    assert_int_equal(sy_cache_verify(cache), 0);
    sy_cache_free_batch(cache, objects, 100);
    for (int i = 0; i < 50; i++) objects[i] = sy_cache_zalloc(cache);
    sy_cache_free_batch(cache, objects, 50);
    sy_cache_trim(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

__attribute__((no_sanitize_address, noinline)) static void damage(char *object) {
    *(volatile char *)object = 1;
}

static void a_report_shows_what_is_hidden(void **state) {
    (void)state;
    sy_cache *cache = make(40, SY_POISON);
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    damage(object + 8);
    assert_true(hidden(object + 8));
    assert_int_equal(sy_set_options("on-fault=continue,report=/dev/null"), 0);
    assert_int_equal(sy_watched_verify(cache), 1);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_set_options("on-fault=abort,report=stderr"), 0);
}

static int failing;

static int construct(void *object, void *arg) {
    (void)arg;
    memset(object, 1, 40);
    return failing ? -1 : 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    assert_int_equal(*(char *)object, 1);
}

static void constructors_see_their_objects(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .name = "built", .size = 40, .construct = construct, .destruct = destruct});
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    assert_true(all(object, 40, true));
    failing = 1;
    assert_null(sy_cache_alloc(cache));
    failing = 0;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    assert_true(all((const char *)slab->start, slab->bytes, true));
    assert_non_null(sy_cache_alloc(cache));
    sy_cache_destroy_all(cache);
}

static void objects_with_handles_are_told_of(void **state) {
    (void)state;
    sy_handle handle;
    sy_cache *cache = make(40, SY_HANDLES);
    char *object = sy_handle_alloc(cache, &handle);
    assert_true(all(object, 40, false) && hidden(object + 40));
    assert_true(sy_handle_free(cache, handle));
    assert_true(all(object, 40, true));
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest anywhere[] = {
        cmocka_unit_test(the_option_decides),
        cmocka_unit_test(pools_are_not_told_of),
        cmocka_unit_test(a_plain_build_has_no_tool),
        cmocka_unit_test(zones_are_as_wide_as_wanted),
    };
    const struct CMUnitTest told[] = {
        cmocka_unit_test(an_object_is_shown_exactly),
        cmocka_unit_test(an_object_of_the_heap_has_the_size_that_was_asked_for),
        cmocka_unit_test(what_is_live_is_shown_when_its_cache_goes),
        cmocka_unit_test(the_librarys_checks_may_look),
        cmocka_unit_test(a_report_shows_what_is_hidden),
        cmocka_unit_test(constructors_see_their_objects),
        cmocka_unit_test(objects_with_handles_are_told_of),
    };
    int failed = cmocka_run_group_tests_name("tools", anywhere, NULL, NULL);
    if (sy_tool_present() == SY_TOOL_ASAN)
        failed += cmocka_run_group_tests_name("tools, AddressSanitizer", told, begin, NULL);
    return failed;
}
