/*
 * test_thread.c: the library's data about a thread: a record while it lives, shut slots before and
 * after.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/stats.h>

#include "magazine/client.h"
#include "magazine/store.h"
#include "magazine/thread.h"
#include "os/fake.h"
#include "os/os.h"
#include "os/start.h"
#include "support/child.h"
#include "support/services.h"
#include "support/small_pages.h"

static bool is_shut(const sy_loaded_slot *slots) {
    for (unsigned number = 0; number < SY_CLIENTS_MAX; number += 97)
        if (slots[number].top > slots[number].base || slots[number].top < slots[number].limit)
            return false;
    return true;
}

static void *look_at_shut_slots(void *arg) {
    const sy_loaded_slot *shut = sy_abi_1;
    for (unsigned number = SY_CLIENTS_MAX / 8; number < SY_CLIENTS_MAX * 7 / 8; number += 97)
        must(keeps_small_pages(&shut[number]));
    return arg;
}

static void shut_slots_get_no_huge_page(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    if (!has_small_page_advice()) skip();
    must(sy_start() == 0);
    in_thread(look_at_shut_slots, NULL);
}

static void *find_record(void *arg) {
    must(is_shut(sy_abi_1));
    sy_loaded_slot *shut = sy_abi_1;
    sy_thread *thread = sy_thread_self();
    must(thread != NULL && thread == sy_thread_self());
    must((sy_loaded_slot *)thread->slots == sy_abi_1 && sy_abi_1 != shut);
    must(is_shut(sy_abi_1));
    must(atomic_load(&thread->state) == SY_THREAD_RUNNING);
    *(sy_thread **)arg = thread;
    return NULL;
}

static void a_thread_has_one_record(void **state) {
    (void)state;
    sy_thread *thread = NULL;
    in_thread(find_record, &thread);
    assert_non_null(thread);
    assert_int_equal(atomic_load(&thread->state), SY_THREAD_FREE);
}

static void an_ended_threads_record_is_the_next_ones(void **state) {
    (void)state;
    sy_thread *first, *second;
    unsigned before = sy_thread_count();
    for (int i = 0; i < 100; i++) {
        in_thread(find_record, &first);
        in_thread(find_record, &second);
        assert_ptr_equal(first, second);
    }
    assert_int_equal(sy_thread_count(), before);
}

static pthread_barrier_t barrier;

static void *wait_with_record(void *arg) {
    find_record(arg);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void threads_at_a_time_have_records_of_their_own(void **state) {
    (void)state;
    enum { COUNT = 40 };
    pthread_t threads[COUNT];
    sy_thread *records[COUNT];
    unsigned before = sy_thread_count();
    pthread_barrier_init(&barrier, NULL, COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_with_record, &records[i]), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(sy_thread_count(), before + COUNT);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(records[i], records[j]);
            assert_ptr_not_equal(records[i]->slots, records[j]->slots);
        }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    assert_int_equal(sy_thread_count(), before);
    pthread_barrier_destroy(&barrier);
}

static void *go_idle(void *arg) {
    (void)arg;
    sy_thread_idle(); /* nothing to park yet */
    sy_thread *thread = sy_thread_self();
    sy_thread_idle();
    must(is_shut(sy_abi_1) && sy_abi_1 != (sy_loaded_slot *)thread->slots);
    must(atomic_load(&thread->state) == SY_THREAD_PARKED);
    sy_thread_idle();
    must(atomic_load(&thread->state) == SY_THREAD_PARKED);
    must(sy_thread_self() == thread);
    must(atomic_load(&thread->state) == SY_THREAD_RUNNING);
    must(sy_abi_1 == (sy_loaded_slot *)thread->slots);
    sy_thread_idle();
    return NULL;
}

static void an_idle_thread_is_shut_until_it_is_back(void **state) {
    (void)state;
    unsigned before = sy_thread_count();
    in_thread(go_idle, NULL);
    assert_int_equal(sy_thread_count(), before);
}

static void *attach_then_go_idle_and_back(void *arg) {
    sy_thread *thread = sy_thread_self();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++) {
        sy_thread_idle();
        must(sy_thread_self() == thread);
    }
    sy_thread_idle();
    atomic_store((_Atomic(sy_thread *) *)arg, thread);
    return NULL;
}

/* Another thread holds the lock all the time: a thread that waited for it would wait without
 * end. */
static void going_idle_and_coming_back_takes_no_lock(void **state) {
    (void)state;
    sy_thread_self();
    _Atomic(sy_thread *) thread = NULL;
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    pthread_t worker;
    must(pthread_create(&worker, NULL, attach_then_go_idle_and_back, &thread) == 0);
    pthread_barrier_wait(&barrier);
    sy_threads_lock();
    pthread_barrier_wait(&barrier);
    while (!atomic_load(&thread)) sched_yield();
    sy_threads_unlock(); /* the worker takes the lock at its end */
    pthread_join(worker, NULL);
    pthread_barrier_destroy(&barrier);
}

static void *come_back(void *arg) {
    sy_thread *thread = sy_thread_self();
    sy_thread_idle();
    atomic_store((_Atomic(sy_thread *) *)arg, thread);
    pthread_barrier_wait(&barrier);
    must(sy_thread_self() == thread);
    must(atomic_load(&thread->state) == SY_THREAD_RUNNING);
    must(thread->slots[SY_CLIENTS_MAX - 1].mark == 1); /* all that the claiming thread wrote */
    thread->slots[SY_CLIENTS_MAX - 1].mark = 0;
    return NULL;
}

static void a_thread_whose_slots_are_claimed_waits(void **state) {
    (void)state;
    _Atomic(sy_thread *) shared = NULL;
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    pthread_t worker;
    must(pthread_create(&worker, NULL, come_back, &shared) == 0);
    sy_thread *thread;
    while ((thread = atomic_load(&shared)) == NULL) sched_yield();
    sy_threads_lock();
    assert_true(sy_threads_park());
    assert_true(sy_thread_claim(thread));
    assert_false(sy_thread_claim(thread));
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) {
        sched_yield();
        assert_int_equal(atomic_load(&thread->state), SY_THREAD_CLAIMED);
    }
    thread->slots[SY_CLIENTS_MAX - 1].mark = 1;
    sy_thread_unclaim(thread);
    sy_threads_unlock();
    pthread_join(worker, NULL);
    pthread_barrier_destroy(&barrier);
}

static void *find_none(void *call) {
    unsigned before = sy_thread_count();
    sy_fake_fail_from(*(sy_fake_call *)call, 1);
    must(sy_thread_self() == NULL);
    must(is_shut(sy_abi_1));
    must(sy_thread_count() == before);
    sy_fake_succeed(*(sy_fake_call *)call);
    must(sy_thread_self() != NULL);
    return NULL;
}

static void without_a_record(void *call) {
    must(sy_threads_part.start() == 0);
    size_t before = sy_fake_reserved();
    in_thread(find_none, call);
    sy_fake_reset();
    must(sy_fake_reserved() > before);
}

static void a_record_that_is_not_to_be_had_is_asked_for_again(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT, SY_FAKE_AT_THREAD_EXIT};
    for (int i = 0; i < 3; i++) assert_int_equal(in_child(without_a_record, &calls[i]), 0);
}

static void *use_a_slot(void *arg) {
    sy_thread *thread = sy_thread_self();
    thread->slots[1000].exchanges = 1; /* as a client with this number would */
    atomic_store(&thread->slots_end, 1001);
    *(sy_thread **)arg = thread;
    return NULL;
}

static void trim_takes_the_slots_of_ended_threads(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_thread *thread;
    sy_threads_trim();
    assert_int_equal(sy_threads_trim(), 0);
    in_thread(use_a_slot, &thread);
    size_t bytes = sy_threads_bytes();
    assert_true(sy_threads_trim() >= 1001 * sizeof(sy_slot));
    assert_int_equal(thread->slots[1000].exchanges, 0);
    assert_true(sy_threads_bytes() + 1001 * sizeof(sy_slot) == bytes);
    sy_thread *again;
    in_thread(find_record, &again);
    assert_ptr_equal(again, thread);
}

typedef struct used_one {
    sy_cache *cache;
    sy_slot *unused; /* the slots of clients 64 to 127 */
} used_one;

/* Uses a cache, and makes slots that the thread never used unwritable. */
static void *use_one_of_many(void *arg) {
    used_one *one = arg;
    sy_cache_free(one->cache, sy_cache_alloc(one->cache));
    one->unused = (sy_slot *)sy_abi_1 + 64;
    must(mprotect(one->unused, 64 * sizeof(sy_slot), PROT_READ) == 0);
    return NULL;
}

static void the_end_of_a_thread_does_not_write_to_unused_slots(void **state) {
    (void)state;
    if (sy_os_page_size() > 64 * sizeof(sy_slot)) skip();
    used_one one = {sy_cache_create(&(sy_cache_config){.name = "orders", .size = 64}), NULL};
    in_thread(use_one_of_many, &one);
    assert_int_equal(mprotect(one.unused, 64 * sizeof(sy_slot), PROT_READ | PROT_WRITE), 0);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_get_stats(one.cache, &stats), 0);
    assert_int_equal(stats.in_loaded, 0);
    sy_cache_destroy(one.cache);
}

static void a_trim_that_fails_keeps_the_record(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_thread *thread;
    in_thread(use_a_slot, &thread);
    sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    assert_int_equal(sy_threads_trim(), 0);
    sy_fake_reset();
    assert_true(sy_threads_trim() > 0);
    assert_int_equal(sy_threads_trim(), 0);
}

static int start(void **state) {
    (void)state;
    return sy_threads_part.start();
}

static void a_thread_keeps_a_few_empty_magazines(void **state) {
    (void)state;
    sy_thread *thread = sy_thread_self();
    for (int i = 0; i < 5 * SY_EMPTIES; i++) {
        sy_thread_put_empty(thread, sy_store_take());
        assert_in_range(thread->empties, 1, SY_EMPTIES);
    }
    while (thread->empties > 0) sy_store_put(sy_thread_take_empty(thread));
    assert_int_equal(sy_store_verify(), 0);
}

static void *keep_empty_magazines(void *arg) {
    for (int i = 0; i < SY_EMPTIES; i++) sy_thread_put_empty(sy_thread_self(), sy_store_take());
    return arg;
}

static uint32_t lowest_in_store(void) {
    sy_magazine *magazine = sy_store_take();
    uint32_t number = magazine->number;
    sy_store_put(magazine);
    return number;
}

static void an_ended_threads_empty_magazines_are_stored(void **state) {
    (void)state;
    uint32_t before = lowest_in_store();
    in_thread(keep_empty_magazines, NULL);
    assert_int_equal(lowest_in_store(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First, before there are records: the test needs a call that makes one. */
        cmocka_unit_test(a_record_that_is_not_to_be_had_is_asked_for_again),
        cmocka_unit_test(shut_slots_get_no_huge_page),
        cmocka_unit_test(a_thread_has_one_record),
        cmocka_unit_test(an_ended_threads_record_is_the_next_ones),
        cmocka_unit_test(threads_at_a_time_have_records_of_their_own),
        cmocka_unit_test(an_idle_thread_is_shut_until_it_is_back),
        cmocka_unit_test(going_idle_and_coming_back_takes_no_lock),
        cmocka_unit_test(a_thread_whose_slots_are_claimed_waits),
        cmocka_unit_test(trim_takes_the_slots_of_ended_threads),
        cmocka_unit_test(the_end_of_a_thread_does_not_write_to_unused_slots),
        cmocka_unit_test(a_trim_that_fails_keeps_the_record),
        cmocka_unit_test(a_thread_keeps_a_few_empty_magazines),
        cmocka_unit_test(an_ended_threads_empty_magazines_are_stored),
    };
    return cmocka_run_group_tests_name("thread", tests, start, NULL);
}
