/*
 * test_count.c: slabyard/count.h: what a thread allocates is counted exactly, whatever it calls,
 * other threads' allocations are not, and what cannot be counted is said. Each test runs in a
 * child.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "debug/profile.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

#define RUN(name)                                         \
    static void name(void **state) {                      \
        (void)state;                                      \
        assert_int_equal(in_child(name##_here, NULL), 0); \
    }

static sy_counted ended(void) {
    sy_counted counted;
    must(sy_count_end(&counted) == 0);
    must(counted.live == counted.allocations - counted.frees);
    return counted;
}

static void objects_of_any_size_are_counted_here(void *arg) {
    (void)arg;
    void *before = sy_malloc(100);
    must(sy_count_begin() == 0);
    sy_free(before);
    void *small = sy_malloc(100), *constant = (sy_malloc)(30), *large = sy_malloc(1 << 20);
    void *zeroed = sy_calloc(10, 20), *aligned = sy_aligned_alloc(64, 50);
    void *resized = sy_realloc(sy_malloc(40), 500);
    sy_free_sized(small, 100);
    sy_free(constant);
    sy_free(large);
    sy_free_aligned_sized(aligned, 64, 50);
    sy_counted counted = ended();
    must(counted.allocations == 7 && counted.frees == 5);
    must(counted.bytes == 100 + 30 + (1 << 20) + 200 + 50 + 40 + 500);
    must(counted.live_bytes == 200 + 500);
    must(counted.peak_bytes == counted.bytes); /* 40 live on until 500 have their place */
    sy_free(zeroed);
    sy_free(resized);
    must(sy_profile_records == 0 && sy_verify() == 0);
}
RUN(objects_of_any_size_are_counted)

/* Moves what lies in sparse slabs, frees all, and returns how many objects were moved. */
static size_t move_and_free(void **objects, size_t count) {
    size_t moves = 0;
    for (size_t i = 0; i < count; i++) {
        void *moved = objects[i] ? sy_try_move(objects[i]) : NULL;
        if (moved) objects[i] = moved, moves++;
    }
    for (size_t i = 0; i < count; i++) sy_free(objects[i]);
    return moves;
}

static void objects_that_move_are_counted_once_here(void *arg) {
    enum { COUNT = 20000, KEPT = COUNT / 10 };
    static void *objects[COUNT];
    (void)arg;
    must(sy_count_begin() == 0);
    for (int i = 0; i < COUNT; i++) must((objects[i] = sy_malloc(112)));
    for (int i = 0; i < COUNT; i++)
        if (i % 10) sy_free(objects[i]), objects[i] = NULL;
    must(move_and_free(objects, COUNT) > KEPT / 2);
    sy_counted counted = ended();
    must(counted.allocations == COUNT && counted.live == 0 && counted.live_bytes == 0);
    must(sy_profile_records == 0 && sy_verify() == 0);
}
RUN(objects_that_move_are_counted_once)

static void caches_and_heaps_are_counted_here(void *arg) {
    (void)arg;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "orders", .size = 200});
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    void *objects[300];
    for (int i = 0; i < 300; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    for (int round = 0; round < 3; round++) {
        must(sy_count_begin() == 0);
        must(sy_cache_alloc_batch(cache, objects, 300) == 300);
        for (int i = 0; i < 300; i++) sy_cache_free(cache, objects[i]);
        for (int i = 0; i < 100; i++) sy_heap_free(heap, sy_heap_alloc(heap, 70));
        sy_counted counted = ended();
        must(counted.allocations == 400 && counted.live == 0 && counted.live_bytes == 0);
        must(counted.bytes == 300 * 200 + 100 * 70 && counted.peak_bytes == 300 * 200);
        for (int i = 0; i < 300; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    }
    must(sy_count_begin() == 0);
    must(sy_heap_alloc(heap, 70) != NULL);
    sy_heap_destroy_all(heap);
    must(ended().frees == 1);
    must(sy_verify() == 0);
}
RUN(caches_and_heaps_are_counted)

static void *free_and_allocate(void *object) {
    sy_free(object);
    return sy_malloc(10);
}

static void other_threads_only_free_here(void *arg) {
    pthread_t thread;
    void *left;
    (void)arg;
    must(sy_count_begin() == 0);
    void *object = sy_malloc(100);
    must(pthread_create(&thread, NULL, free_and_allocate, object) == 0);
    must(pthread_join(thread, &left) == 0);
    sy_free(left);
    sy_counted counted = ended();
    must(counted.allocations == 1 && counted.frees == 1 && counted.bytes == 100);
}
RUN(other_threads_only_free)

enum { MANY = 2000 };

static void *objects_of_another[MANY];
static _Atomic int stage;

static void await_stage(int wanted) {
    while (stage != wanted) usleep(100);
}

/* It has a loaded magazine, with room, from before the count. */
static void *free_many(void *arg) {
    for (int i = 0; i < 100; i++) sy_free(sy_malloc(100));
    stage = 1;
    await_stage(2);
    for (int i = 0; i < MANY; i++) sy_free(objects_of_another[i]);
    return arg;
}

/* Where the system has no barrier for threads, a running thread begins later. */
static void a_thread_that_runs_notes_its_frees_here(void *arg) {
    pthread_t thread;
    (void)arg;
    must(pthread_create(&thread, NULL, free_many, NULL) == 0);
    await_stage(1);
    must(sy_count_begin() == 0);
    for (int i = 0; i < MANY; i++) objects_of_another[i] = sy_malloc(100);
    stage = 2;
    must(pthread_join(thread, NULL) == 0);
    sy_counted counted = ended();
    must(counted.allocations == MANY);
    must(counted.frees == MANY || (sy_os_barrier_threads() != 0 && counted.frees > 0));
}
RUN(a_thread_that_runs_notes_its_frees)

static void *begin_to_count(void *arg) {
    must(sy_count_begin() == 0);
    sy_free(sy_malloc(100));
    return sy_malloc(100 + (size_t)arg);
}

static void a_count_ends_with_its_thread_here(void *arg) {
    pthread_t thread;
    void *left;
    (void)arg;
    for (size_t i = 0; i < 2 * SY_PROFILE_COUNTERS; i++) {
        must(pthread_create(&thread, NULL, begin_to_count, (void *)i) == 0);
        must(pthread_join(thread, &left) == 0 && left);
        sy_free(left);
    }
    must(!sy_profile_watches() && sy_profile_records == 0 && sy_verify() == 0);
}
RUN(a_count_ends_with_its_thread)

static void *count_until_told(void *arg) {
    must(sy_count_begin() == 0);
    void *object = sy_malloc(100);
    stage = 1;
    await_stage(2);
    sy_free(object);
    must(ended().frees == 1);
    return arg;
}

static void use_after_fork(void *arg) {
    (void)arg;
    must(sy_profile_watches() == (sy_profile_counter != 0));
    if (sy_profile_counter) must(ended().allocations == 1);
    must(sy_count_begin() == 0);
    sy_free(sy_malloc(100));
    must(ended().frees == 1);
    must(!sy_profile_watches() && sy_profile_records == 0 && sy_verify() == 0);
}

static void a_fork_beside_a_count_here(void *counts_too) {
    pthread_t thread;
    if (counts_too) must(sy_count_begin() == 0);
    void *object = counts_too ? sy_malloc(10) : NULL;
    must(pthread_create(&thread, NULL, count_until_told, NULL) == 0);
    await_stage(1);
    must(in_child(use_after_fork, NULL) == 0);
    stage = 2;
    must(pthread_join(thread, NULL) == 0);
    sy_free(object);
    if (counts_too) must(ended().frees == 1);
}

static void in_a_child_no_other_thread_counts(void **state) {
    needs(SY_OS_FORKS);
    assert_int_equal(in_child(a_fork_beside_a_count_here, NULL), 0);
    assert_int_equal(in_child(a_fork_beside_a_count_here, state), 0);
}

/* Some objects of size classes have not the alignment, and another is allocated instead. */
static void aligned_objects_are_counted_once_here(void *arg) {
    void *objects[200];
    (void)arg;
    for (size_t align = 16; align <= 4096; align *= 2) {
        must(sy_count_begin() == 0);
        for (int i = 0; i < 200; i++) must((objects[i] = sy_aligned_alloc(align, 96)) != NULL);
        for (int i = 0; i < 200; i++) sy_free(objects[i]);
        sy_counted counted = ended();
        must(counted.allocations == 200 && counted.frees == 200 && counted.bytes == 200 * 96);
    }
}
RUN(aligned_objects_are_counted_once)

static int begin_in_a_constructor(void *object, void *tried) {
    (void)object;
    must(sy_count_begin() == -1 && errno == EBUSY);
    *(bool *)tried = true;
    return 0;
}

static void no_count_begins_in_a_call_of_the_library_here(void *arg) {
    bool tried = false;
    (void)arg;
    sy_cache_config config = {
        .name = "orders", .size = 200, .construct = begin_in_a_constructor, .arg = &tried};
    sy_cache *cache = sy_cache_create(&config);
    sy_cache_free(cache, sy_cache_alloc(cache));
    must(sy_cache_destroy(cache) == 0 && tried);
}
RUN(no_count_begins_in_a_call_of_the_library)

/* A profile goes on beside a count, and neither sees the other. */
static void a_profile_goes_on_here(void *arg) {
    (void)arg;
    must(sy_count_begin() == 0);
    void *first = sy_malloc(1000);
    must(sy_profile_start(1) == 0);
    void *second = sy_malloc(1000);
    must(sy_profile_stop() == 0);
    sy_free(first);
    sy_profile_site site;
    uint64_t sampled = 0;
    for (uint32_t i = 0; sy_profile_get_site(i, &site); i++) sampled += site.allocated;
    must(sampled == 1);
    sy_counted counted = ended();
    must(counted.allocations == 2 && counted.live_bytes == 1000);
    sy_free(second);
    must(sy_profile_records == 0 && sy_verify() == 0);
}

static void a_profile_goes_on(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    assert_int_equal(in_child(a_profile_goes_on_here, NULL), 0);
}

static void misuse_is_an_error_here(void *arg) {
    sy_counted counted;
    (void)arg;
    must(sy_count_end(&counted) == -1 && errno == ENOENT);
    must(sy_count_begin() == 0);
    must(sy_count_begin() == -1 && errno == EBUSY);
    must(sy_count_end(NULL) == -1 && errno == EINVAL);
    must(sy_count_end(&counted) == 0 && counted.allocations == 0);
}
RUN(misuse_is_an_error)

static void objects_that_are_checked_are_not_counted_here(void *options) {
    must(sy_set_options(options) == 0);
    must(sy_count_begin() == -1 && errno == ENOTSUP);
}

static void objects_that_are_checked_are_not_counted(void **state) {
    static char check[] = "check", guard[] = "guard=1/100";
    (void)state;
    assert_int_equal(in_child(objects_that_are_checked_are_not_counted_here, check), 0);
    if (sy_os_has(SY_OS_GUARDS))
        assert_int_equal(in_child(objects_that_are_checked_are_not_counted_here, guard), 0);
}

static void objects_without_a_record_are_said_here(void *arg) {
    sy_counted counted;
    (void)arg;
    sy_free(sy_malloc(100));
    must(sy_count_begin() == 0);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    void *object = sy_malloc(100);
    sy_fake_succeed(SY_FAKE_COMMIT);
    must(object != NULL);
    must(sy_count_end(&counted) == -1 && errno == ENOMEM && counted.allocations == 0);
    sy_free(object);
    must(sy_verify() == 0);
}
RUN(objects_without_a_record_are_said)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_any_size_are_counted),
        cmocka_unit_test(objects_that_move_are_counted_once),
        cmocka_unit_test(caches_and_heaps_are_counted),
        cmocka_unit_test(other_threads_only_free),
        cmocka_unit_test(a_thread_that_runs_notes_its_frees),
        cmocka_unit_test(a_count_ends_with_its_thread),
        cmocka_unit_test(in_a_child_no_other_thread_counts),
        cmocka_unit_test(aligned_objects_are_counted_once),
        cmocka_unit_test(no_count_begins_in_a_call_of_the_library),
        cmocka_unit_test(a_profile_goes_on),
        cmocka_unit_test(misuse_is_an_error),
        cmocka_unit_test(objects_that_are_checked_are_not_counted),
        cmocka_unit_test(objects_without_a_record_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
