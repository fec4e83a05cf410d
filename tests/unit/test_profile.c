/*
 * test_profile.c: samples of the profile (heap/sampled.h, debug/profile.h): that the estimates have
 * no bias and the variance that their chances give, what becomes of sampled objects, and what
 * happens when memory is refused. Random numbers have fixed seeds. Each test runs in a child.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/profile.h>
#include <slabyard/slabyard.h>

#include "chunk/chunk.h"
#include "debug/guard.h"
#include "debug/interval.h"
#include "debug/profile.h"
#include "debug/stack.h"
#include "heap/classes.h"
#include "heap/sampled.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/profiles.h"
#include "support/services.h"

/* As in the drop-in malloc, which counts the allocations of size classes itself. */
bool sy_threads_may_be_reached(void);
bool sy_threads_may_be_reached(void) { return true; }

static const uint64_t ALL = 1; /* as good as each object of some bytes is sampled */

static void begin(uint64_t mean) {
    sy_interval_seed(42);
    must(sy_profile_begin(mean) == 0);
}

static bool is_apart(const void *object) {
    return sy_usable_size(object) && !sy_class_at((uintptr_t)object);
}

/* Allocates until an object of `size` bytes is in a slab apart. */
static void *take_apart(size_t size) {
    for (int i = 0; i < 100000; i++) {
        void *object = sy_malloc_counted(size);
        if (is_apart(object)) return object;
        sy_free(object);
    }
    must(false);
    return NULL;
}

/* ---- the estimates ---- */

static const size_t sizes[] = {9, 24, 100, 160, 1000, 5000};
enum { SIZES = sizeof sizes / sizeof *sizes, OBJECTS = 600, RUNS = 10000, MEAN = 64 << 10 };

/* What one estimate of the bytes of a run varies by: an object of s bytes that has the chance p
 * contributes s / p with this chance, so its variance is s * s * (1 - p) / p. */
static double variance_of_a_run(void) {
    double variance = 0;
    for (int i = 0; i < OBJECTS; i++) {
        double size = (double)sizes[i % SIZES];
        double bytes = (double)sy_class_size(sy_class_for(sizes[i % SIZES]));
        double chance = bytes / (bytes + MEAN);
        variance += size * size * (1 - chance) / chance;
    }
    return variance;
}

/* Two in three objects live until the end of the run, the others until the next allocation. */
static double estimate_of_a_run(void) {
    static void *kept[OBJECTS];
    uint64_t before = sums().allocated_bytes;
    for (int i = 0; i < OBJECTS; i++) {
        kept[i] = sy_malloc_counted(sizes[i % SIZES]);
        if (i / SIZES % 3 == 0) {
            sy_free(kept[i]);
            kept[i] = NULL;
        }
    }
    double estimate = (double)(sums().allocated_bytes - before);
    for (int i = 0; i < OBJECTS; i++) sy_free(kept[i]);
    return estimate;
}

static void estimates_are_unbiased_here(void *arg) {
    double truth = 0, sum = 0, squares = 0;
    (void)arg;
    begin(MEAN);
    for (int i = 0; i < OBJECTS; i++) truth += (double)sizes[i % SIZES];
    for (int run = 0; run < RUNS; run++) {
        double error = estimate_of_a_run() - truth;
        sum += error;
        squares += error * error;
    }
    double bias = sum / RUNS / truth, variance = squares / RUNS / variance_of_a_run();
    printf("bias %.4f, variance %.4f of the expected one\n", bias, variance);
    must(bias > -0.01 && bias < 0.01);
    must(variance > 0.93 && variance < 1.07);
    sy_profile_site sum_of_all = sums();
    must(sum_of_all.allocated_bytes == sum_of_all.freed_bytes);
    must(sum_of_all.allocated == sum_of_all.freed);
    must(sy_verify() == 0);
}
RUN(estimates_are_unbiased)

/* Entries of a table are replaced one by one: each new object takes the place of the one before. */
static void live_bytes_are_those_of_the_heap_here(void *arg) {
    enum { COUNT = 100000 };
    static void *objects[COUNT];
    uint64_t random = 7, live = 0;
    (void)arg;
    begin(1024);
    for (int i = 0; i < COUNT; i++) objects[i] = sy_malloc_counted(200);
    for (int i = 0; i < COUNT; i++) {
        size_t size = 16 + next_random(&random) % 2000;
        sy_free(objects[i]);
        objects[i] = i % 2 ? sy_malloc_counted(size) : sy_malloc_counted(200);
        live += i % 2 ? size : 200;
    }
    sy_profile_site sum = sums();
    double ratio = (double)(sum.allocated_bytes - sum.freed_bytes) / (double)live;
    double objects_ratio = (double)(sum.allocated - sum.freed) / COUNT;
    printf("live bytes %.4f, live objects %.4f of the truth\n", ratio, objects_ratio);
    must(ratio > 0.97 && ratio < 1.03);
    must(objects_ratio > 0.97 && objects_ratio < 1.03);
    for (int i = 0; i < COUNT; i++) sy_free(objects[i]);
    sum = sums();
    must(sum.allocated_bytes == sum.freed_bytes);
    must(sy_verify() == 0);
}
RUN(live_bytes_are_those_of_the_heap)

static void spans_are_in_the_profile_here(void *arg) {
    enum { COUNT = 2000, SIZE = 1 << 20 };
    static void *spans[COUNT];
    (void)arg;
    begin(SIZE);
    for (int i = 0; i < COUNT; i++) spans[i] = sy_malloc_counted(SIZE);
    sy_profile_site sum = sums();
    must(is_near((double)sum.allocated, COUNT, 0.1)); /* four standard deviations */
    for (int i = 0; i < COUNT; i++) spans[i] = sy_realloc_counted(spans[i], SIZE + (SIZE >> 4));
    sum = sums();
    uint64_t live = sum.allocated_bytes - sum.freed_bytes;
    must(is_near((double)live, COUNT * (SIZE + SIZE / 16.0), 0.1));
    for (int i = 0; i < COUNT; i++) sy_free(spans[i]);
    must(sums().allocated_bytes == sums().freed_bytes);
}
RUN(spans_are_in_the_profile)

/* ---- an object's life ---- */

static void a_sampled_object_is_an_object_here(void *arg) {
    (void)arg;
    begin(ALL);
    for (size_t size = 9; size <= SY_CLASS_SIZE_MAX; size = size * 3 / 2) {
        unsigned char *object = take_apart(size);
        size_t usable = sy_usable_size(object);
        must(usable == sy_class_size(sy_class_for(size)));
        memset(object, (int)size, usable);
        must(sy_expand(object, usable) && !sy_expand(object, usable + 1));
        must(sy_realloc(object, usable) == object);
        unsigned char *moved = sy_realloc(object, usable + 1);
        must(moved && moved != object);
        for (size_t i = 0; i < usable; i++) must(moved[i] == (unsigned char)size);
        sy_free(moved);
        sy_free_sized(take_apart(size), size);
    }
    char *aligned;
    do {
        aligned = sy_aligned_alloc_counted(256, 300);
        must((uintptr_t)aligned % 256 == 0);
        if (!is_apart(aligned)) sy_free(aligned);
    } while (!is_apart(aligned));
    sy_free_aligned_sized(aligned, 256, 300);
    must(sy_verify() == 0);
}
RUN(a_sampled_object_is_an_object)

static sy_fault_kind last_fault;

static void note_fault(const sy_fault *fault) { last_fault = fault->kind; }

static void misuse_of_a_sampled_object_is_a_fault_here(void *arg) {
    (void)arg;
    begin(ALL);
    sy_set_fault_handler(note_fault);
    char *object = take_apart(100);
    sy_free(object + 16);
    must(last_fault == SY_FAULT_MISALIGNED_POINTER);
    last_fault = 0;
    sy_free_sized(object, 5000);
    must(last_fault == SY_FAULT_WRONG_SIZE);
    last_fault = 0;
    sy_free(object);
    must(last_fault == 0);
    sy_free(object);
    must(last_fault == SY_FAULT_DOUBLE_FREE);
}
RUN(misuse_of_a_sampled_object_is_a_fault)

static void their_slabs_go_back_here(void *arg) {
    enum { COUNT = 5000 };
    static void *objects[COUNT];
    (void)arg;
    begin(ALL);
    for (int i = 0; i < COUNT; i++) objects[i] = sy_malloc_counted(1000);
    for (int i = 0; i < COUNT; i++) sy_free(objects[i]);
    sy_thread_flush();
    sy_trim();
    for (int i = 0; i < COUNT; i++) must(!sy_slab_at((uintptr_t)objects[i]));
    must(sy_verify() == 0);
}
RUN(their_slabs_go_back)

static void a_sample_has_its_stack_here(void *arg) {
    sy_profile_site site;
    (void)arg;
    begin(ALL);
    void *object = take_apart(100);
    bool found = false;
    for (uint32_t i = 0; sy_profile_get_site(i, &site); i++) {
        const void *const *frames;
        found |= site.allocated > site.freed && sy_stack_frames(site.stack, &frames) > 3;
    }
    must(found);
    sy_free(object);
}
RUN(a_sample_has_its_stack)

/* ---- profiles ---- */

static void a_profile_begins_and_ends_here(void *arg) {
    (void)arg;
    must(sy_profile_start(0) == -1 && errno == EINVAL);
    must(sy_profile_start(((size_t)1 << 30) + 1) == -1 && errno == EINVAL);
    must(sy_profile_stop() == -1 && errno == ENOENT);
    must(sy_profile_write(1) == -1 && errno == ENOENT);
    begin(ALL);
    char *object = take_apart(100);
    uint64_t taken = sums().allocated;
    sy_profile_end();
    must(sy_profile_stop() == -1 && errno == ENOENT);
    for (int i = 0; i < 10000; i++) sy_free(sy_malloc_counted(100));
    uint64_t after = sums().allocated;
    must(after == taken); /* a count that began before the end samples nothing after it */
    must(sums().allocated == sums().freed + 1);
    sy_free(object);
    must(sums().allocated == sums().freed);
    begin(ALL); /* the next profile has forgotten all */
    must(sums().allocated == 0 && sy_profile_records == 0);
}
RUN(a_profile_begins_and_ends)

static void the_option_begins_a_profile_here(void *arg) {
    (void)arg;
    must(sy_set_options("profile=1") == 0);
    must(sy_profile_mean() == 1);
    sy_free(take_apart(100));
    must(sy_set_options("profile=off") == 0);
    must(sy_profile_mean() == 0);
    must(sy_set_options("profile") == 0);
    must(sy_profile_mean() == SY_PROFILE_MEAN);
    sy_profile_end(); /* from now on the option says nothing */
    must(sy_profile_mean() == 0);
}
RUN(the_option_begins_a_profile)

static void objects_that_are_checked_are_not_sampled_here(void *options) {
    must(sy_set_options(options) == 0);
    begin(ALL);
    for (int i = 0; i < 5000; i++) sy_free(sy_malloc_counted(100));
    must(sums().allocated == 0);
    must(sy_verify() == 0);
}

static void objects_that_are_checked_are_not_sampled(void **state) {
    needs(SY_OS_STACKS | SY_OS_GUARDS);
    static char *const options[] = {"check", "guard=1/100", "zero", "fail=1000000000"};
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(in_child(objects_that_are_checked_are_not_sampled_here, options[i]), 0);
}

/* A sample can be guarded and in the profile. */
static void both_kinds_of_samples_share_a_count_here(void *arg) {
    enum { COUNT = 50000 };
    unsigned guarded = 0, apart = 0;
    (void)arg;
    must(sy_set_options("sample=1/10") == 0);
    begin(9 * 112); /* one object in ten */
    for (int i = 0; i < COUNT; i++) {
        void *object = sy_malloc_counted(112);
        bool is_guarded = sy_guard_owns((uintptr_t)object);
        guarded += is_guarded;
        apart += !is_guarded && is_apart(object);
        sy_free(object);
    }
    must(is_near((double)sums().allocated, COUNT, 0.06));
    must(is_near(guarded, COUNT * 0.1, 0.06));
    must(is_near(apart, COUNT * 0.09, 0.06)); /* in the profile, and not guarded */
    must(sums().allocated == sums().freed);
}

static void both_kinds_of_samples_share_a_count(void **state) {
    needs(SY_OS_STACKS | SY_OS_GUARDS);
    (void)state;
    assert_int_equal(in_child(both_kinds_of_samples_share_a_count_here, NULL), 0);
}

/* ---- refusals and forks ---- */

/* The n-th call to the system from the beginning of a profile on fails. The child ends with 0 if
 * there are fewer calls. */
static void refused_here(void *nth) {
    sy_free(sy_malloc(100));
    sy_interval_seed(42);
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)nth);
    if (sy_profile_begin(ALL) != 0) must(errno == ENOMEM && sy_profile_mean() == 0);
    errno = 4711;
    for (int i = 0; i < 3000; i++) {
        void *object = sy_malloc_counted(100);
        must(object != NULL);
        memset(object, 1, 100);
        sy_free(object);
    }
    must(errno == 4711);
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    sy_fake_succeed(SY_FAKE_ANY);
    must(sums().allocated == sums().freed);
    must(sy_verify() == 0);
    _exit(failed ? 1 : 0);
}

static void refusals_leave_samples_out(void **state) {
    needs(SY_OS_STACKS);
    uint64_t nth = 1;
    (void)state;
    while (WEXITSTATUS(in_child(refused_here, &nth)) == 1) nth++;
    assert_int_equal(in_child(refused_here, &nth), 0);
    assert_true(nth > 3); /* the table, its memory, records */
}

static void records_that_get_no_memory_are_counted_here(void *arg) {
    (void)arg;
    sy_free(sy_malloc(100));
    void *first = sy_class_alloc_apart(sy_class_for(100)); /* its slab has memory now */
    begin(ALL);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    void *objects[100];
    for (int i = 0; i < 100; i++) objects[i] = sy_malloc_counted(100);
    sy_fake_succeed(SY_FAKE_COMMIT);
    must(sy_profile_left_out() > 0);
    for (int i = 0; i < 100; i++) sy_free(objects[i]);
    sy_free(first);
    must(sums().allocated == 0);
    must(sy_verify() == 0);
}
RUN(records_that_get_no_memory_are_counted)

static void count_on(void *arg) {
    void *object = *(void **)arg;
    uint64_t live = sums().allocated - sums().freed;
    sy_free(object);
    must(sums().allocated - sums().freed < live);
    sy_free(take_apart(100));
    must(sy_verify() == 0);
}

static void a_child_has_the_profile_here(void *arg) {
    (void)arg;
    begin(ALL);
    void *object = take_apart(100);
    must(in_child(count_on, &object) == 0);
    sy_free(object);
    must(sums().allocated == sums().freed);
}
RUN(a_child_has_the_profile)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_unbiased),
        cmocka_unit_test(live_bytes_are_those_of_the_heap),
        cmocka_unit_test(spans_are_in_the_profile),
        cmocka_unit_test(a_sampled_object_is_an_object),
        cmocka_unit_test(misuse_of_a_sampled_object_is_a_fault),
        cmocka_unit_test(their_slabs_go_back),
        cmocka_unit_test(a_sample_has_its_stack),
        cmocka_unit_test(a_profile_begins_and_ends),
        cmocka_unit_test(the_option_begins_a_profile),
        cmocka_unit_test(objects_that_are_checked_are_not_sampled),
        cmocka_unit_test(both_kinds_of_samples_share_a_count),
        cmocka_unit_test(refusals_leave_samples_out),
        cmocka_unit_test(records_that_get_no_memory_are_counted),
        cmocka_unit_test(a_child_has_the_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
