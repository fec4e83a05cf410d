/*
 * test_facts.c: the facts about the system: who reads them, and what stays if it cannot be read.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/facts.h"
#include "os/fake.h"
#include "support/ages.h"
#include "support/services.h"

static const size_t LIMIT = 123456789;

static int prepare(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

static void where_files_cannot_be_read_the_facts_stay(void **state) {
    needs(SY_OS_RESIDENT);
    (void)state;
    sy_fake_set_memory_limit(LIMIT);
    assert_int_equal(sy_facts_now.memory_limit, LIMIT);
    sy_fake_set_resident(SIZE_MAX); /* no file of the system can be read */
    sy_fake_set_memory_limit(2 * LIMIT);
    assert_int_equal(sy_facts_now.memory_limit, LIMIT);
    assert_int_equal(sy_facts_now.resident, 0);
    sy_fake_set_resident(1000);
    assert_int_equal(sy_facts_now.memory_limit, 2 * LIMIT);
    assert_int_equal(sy_facts_now.resident, 1000);
}

static unsigned readings;

static void read_within(void) {
    readings++;
    if (readings < 3) sy_facts_read_memory();
}

static void one_thread_reads_at_a_time(void **state) {
    (void)state;
    sy_fake_run_before_reading(read_within);
    readings = 0;
    sy_facts_read_memory();
    assert_int_equal(readings, 1);
    sy_facts_read();
    assert_int_equal(readings, 2);
}

static _Atomic bool read_to_the_end;

static void end_here_if_possible(void) { pthread_testcancel(); }

static void *read_cancelled(void *unused) {
    sy_fake_run_before_reading(end_here_if_possible);
    pthread_cancel(pthread_self());
    errno = KEPT_ERRNO;
    sy_facts_read();
    read_to_the_end = errno == KEPT_ERRNO;
    pthread_testcancel();
    return unused;
}

static void a_reading_is_no_cancellation_point(void **state) {
    needs(SY_OS_OBSERVER);
    (void)state;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, read_cancelled, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(result == PTHREAD_CANCELED);
    assert_true(read_to_the_end);
}

static void after_a_fork_the_child_reads(void *arg) {
    (void)arg;
    sy_fake_set_memory_limit(3 * LIMIT);
    must(sy_facts_now.memory_limit == 3 * LIMIT);
}

static void fork_in_a_reading(void) {
    sy_fake_run_before_reading(NULL);
    must(in_child(after_a_fork_the_child_reads, NULL) == 0);
}

/* The parent's thread that was reading does not exist in the child. */
static void a_child_of_a_reading_reads(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    must(sy_start() == 0);
    sy_fake_run_before_reading(fork_in_a_reading);
    sy_facts_read();
}

#define FACT(name) cmocka_unit_test_setup(name, prepare)

int main(void) {
    const struct CMUnitTest tests[] = {
        FACT(where_files_cannot_be_read_the_facts_stay),
        FACT(one_thread_reads_at_a_time),
        FACT(a_reading_is_no_cancellation_point),
        FACT(a_child_of_a_reading_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
