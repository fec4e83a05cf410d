/*
 * test_checked_pool.c: pools with checks, used through calls and through inline functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SY_NO_INLINE 1

#include <errno.h>
#include <pthread.h>
#include <slabyard/checks.h>
#include <slabyard/pool.h>
#include <stdatomic.h>

#include "os/fake.h"
#include "pool/audit.h"
#include "support/faults.h"
#include "support/services.h"

static const unsigned ALL = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT;

static sy_pool *make(size_t size, size_t capacity, unsigned flags) {
    sy_pool *pool = sy_pool_create(
        &(sy_pool_config){.size = size, .capacity = capacity, .flags = flags, .name = "node"});
    assert_non_null(pool);
    return pool;
}

static void end(sy_pool *pool) {
    assert_int_equal(sy_pool_in_use(pool), 0);
    assert_null(sy_pool_audit(pool));
    sy_pool_destroy(pool);
    expect_none();
}

/* The first pool of the process with SY_POISON registers the verification at its end. */
static void a_pool_that_cannot_be_verified_at_exit_is_none(void **state) {
    (void)state;
    size_t reserved = sy_fake_reserved();
    sy_fake_fail_nth(SY_FAKE_AT_EXIT, 1);
    assert_null(sy_pool_create(&(sy_pool_config){.size = 64, .flags = SY_POISON}));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_fake_reserved(), reserved);
    unsigned long before = (unsigned long)sy_fake_calls(SY_FAKE_AT_EXIT);
    sy_pool_destroy(make(64, 0, SY_CHECKED)); /* nothing to verify */
    assert_int_equal(sy_fake_calls(SY_FAKE_AT_EXIT), before);
    for (int i = 0; i < 3; i++) sy_pool_destroy(make(64, 0, SY_POISON));
    assert_int_equal(sy_fake_calls(SY_FAKE_AT_EXIT), before + 1); /* once */
}

static void damage_is_seen_by_verify(void **state) {
    (void)state;
    enum { POOLS = 3 };
    sy_pool *pools[POOLS];
    char *freed[POOLS], *live[POOLS];
    for (int i = 0; i < POOLS; i++) {
        pools[i] = make(64, 0, ALL);
        live[i] = sy_pool_alloc(pools[i]);
        sy_pool_free(pools[i], freed[i] = sy_pool_alloc(pools[i]));
    }
    assert_int_equal(sy_verify(), 0);
    scribble(freed[1], 8, 'B', 8);
    scribble(live[2], 64, 'B', 1);
    assert_int_equal(sy_verify(), 2);
    faults_seen = 0;
    sy_pool_destroy(pools[1]); /* in the middle of the list; reports once more */
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "node", freed[1] + 8);
    assert_int_equal(sy_verify(), 1);
    faults_seen = 0;
    sy_pool_reset(pools[2]);
    expect_seen(SY_FAULT_OVERFLOW, "node", live[2] + 64);
    assert_int_equal(sy_verify(), 0);
    sy_pool_free(pools[0], live[0]);
    end(pools[0]);
    end(pools[2]);
    assert_int_equal(sy_verify(), 0);
}

static _Atomic bool verified;

static void *use_pools(void *arg) {
    (void)arg;
    while (!atomic_load(&verified)) {
        sy_pool *pool = make(64, 0, ALL);
        for (int round = 0; round < 3; round++) {
            void *objects[300];
            for (int i = 0; i < 300; i++) memset(objects[i] = sy_pool_alloc(pool), i, 64);
            for (int i = 0; i < 200; i++) sy_pool_free(pool, objects[i]);
            sy_pool_reset(pool);
        }
        sy_pool_destroy(pool);
    }
    return NULL;
}

/* Each thread has its own pools. Another thread verifies all pools. */
static void pools_in_use_are_verified(void **state) {
    (void)state;
    enum { USERS = 3, TIMES = 100 };
    pthread_t users[USERS];
    for (int i = 0; i < USERS; i++) pthread_create(&users[i], NULL, use_pools, NULL);
    size_t wrong = 0;
    for (int i = 0; i < TIMES; i++) wrong += sy_verify();
    atomic_store(&verified, true);
    for (int i = 0; i < USERS; i++) pthread_join(users[i], NULL);
    assert_int_equal(wrong, 0);
    expect_none();
}

static void objects_are_as_ever(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    static unsigned char *objects[COUNT];
    const size_t sizes[] = {1, 8, 24, 100, 4096};
    for (int s = 0; s < 5; s++)
        for (size_t align = 8; align <= 4096; align *= 8) {
            sy_pool *pool =
                sy_pool_create(&(sy_pool_config){.size = sizes[s], .align = align, .flags = ALL});
            assert_true(sy_pool_slot_size(pool) >= sizes[s]);
            for (size_t i = 0; i < COUNT; i++) {
                objects[i] = sy_pool_alloc(pool);
                assert_int_equal((uintptr_t)objects[i] % align, 0);
                memset(objects[i], (int)i, sizes[s]);
            }
            assert_int_equal(sy_pool_in_use(pool), COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                assert_int_equal(objects[i][0], (unsigned char)i);
                assert_int_equal(objects[i][sizes[s] - 1], (unsigned char)i);
                sy_pool_free(pool, objects[i]);
            }
            end(pool);
        }
}

static void what_was_freed_last_is_given_first(void **state) {
    (void)state;
    sy_pool *pool = make(64, 0, SY_CHECKED);
    void *a = sy_pool_alloc(pool), *b = sy_pool_alloc(pool);
    sy_pool_free(pool, a);
    sy_pool_free(pool, b);
    assert_ptr_equal(sy_pool_alloc(pool), b);
    assert_ptr_equal(sy_pool_alloc(pool), a);
    sy_pool_free(pool, a);
    sy_pool_free(pool, b);
    end(pool);
}

static void a_bounded_pool_is_full_when_it_is(void **state) {
    (void)state;
    sy_pool *pool = make(64, 3, ALL);
    assert_int_equal(sy_pool_capacity(pool), 3);
    for (int round = 0; round < 3; round++) {
        void *objects[3];
        for (int i = 0; i < 3; i++) assert_non_null(objects[i] = sy_pool_alloc(pool));
        errno = 0;
        assert_null(sy_pool_alloc(pool));
        assert_int_equal(errno, ENOMEM);
        for (int i = 0; i < 3; i++) sy_pool_free(pool, objects[i]);
    }
    end(pool);
}

static void mistakes_are_seen(void **state) {
    (void)state;
    sy_pool *pool = make(64, 0, ALL);
    char *object = sy_pool_alloc(pool), local;
    sy_pool_free(pool, &local);
    expect_seen(SY_FAULT_FOREIGN_POINTER, "node", &local);
    sy_pool_free(pool, object + 8);
    expect_seen(SY_FAULT_MISALIGNED_POINTER, "node", object + 8);
    scribble(object, 64, 'x', 1);
    sy_pool_free(pool, object);
    expect_seen(SY_FAULT_OVERFLOW, "node", object + 64);
    sy_pool_free(pool, object);
    expect_seen(SY_FAULT_DOUBLE_FREE, "node", object);
    scribble(object, 5, 'x', 2);
    assert_non_null(sy_pool_audit(pool));
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "node", object + 5);
    sy_pool_reset(pool);
    expect_seen(SY_FAULT_WRITE_AFTER_FREE, "node", object + 5);
    object = sy_pool_alloc(pool);
    scribble(object, -1, 'x', 1);
    sy_pool_destroy(pool);
    expect_seen(SY_FAULT_UNDERFLOW, "node", object - 1);
}

static void a_reset_pool_begins_anew(void **state) {
    (void)state;
    sy_pool *pool = make(64, 0, ALL);
    void *first = sy_pool_alloc(pool);
    for (int i = 0; i < 500; i++) sy_pool_free(pool, sy_pool_alloc(pool));
    sy_pool_reset(pool);
    assert_int_equal(sy_pool_in_use(pool), 0);
    assert_ptr_equal(sy_pool_alloc(pool), first);
    sy_pool_free(pool, first);
    end(pool);
}

/* Inline frees: nothing is checked, and no structure is damaged. */
static void inline_frees_do_no_harm(void **state) {
    (void)state;
    sy_pool *pool = make(4, 0, SY_CHECKED | SY_REDZONE);
    void *a = sy_pool_alloc_inline(pool), *b = sy_pool_alloc_inline(pool);
    sy_pool_free_inline(pool, a);
    assert_int_equal(sy_pool_in_use(pool), 1);
    assert_ptr_equal(sy_pool_alloc_inline(pool), a);
    assert_int_equal(sy_pool_in_use(pool), 2);
    sy_pool_free(pool, a);
    sy_pool_free(pool, b);
    end(pool);
}

/* Each call to the system fails in turn. A failed creation leaves nothing behind; a later failure
 * loses nothing. */
static void without_memory_there_is_no_pool(void **state) {
    (void)state;
    for (int call = 0; call < 2; call++)
        for (unsigned nth = 1; nth < 8; nth++) {
            size_t reserved = sy_fake_reserved();
            sy_fake_fail_nth(call ? SY_FAKE_COMMIT : SY_FAKE_RESERVE, nth);
            errno = 0;
            sy_pool *pool =
                sy_pool_create(&(sy_pool_config){.size = 64, .capacity = 100, .flags = ALL});
            sy_fake_fail_nth(call ? SY_FAKE_COMMIT : SY_FAKE_RESERVE, 0);
            if (!pool) assert_int_equal(errno, ENOMEM);
            sy_pool_destroy(pool);
            assert_int_equal(sy_fake_reserved(), reserved);
        }
}

static void where_address_space_is_short_the_pool_is_smaller(void **state) {
    (void)state;
    sy_fake_fail_nth(SY_FAKE_RESERVE, 3); /* of the slots of an unbounded pool */
    sy_pool *pool = make(64, 0, ALL);
    void *object = sy_pool_alloc(pool);
    assert_non_null(object);
    sy_pool_free(pool, object);
    end(pool);
}

static void configurations_that_make_no_sense(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_pool_create(&(sy_pool_config){.size = 8, .flags = SY_GUARD}));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(sy_pool_create(
        &(sy_pool_config){.size = 1 << 20, .capacity = SIZE_MAX / 4, .flags = SY_CHECKED}));
    assert_int_equal(errno, ENOMEM);
}

static void what_was_never_given_is_foreign(void **state) {
    (void)state;
    sy_pool *pool = make(64, 0, SY_CHECKED);
    char *first = sy_pool_alloc(pool), *second = sy_pool_alloc(pool);
    char *never = second + (second - first);
    sy_pool_free(pool, never);
    expect_seen(SY_FAULT_FOREIGN_POINTER, "node", never);
    sy_pool_free(pool, first);
    sy_pool_free(pool, second);
    end(pool);
}

static void a_reset_empties_the_quarantine(void **state) {
    (void)state;
    enum { CAPACITY = 8 };
    void *objects[CAPACITY];
    sy_pool *pool = make(64, CAPACITY, ALL);
    for (int i = 0; i < CAPACITY; i++) objects[i] = sy_pool_alloc(pool);
    for (int i = 0; i < CAPACITY; i++) sy_pool_free(pool, objects[i]);
    sy_pool_reset(pool);
    for (int i = 0; i < CAPACITY; i++) assert_non_null(objects[i] = sy_pool_alloc(pool));
    assert_null(sy_pool_alloc(pool)); /* all are live */
    for (int i = 0; i < CAPACITY; i++) sy_pool_free(pool, objects[i]);
    end(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_pool_that_cannot_be_verified_at_exit_is_none, watch_faults),
        cmocka_unit_test_setup(objects_are_as_ever, watch_faults),
        cmocka_unit_test_setup(damage_is_seen_by_verify, watch_faults),
        cmocka_unit_test_setup(pools_in_use_are_verified, watch_faults),
        cmocka_unit_test_setup(what_was_freed_last_is_given_first, watch_faults),
        cmocka_unit_test_setup(a_bounded_pool_is_full_when_it_is, watch_faults),
        cmocka_unit_test_setup(mistakes_are_seen, watch_faults),
        cmocka_unit_test_setup(a_reset_pool_begins_anew, watch_faults),
        cmocka_unit_test_setup(inline_frees_do_no_harm, watch_faults),
        cmocka_unit_test_setup(without_memory_there_is_no_pool, watch_faults),
        cmocka_unit_test_setup(where_address_space_is_short_the_pool_is_smaller, watch_faults),
        cmocka_unit_test_setup(configurations_that_make_no_sense, watch_faults),
        cmocka_unit_test_setup(what_was_never_given_is_foreign, watch_faults),
        cmocka_unit_test_setup(a_reset_empties_the_quarantine, watch_faults),
    };
    return cmocka_run_group_tests_name("checked pool", tests, NULL, NULL);
}
