/*
 * test_sampled.c: which allocations of the drop-in malloc are guarded (heap/sampled.h): for every
 * size and alignment, when options change, and when the system refuses. Each test runs in a child,
 * in which nothing has been guarded yet.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "base/random.h"
#include "debug/guard.h"
#include "debug/interval.h"
#include "heap/classes.h"
#include "heap/sampled.h"
#include "magazine/countdown.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/services.h"

#define RUN(name)                                         \
    static void name(void **state) {                      \
        needs(SY_OS_GUARDS);                              \
        (void)state;                                      \
        assert_int_equal(in_child(name##_here, NULL), 0); \
    }

/* An allocation of the drop-in malloc; NULL: it is not sampled. */
static void *take(size_t size, size_t align) {
    return sy_sampled_alloc(sy_class_for(size > align ? size : align), size, align);
}

static void begin(void) { must(sy_set_options("sample=all") == 0); }

static void sizes_and_alignments_here(void *arg) {
    size_t page = sy_os_page_size(), aligns[] = {16, 64, page}, sizes[] = {0, 1, 17, page};
    (void)arg;
    begin();
    for (int a = 0; a < 3; a++) {
        for (int s = 0; s < 4; s++) {
            char *object = take(sizes[s], aligns[a]);
            must(object && sy_guard_owns((uintptr_t)object));
            must((uintptr_t)object % aligns[a] == 0);
            must(sy_usable_size(object) == (sizes[s] ? sizes[s] : 1));
            memset(object, 1, sizes[s]);
            sy_free_sized(object, sizes[s]);
        }
    }
    must(!take(page + 1, 16));
    must(!take(16, 2 * page));
    must(sy_verify() == 0);
}
RUN(sizes_and_alignments)

static void a_sampled_object_can_be_resized_here(void *arg) {
    (void)arg;
    begin();
    unsigned char *object = take(100, 16);
    must(object != NULL);
    memset(object, 7, 100);
    object = sy_realloc(object, 5000);
    must(object != NULL);
    for (int i = 0; i < 100; i++) must(object[i] == 7);
    sy_free(object);
    must(sy_verify() == 0);
}
RUN(a_sampled_object_can_be_resized)

static void options_change_as_the_program_runs_here(void *arg) {
    (void)arg;
    must(!take(16, 16)); /* the option is off */
    begin();
    void *object = take(16, 16);
    must(object != NULL);
    must(sy_set_options("sample=off") == 0);
    must(!take(16, 16));
    sy_free(object);
    begin();
    must(sy_set_options("fail=1000000000") == 0);
    must(!take(16, 16)); /* `fail` would not count a guarded object */
    must(sy_set_options("fail=off") == 0);
    object = take(16, 16);
    must(object != NULL);
    sy_free(object);
}
RUN(options_change_as_the_program_runs)

/* From now on the thread has slots, in which it counts. */
static int32_t *begin_counting(size_t size) {
    sy_free(sy_malloc(size));
    sy_loaded_slot *slot = sy_countdown_slot(sy_class_for(size));
    must(slot != NULL);
    return sy_countdown_of(slot);
}

/* Counts allocations of 16 bytes until one is sampled, `most` at most. */
static int count_to_sample(int most) {
    for (int i = 1; i <= most; i++) {
        char *object = sy_malloc_counted(16);
        bool sampled = sy_guard_owns((uintptr_t)object);
        sy_free(object);
        if (sampled) return i;
    }
    return 0;
}

static void a_thread_that_counts_looks_again_here(void *arg) {
    (void)arg;
    begin_counting(16);
    must(count_to_sample(1) == 0);
    begin();
    must(count_to_sample(1) == 0);
    int looked = count_to_sample(2000); /* the look was at most 2,000 allocations ago */
    must(looked > 0);
    for (int i = 0; i < 10; i++) must(count_to_sample(1) == 1);
    must(sy_set_options("sample=off") == 0);
    must(count_to_sample(100000) == 0);
}
RUN(a_thread_that_counts_looks_again)

/* The classes count for themselves, and each samples its share: within six standard deviations. */
static void each_class_has_its_share_here(void *arg) {
    enum { COUNT = 100000, EVERY = 50, SHARE = COUNT / EVERY, SIX = 270 };
    (void)arg;
    must(sy_set_options("sample=1/50") == 0);
    for (size_t size = 16; size <= 4096; size *= 4) {
        unsigned sampled = 0;
        for (int i = 0; i < COUNT; i++) {
            void *object = sy_malloc_counted(size);
            sampled += sy_guard_owns((uintptr_t)object);
            sy_free(object);
        }
        must(sampled > SHARE - SIX && sampled < SHARE + SIX);
    }
}
RUN(each_class_has_its_share)

/* Lets `most` counts up to a sample end, or fewer if `count` allocations were sampled. Returns how
 * many were. */
static unsigned sample(int32_t *word, uint32_t every, unsigned count, unsigned most) {
    unsigned sampled = 0;
    for (; sampled < count && most > 0; most--) {
        *word = (int32_t)(1 + sy_random_mix(every) % SY_COUNTDOWN_TAG); /* as sampled.c */
        void *object = take(16, 16);
        sampled += object != NULL;
        sy_free(object);
    }
    return sampled;
}

static void rare_samples_are_apart_here(void *arg) {
    (void)arg;
    int32_t *word = begin_counting(16);
    sy_fake_set_clock(UINT64_C(1) << 40);
    must(sy_set_options("sample=1/10000") == 0);
    must(sample(word, 10000, 1, 10) == 1);
    must(sample(word, 10000, 1, 10) == 0);
    sy_fake_advance_clock(4999999);
    must(sample(word, 10000, 1, 10) == 0);
    sy_fake_advance_clock(1);
    must(sample(word, 10000, 2, 10) == 1);
    must(sy_set_options("sample=1/9999") == 0);
    must(sample(word, 9999, 10, 10) == 10);
}
RUN(rare_samples_are_apart)

static void objects_that_have_to_lie_elsewhere_are_not_sampled_here(void *options) {
    must(sy_set_options(options) == 0);
    begin();
    must(!take(16, 16));
    must(!take(16, 16));
}

static void objects_that_have_to_lie_elsewhere_are_not_sampled(void **state) {
    needs(SY_OS_GUARDS);
    static char *const options[] = {"lock", "dump=no", "tools=malloc"};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            in_child(objects_that_have_to_lie_elsewhere_are_not_sampled_here, options[i]), 0);
}

static void *take_intervals(void *out) {
    for (int i = 0; i < 2; i++) ((int64_t *)out)[i] = sy_interval_next(1 << 20);
    return NULL;
}

/* If all threads sampled in the same step, each thread's first allocations would never be seen. */
static void each_thread_has_intervals_of_its_own(void **state) {
    (void)state;
    enum { THREADS = 8 };
    int64_t all[THREADS][2];
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take_intervals, all[i]), 0);
        pthread_join(thread, NULL);
        for (int j = 0; j < i; j++) assert_false(all[i][0] == all[j][0] && all[i][1] == all[j][1]);
    }
}

/* The n-th call to the system that the first sample makes fails. The child ends with 0 if there are
 * fewer calls. */
static void refused_here(void *nth) {
    begin();
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)nth);
    errno = 4711;
    void *object = take(100, 16);
    must(errno == 4711);
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    sy_fake_succeed(SY_FAKE_ANY);
    void *other = take(100, 16);
    must(other != NULL);
    sy_free(object);
    sy_free(other);
    must(sy_verify() == 0);
    _exit(failed ? 1 : 0);
}

static void a_refusal_leaves_the_allocation_to_the_heap(void **state) {
    needs(SY_OS_GUARDS);
    uint64_t nth = 1;
    (void)state;
    while (WEXITSTATUS(in_child(refused_here, &nth)) == 1) nth++;
    assert_int_equal(in_child(refused_here, &nth), 0);
    assert_true(nth > 4); /* the cache, the region, its guards, an opened page */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_alignments),
        cmocka_unit_test(a_sampled_object_can_be_resized),
        cmocka_unit_test(options_change_as_the_program_runs),
        cmocka_unit_test(a_thread_that_counts_looks_again),
        cmocka_unit_test(each_class_has_its_share),
        cmocka_unit_test(rare_samples_are_apart),
        cmocka_unit_test(objects_that_have_to_lie_elsewhere_are_not_sampled),
        cmocka_unit_test(each_thread_has_intervals_of_its_own),
        cmocka_unit_test(a_refusal_leaves_the_allocation_to_the_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
