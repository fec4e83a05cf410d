/*
 * test_secrets.c: caches for secrets: their memory is not in core dumps and never in swap, and it
 * is zeroed when objects are freed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <slabyard/slabyard.h>

#include "cache/directory.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/locked.h"
#include "support/sanitized.h"
#include "support/services.h"

enum { SIZE = 64, COUNT = 3000 };

static sy_cache *make(unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "key", .size = SIZE, .flags = flags});
    assert_non_null(cache);
    return cache;
}

/* Whether the kernel has this flag for the mapping at `address`: "dd" not dumped, "lo" locked. */
static bool has_flag(const void *address, const char *flag) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    must(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            inside = (uintptr_t)address >= from && (uintptr_t)address < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag)) found = true;
    }
    fclose(maps);
    return found;
}

static void what_is_not_dumped_is_marked_so(void **state) {
    needs(SY_OS_LOCKS | SY_OS_MOVES);
    (void)state;
    if (is_emulated()) skip(); /* its list of mappings lacks most flags */
    sy_cache *secret = make(SY_NO_DUMP), *plain = make(0);
    void *key = sy_cache_alloc(secret), *other = sy_cache_alloc(plain);
    assert_true(has_flag(key, " dd"));
    assert_false(has_flag(other, " dd"));
    sy_cache_free(secret, key);
    sy_cache_free(plain, other);
    assert_int_equal(sy_cache_destroy(secret), 0);
    assert_false(has_flag(key, " dd")); /* any cache may use the memory now */
    assert_int_equal(sy_cache_destroy(plain), 0);
}

static void what_is_locked_stays_in_memory(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    if (is_emulated()) skip(); /* its list of mappings lacks most flags */
    struct rlimit limit;
    must(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (limit.rlim_cur < 1 << 20 || SANITIZED) skip(); /* sanitizers lock no memory */
    sy_cache *secret = make(SY_LOCKED);
    void *key = sy_cache_alloc(secret);
    assert_non_null(key);
    assert_true(has_flag(key, " lo"));
    sy_cache_free(secret, key);
    sy_cache_trim(secret);
    assert_int_equal(sy_cache_destroy(secret), 0);
    assert_false(has_flag(key, " lo"));
}

/* A trim gives back the free pages of slabs in use only where the locked rest stays locked. A slab
 * of one page has none. */
static void a_trim_leaves_locked_memory_locked(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    if (is_emulated() || SANITIZED) skip();
    static void *keys[COUNT];
    const size_t bytes = sy_os_page_size();
    char *page = sy_os_reserve(bytes, bytes, NULL);
    must(page && sy_os_commit(page, bytes) == 0);
    if (sy_os_lock(page, bytes, true) != 0) skip();
    sy_cache *secret = make(SY_LOCKED);
    for (int i = 0; i < COUNT; i++)
        if (!(keys[i] = sy_cache_alloc(secret))) skip(); /* no memory may be locked here */
    for (int i = 1; i < COUNT; i++) sy_cache_free(secret, keys[i]);
    sy_cache_trim(secret);
    sy_cache_stats stats;
    must(sy_cache_get_stats(secret, &stats) == 0 && stats.slabs > 0);
    bool returns =
        stats.slab_bytes > bytes && has_all(SY_OS_LOCKED_RETURNS) && discards_locked(page, bytes);
    assert_int_equal(stats.discarded > 0, returns);
    if (!SY_PLATFORM_WINDOWS) assert_true(has_flag(keys[0], " lo"));
    sy_os_release(page, bytes);
    sy_cache_free(secret, keys[0]);
    assert_int_equal(sy_cache_destroy(secret), 0);
}

static void what_cannot_be_locked_is_not_allocated(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    sy_cache *secret = make(SY_LOCKED | SY_HANDLES);
    sy_stats before, after;
    sy_get_stats(&before);
    sy_fake_fail_from(SY_FAKE_LOCK, 1);
    errno = 0;
    assert_null(sy_cache_alloc(secret));
    assert_int_equal(errno, ENOMEM);
    sy_get_stats(&after);
    assert_int_equal(after.slabs, before.slabs);
    sy_fake_reset();
    assert_int_equal(sy_cache_destroy(secret), 0);
}

static bool is_zero(const unsigned char *object) {
    for (int i = 0; i < SIZE; i++)
        if (object[i]) return false;
    return true;
}

static void what_is_freed_is_zeroed(void **state) {
    (void)state;
    const unsigned kinds[] = {SY_ZERO, SY_ZERO | SY_CHECKED, SY_ZERO | SY_REDZONE | SY_QUARANTINE,
                              SY_ZERO | SY_EPOCHS, SY_ZERO | SY_HANDLES};
    static unsigned char *keys[COUNT];
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        sy_cache *secret = make(kinds[kind]);
        for (int i = 0; i < COUNT; i++) memset(keys[i] = sy_cache_alloc(secret), 's', SIZE);
        for (int i = 0; i < COUNT; i++) {
            sy_cache_free(secret, keys[i]);
            assert_true(is_zero(keys[i]));
        }
        assert_int_equal(sy_cache_destroy(secret), 0);
    }
}

/* sy_cache_destroy_all zeroes live objects, which are not freed before. */
static void what_is_destroyed_is_zeroed(void **state) {
    (void)state;
    sy_cache *secret = make(SY_ZERO), *other = make(0);
    unsigned char *key = sy_cache_alloc(secret);
    memset(key, 's', SIZE);
    sy_cache_destroy_all(secret);
    for (int i = 0; i < COUNT; i++) assert_true(is_zero(sy_cache_alloc(other)));
    sy_cache_destroy_all(other);
}

static void what_cannot_be_locked_takes_no_ordinals(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    sy_cache *secret = make(SY_LOCKED | SY_HANDLES);
    sy_fake_fail_from(SY_FAKE_LOCK, 1);
    assert_null(sy_cache_alloc(secret));
    uint64_t before = sy_ordinals_limit();
    for (int i = 0; i < 300; i++) must(!sy_cache_alloc(secret));
    assert_int_equal(sy_ordinals_limit(), before);
    sy_fake_reset();
    assert_int_equal(sy_cache_destroy(secret), 0);
}

static void memory_for_others_is_not_locked(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    if (is_emulated()) skip(); /* its list of mappings lacks most flags */
    sy_cache *secret = make(SY_LOCKED), *other = make(0);
    void *stays = sy_cache_alloc(other); /* keeps the memory mapped */
    void *key = sy_cache_alloc(secret);
    if (!key || SANITIZED) skip(); /* no memory may be locked here */
    assert_true(has_flag(key, " lo"));
    sy_cache_free(secret, key);
    assert_int_equal(sy_cache_destroy(secret), 0);
    assert_false(has_flag(key, " lo"));
    sy_cache_free(other, stays);
    assert_int_equal(sy_cache_destroy(other), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_dumped_is_marked_so),
        cmocka_unit_test(what_is_locked_stays_in_memory),
        cmocka_unit_test(a_trim_leaves_locked_memory_locked),
        cmocka_unit_test(what_cannot_be_locked_is_not_allocated),
        cmocka_unit_test(what_is_freed_is_zeroed),
        cmocka_unit_test(what_is_destroyed_is_zeroed),
        cmocka_unit_test(what_cannot_be_locked_takes_no_ordinals),
        cmocka_unit_test(memory_for_others_is_not_locked),
    };
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
