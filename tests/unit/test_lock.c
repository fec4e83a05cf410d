/*
 * test_lock.c: the lock keeps others out, wakes who sleeps on it, and in a debug build knows its
 * order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>

#include "os/fake.h"
#include "os/lock.h"
#include "support/child.h"

enum { THREADS = 4, ROUNDS = 20000 };

static sy_lock lock = SY_LOCK_INIT(SY_RANK_CACHE);
static uint64_t guarded;

static void *count_under_lock(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        sy_lock_acquire(&lock);
        guarded++;
        sy_lock_release(&lock);
    }
    return arg;
}

static void holders_exclude_one_another(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    guarded = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_under_lock, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(guarded, THREADS * ROUNDS);
    assert_int_equal(atomic_load(&lock.word), 0);
}

static void *add_one(void *arg) {
    sy_lock_acquire(&lock);
    guarded++;
    sy_lock_release(&lock);
    return arg;
}

static void a_sleeper_is_woken(void **state) {
    (void)state;
    pthread_t thread;
    guarded = 0;
    sy_lock_acquire(&lock);
    assert_int_equal(pthread_create(&thread, NULL, add_one, NULL), 0);
    while (atomic_load(&lock.word) != 2) sched_yield();
    assert_int_equal(guarded, 0);
    sy_lock_release(&lock);
    pthread_join(thread, NULL);
    assert_int_equal(guarded, 1);
}

static void a_lock_can_be_made_at_run_time(void **state) {
    (void)state;
    sy_lock made;
    sy_lock_init(&made, SY_RANK_STORE);
    sy_lock_acquire(&made);
    assert_int_equal(atomic_load(&made.word), 1);
    sy_lock_release(&made);
    assert_int_equal(atomic_load(&made.word), 0);
}

#ifdef SY_DEBUG
static void take_out_of_order(void *arg) {
    (void)arg;
    static sy_lock inner = SY_LOCK_INIT(SY_RANK_STORE), outer = SY_LOCK_INIT(SY_RANK_CHUNK);
    sy_lock_acquire(&inner);
    sy_lock_acquire(&outer);
}

static void release_unheld(void *arg) {
    (void)arg;
    static sy_lock unheld = SY_LOCK_INIT(SY_RANK_SIDE);
    sy_lock_release(&unheld);
}

static void take_out_of_order_caught(void *arg) {
    (void)arg;
    must(sy_fake_catch(take_out_of_order, NULL));
    must(strcmp(sy_fake_written(), "slabyard: a lock was taken out of order\n") == 0);
}

static void release_unheld_caught(void *arg) {
    (void)arg;
    must(sy_fake_catch(release_unheld, NULL));
    must(strcmp(sy_fake_written(), "slabyard: a lock was released unheld\n") == 0);
}

static void a_wrong_order_is_seen(void **state) {
    (void)state;
    assert_int_equal(in_child(take_out_of_order_caught, NULL), 0);
}

static void a_release_unheld_is_seen(void **state) {
    (void)state;
    assert_int_equal(in_child(release_unheld_caught, NULL), 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_exclude_one_another),
        cmocka_unit_test(a_sleeper_is_woken),
        cmocka_unit_test(a_lock_can_be_made_at_run_time),
#ifdef SY_DEBUG
        cmocka_unit_test(a_wrong_order_is_seen),
        cmocka_unit_test(a_release_unheld_is_seen),
#endif
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
