/*
 * test_may_free.c: sy_cache_may_free and sy_pool_may_free accept what a free would accept, and
 * report the rest as the free does. The question changes nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "support/child.h"
#include "support/services.h"

enum { BYTES = 48, SOME = 300 /* more than two magazines */ };

static int faults;
static sy_fault_kind last;
static void *objects[SOME];

static void note_fault(const sy_fault *fault) {
    faults++;
    last = fault->kind;
}

static void refused(bool accepted, sy_fault_kind kind) {
    assert_false(accepted);
    assert_int_equal(faults, 1);
    assert_int_equal(last, kind);
    faults = 0;
}

static sy_cache *make_cache(unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "asked", .size = BYTES, .flags = flags});
    must(cache != NULL);
    return cache;
}

static void accept_all_and_free(sy_cache *cache) {
    for (int i = 0; i < SOME; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
    errno = 77;
    for (int i = 0; i < SOME; i++) {
        assert_true(sy_cache_may_free(cache, objects[i]));
        assert_true(sy_cache_may_free(cache, objects[i]));
        assert_int_equal(sy_cache_in_use(cache), SOME - i);
        sy_cache_free(cache, objects[i]);
    }
    assert_true(sy_cache_may_free(cache, NULL));
    assert_int_equal(errno, 77);
    assert_int_equal(faults, 0);
}

/* Also where the magazine is full at the second free: the slow path compares then. */
static void a_plain_cache_knows_what_was_freed_last(void **state) {
    (void)state;
    sy_cache *cache = make_cache(0);
    accept_all_and_free(cache);
    for (int i = 0; i < SOME; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
    for (int i = 0; i < SOME; i++) {
        sy_cache_free(cache, objects[i]);
        refused(sy_cache_may_free(cache, objects[i]), SY_FAULT_DOUBLE_FREE);
    }
    assert_int_equal(sy_cache_in_use(cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void a_checked_cache_knows_all(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    static const unsigned ways[] = {SY_CHECKED, SY_POISON, SY_QUARANTINE, SY_ZERO | SY_CHECKED,
                                    SY_CHECKED | SY_GUARD};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        sy_cache *cache = make_cache(ways[way]), *other = make_cache(SY_CHECKED);
        accept_all_and_free(cache);
        char *object = sy_cache_alloc(cache), *next = sy_cache_alloc(cache);
        void *foreign = sy_cache_alloc(other);
        sy_cache_free(cache, object);
        sy_cache_free(cache, next);
        refused(sy_cache_may_free(cache, object), SY_FAULT_DOUBLE_FREE);
        refused(sy_cache_may_free(cache, foreign), SY_FAULT_WRONG_CACHE);
        refused(sy_cache_may_free(cache, &faults), SY_FAULT_FOREIGN_POINTER);
        object = sy_cache_alloc(cache);
        refused(sy_cache_may_free(cache, object + 8), SY_FAULT_MISALIGNED_POINTER);
        assert_true(sy_cache_may_free(cache, object));
        sy_cache_free(cache, object);
        sy_cache_free(other, foreign);
        assert_int_equal(sy_cache_in_use(cache), 0);
        assert_int_equal(sy_verify(), 0);
        assert_int_equal(sy_cache_destroy(cache), 0);
        assert_int_equal(sy_cache_destroy(other), 0);
    }
}

static void *ask_and_free(void *cache) {
    for (int i = 0; i < SOME; i++) {
        must(sy_cache_may_free(cache, objects[i]));
        sy_cache_free(cache, objects[i]);
    }
    return NULL;
}

static void ask_in_child(void *cache) { ask_and_free(cache); }

/* A thread and a child that have not used the cache before. */
static void others_may_ask(void **state) {
    (void)state;
    static const unsigned ways[] = {0, SY_CHECKED};
    for (size_t way = 0; way < 2; way++) {
        pthread_t thread;
        sy_cache *cache = make_cache(ways[way]);
        for (int i = 0; i < SOME; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
        assert_int_equal(in_child(ask_in_child, cache), 0);
        assert_int_equal(pthread_create(&thread, NULL, ask_and_free, cache), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(faults, 0);
        assert_int_equal(sy_cache_in_use(cache), 0);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static void pools_are_asked_too(void **state) {
    (void)state;
    static const unsigned ways[] = {0, SY_CHECKED, SY_POISON};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        sy_pool *pool =
            sy_pool_create(&(sy_pool_config){.size = BYTES, .name = "asked", .flags = ways[way]});
        must(pool != NULL);
        char *object = sy_pool_alloc(pool), *next = sy_pool_alloc(pool);
        assert_true(sy_pool_may_free(pool, object) && sy_pool_may_free(pool, next));
        assert_true(sy_pool_may_free(pool, NULL));
        sy_pool_free_checked_inline(pool, object);
        refused(sy_pool_may_free(pool, object), SY_FAULT_DOUBLE_FREE);
        assert_true(sy_pool_may_free(pool, next));
        sy_pool_free_checked_inline(pool, next);
        refused(sy_pool_may_free(pool, next), SY_FAULT_DOUBLE_FREE);
        if (ways[way]) {
            refused(sy_pool_may_free(pool, object), SY_FAULT_DOUBLE_FREE);
            refused(sy_pool_may_free(pool, &faults), SY_FAULT_FOREIGN_POINTER);
            refused(sy_pool_may_free(pool, next + 8), SY_FAULT_MISALIGNED_POINTER);
        }
        assert_int_equal(sy_pool_in_use(pool), 0);
        sy_pool_destroy(pool);
    }
}

static int begin(void **state) {
    (void)state;
    faults = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_plain_cache_knows_what_was_freed_last),
        TEST(a_checked_cache_knows_all),
        TEST(others_may_ask),
        TEST(pools_are_asked_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
