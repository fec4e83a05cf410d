/*
 * test_reserve.c: objects that were reserved in a bounded memory can be allocated, whichever
 * threads come later and whatever waits in their magazines.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "support/child.h"

enum { REGION = 8 << 20, THREADS = 60 };

static int make(void *object, void *arg) {
    (void)arg;
    *(uint64_t *)object = 7;
    return 0;
}

static const sy_cache_config kinds[] = {
    {.name = "plain", .size = 4096},
    {.name = "small", .size = 200},
    {.name = "built", .size = 4096, .construct = make},
    {.name = "handles", .size = 4096, .flags = SY_HANDLES},
    {.name = "epochs", .size = 4096, .flags = SY_EPOCHS},
    {.name = "zeroed", .size = 1000, .flags = SY_ZERO},
    {.name = "large", .size = 100 << 10},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void *region;
static sy_memory *memory;
static sy_cache *cache;
static size_t promised;
static _Atomic size_t taken;
static _Atomic bool over;
static _Atomic unsigned ready;

static void begin(int kind, size_t share) {
    region = NULL;
    must(posix_memalign(&region, 4 << 20, REGION) == 0);
    memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = REGION});
    sy_cache_config config = kinds[kind];
    config.memory = memory;
    cache = sy_cache_create(&config);
    must(memory && cache);
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    size_t slabs = REGION / (4 << 20) * SY_RUN_UNITS_MAX / (stats.slab_bytes / SY_UNIT_BYTES);
    promised = slabs * stats.slots_per_slab * share / 100;
    atomic_store(&taken, 0);
    atomic_store(&ready, 0);
    atomic_store(&over, false);
}

static void end(void) {
    sy_cache_destroy_all(cache);
    must(sy_memory_destroy(memory) == 0);
    free(region);
}

/* Counts one of the promised allocations. False: there are no more. */
static bool claim(void) {
    if (atomic_fetch_add(&taken, 1) < promised) return true;
    atomic_fetch_sub(&taken, 1);
    return false;
}

static void take(void) { must(sy_cache_alloc(cache) != NULL); }

/* Takes three objects and frees one, which waits in the thread's magazine. The thread goes on. */
static void *come_later(void *arg) {
    (void)arg;
    for (int i = 0; i < 2 && claim(); i++) take();
    void *object = claim() ? sy_cache_alloc(cache) : NULL;
    sy_cache_free(cache, object);
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&over)) sched_yield();
    return NULL;
}

static void reserve_then_come(int kind) {
    pthread_t threads[THREADS];
    begin(kind, 75);
    must(sy_cache_reserve(cache, promised) == 0);
    for (int i = 0; i < THREADS; i++) must(!pthread_create(&threads[i], NULL, come_later, NULL));
    while (atomic_load(&ready) < THREADS) sched_yield();
    while (claim()) take();
    must(sy_cache_verify(cache) == 0);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    end();
}

static void threads_that_come_later_leave_what_was_reserved(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) reserve_then_come(kind);
}

/* Allocates and frees as long as promised allocations are left. */
static void *work(void *number) {
    enum { HELD = 64 };
    uint64_t random = (uintptr_t)number * 31 + 7;
    void *held[HELD] = {NULL};
    while (claim()) {
        void **object = &held[next_random(&random) % HELD];
        if (*object && next_random(&random) % 4 == 0) sy_cache_free(cache, *object);
        must((*object = sy_cache_alloc(cache)) != NULL);
        if (next_random(&random) % 50 == 0) sy_thread_idle();
    }
    return NULL;
}

static void reserve_and_work(int kind) {
    enum { WORKERS = 12 };
    pthread_t threads[WORKERS];
    begin(kind, 80);
    must(sy_cache_reserve(cache, promised) == 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        must(!pthread_create(&threads[i], NULL, work, (void *)i));
    while (claim()) take();
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    must(sy_cache_verify(cache) == 0);
    end();
}

static void threads_at_work_leave_what_was_reserved(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int round = 0; round < 3; round++) reserve_and_work(kind);
}

static void *reserve_here(void *arg) {
    (void)arg;
    size_t count = cache->client.config.magazine_items;
    must(sy_thread_reserve(cache, count) == 0);
    for (size_t i = 0; i < count; i++) take();
    return NULL;
}

/* How many items are in magazines after this thread has used the cache. Threads that come after a
 * reserve get no magazines, until the promise has been used up or a trim has ended it. */
static size_t loaded_of_this_thread(void) {
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_cache_stats stats;
    must(sy_cache_get_stats(cache, &stats) == 0);
    return stats.in_loaded;
}

static void *has_magazines(void *wanted) {
    must((loaded_of_this_thread() > 0) == *(bool *)wanted);
    return NULL;
}

static void a_promise_ends(void **state) {
    (void)state;
    bool yes = true, no = false;
    begin(0, 88); /* leaves room for one thread's magazines */
    in_thread(has_magazines, &yes);
    sy_cache_trim(cache);
    assert_int_equal(sy_cache_reserve(cache, promised), 0);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_thread_flush();
    in_thread(has_magazines, &no);
    sy_cache_trim(cache);
    in_thread(has_magazines, &yes);
    end();
}

static void a_thread_may_reserve_too(void **state) {
    (void)state;
    begin(0, 40);
    assert_int_equal(sy_cache_reserve(cache, promised), 0);
    in_thread(reserve_here, NULL);
    end();
}

/* A handle has a 32-bit ordinal, so there are at most 2^32 objects. */
static void more_objects_than_there_are_handles_cost_no_memory(void **state) {
    (void)state;
    sy_cache *named = sy_cache_create(&(sy_cache_config){.size = 8, .flags = SY_HANDLES});
    sy_cache_stats stats;
    errno = 0;
    assert_int_equal(sy_cache_reserve(named, SIZE_MAX / 2 + 1), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_cache_get_stats(named, &stats), 0);
    assert_int_equal(stats.mapped, 0);
    assert_int_equal(sy_cache_destroy(named), 0);
}

/* A reserve that fails leaves the promise that there was. */
static void what_cannot_be_had_promises_nothing(void **state) {
    (void)state;
    begin(0, 60);
    assert_int_equal(sy_cache_reserve(cache, promised), 0);
    size_t before = atomic_load(&cache->promise);
    assert_true(before >= promised);
    errno = 0;
    assert_int_equal(sy_cache_reserve(cache, 10 * promised), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(atomic_load(&cache->promise), before);
    while (claim()) take();
    end();
}

static void *find_magazines_after_reserve(void *arg) {
    pthread_barrier_t *barrier = arg;
    sy_free(sy_malloc(64)); /* from now on the library counts this thread */
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    must(loaded_of_this_thread() > 0);
    return NULL;
}

/* A reserve leaves room for the magazines of the threads that run, even if nothing else is left. */
static void a_reserve_has_room_for_magazines(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    begin(0, 50);
    pthread_barrier_init(&barrier, NULL, 2);
    must(!pthread_create(&thread, NULL, find_magazines_after_reserve, &barrier));
    pthread_barrier_wait(&barrier);
    assert_int_equal(sy_cache_reserve(cache, promised), 0);
    sy_cache *greedy = sy_cache_create(&(sy_cache_config){.size = 60000, .memory = memory});
    while (sy_cache_alloc(greedy)) continue;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    sy_cache_destroy_all(greedy);
    end();
}

/* A promise ends when the program has all promised objects, and as many more as magazines hold. */
static void a_promise_that_was_kept_is_none(void **state) {
    (void)state;
    bool yes = true;
    begin(0, 20);
    assert_int_equal(sy_cache_reserve(cache, promised), 0);
    assert_true(atomic_load(&cache->promise) > 0);
    size_t magazines = 4 * cache->client.config.magazine_items;
    for (size_t i = 0; i < promised + magazines; i++) take();
    in_thread(has_magazines, &yes);
    assert_int_equal(atomic_load(&cache->promise), 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_come_later_leave_what_was_reserved),
        cmocka_unit_test(threads_at_work_leave_what_was_reserved),
        cmocka_unit_test(a_promise_ends),
        cmocka_unit_test(a_thread_may_reserve_too),
        cmocka_unit_test(more_objects_than_there_are_handles_cost_no_memory),
        cmocka_unit_test(what_cannot_be_had_promises_nothing),
        cmocka_unit_test(a_reserve_has_room_for_magazines),
        cmocka_unit_test(a_promise_that_was_kept_is_none),
    };
    return cmocka_run_group_tests_name("reserve", tests, NULL, NULL);
}
