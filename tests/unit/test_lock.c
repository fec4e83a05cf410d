/*
 * test_lock.c: the lock keeps other threads out, wakes the threads that sleep on it, knows its
 * order in a debug build, and lets a thread fork that holds locks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "os/fake.h"
#include "os/lock.h"
#include "os/os.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

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

static bool is_waited(sy_lock *word) { return atomic_load(&word->word) >> 31; }

static void a_sleeper_is_woken(void **state) {
    (void)state;
    pthread_t thread;
    guarded = 0;
    sy_lock_acquire(&lock);
    assert_int_equal(pthread_create(&thread, NULL, add_one, NULL), 0);
    while (!is_waited(&lock)) sched_yield();
    assert_int_equal(guarded, 0);
    sy_lock_release(&lock);
    pthread_join(thread, NULL);
    assert_int_equal(guarded, 1);
}

/* A thread that wakes up leaves the word such that the next sleeper is woken too. */
static void all_sleepers_are_woken(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    guarded = 0;
    sy_lock_acquire(&lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_one, NULL), 0);
    sy_fake_await_waiting(THREADS);
    sy_lock_release(&lock);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(guarded, THREADS);
}

static void a_lock_can_be_made_at_run_time(void **state) {
    (void)state;
    sy_lock made;
    sy_lock_init(&made, SY_RANK_STORE);
    sy_lock_acquire(&made);
    assert_int_equal(atomic_load(&made.word), sy_os_thread());
    assert_true(sy_lock_is_mine(&made));
    sy_lock_release(&made);
    assert_int_equal(atomic_load(&made.word), 0);
}

/* ---- around a fork ---- */

static sy_lock first = SY_LOCK_INIT(SY_RANK_START), second = SY_LOCK_INIT(SY_RANK_CACHE),
               third = SY_LOCK_INIT(SY_RANK_STORE);
static unsigned recovered;
static pthread_barrier_t barrier;

static void recover(void) { recovered++; }

static bool is_free(sy_lock *it) { return atomic_load(&it->word) == 0; }

static void a_thread_that_forks_may_take_what_it_holds_for_it(void **state) {
    (void)state;
    sy_lock_begin_fork();
    assert_true(sy_lock_hold(&first));
    assert_true(sy_lock_hold(&second));
    assert_true(sy_lock_is_forking());
    sy_lock_acquire(&first);
    sy_lock_acquire(&second);
    sy_lock_release(&second);
    sy_lock_release(&first);
    assert_false(is_free(&first) || is_free(&second)); /* to other threads */
    assert_false(sy_lock_drop(&second));
    assert_false(sy_lock_drop(&first));
    sy_lock_end_fork();
    assert_true(is_free(&first) && is_free(&second));
    assert_false(sy_lock_is_forking());
}

static void a_fork_within_a_fork_takes_and_drops_the_rest(void **state) {
    (void)state;
    sy_lock_begin_fork();
    assert_true(sy_lock_hold(&first));
    sy_lock_begin_fork(); /* as the handler of a signal may */
    assert_true(sy_lock_hold(&first) && sy_lock_hold(&second));
    sy_lock_drop(&second);
    sy_lock_drop(&first);
    sy_lock_end_fork();
    assert_true(is_free(&second) && !is_free(&first));
    assert_true(sy_lock_hold(&second));
    sy_lock_drop(&second);
    sy_lock_drop(&first);
    sy_lock_end_fork();
    assert_true(is_free(&first) && is_free(&second));
}

/* A signal handler interrupts work that holds locks, and forks. In the child the thread goes on
 * with this work, and `recover` runs when the work has released its last lock. */
static void a_child_goes_on_with_what_was_interrupted(void **state) {
    (void)state;
    recovered = 0;
    sy_lock_acquire(&first);
    sy_lock_acquire(&third);
    sy_lock_begin_fork();
    assert_true(sy_lock_hold(&first) && sy_lock_hold(&second) && sy_lock_hold(&third));
    sy_lock_begin_child();
    assert_false(sy_lock_drop(&first) || sy_lock_drop(&second) || sy_lock_drop(&third));
    sy_lock_end_child(recover);
    assert_true(is_free(&second) && !is_free(&first) && !is_free(&third));
    assert_true(sy_lock_is_mine(&first));
    sy_lock_release(&third);
    assert_int_equal(recovered, 0);
    sy_lock_release(&first);
    assert_int_equal(recovered, 1);
    assert_true(is_free(&first) && is_free(&third));
}

static void *hold_second(void *arg) {
    sy_lock_acquire(&second);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_lock_release(&second);
    return arg;
}

/* The other thread may be waiting for `third`, which this thread cannot release. So this thread
 * does not wait for `second`. */
static void a_burdened_thread_goes_on_without(void **state) {
    (void)state;
    pthread_t thread;
    recovered = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold_second, NULL), 0);
    pthread_barrier_wait(&barrier);
    sy_lock_acquire(&third);
    sy_lock_begin_fork();
    assert_true(sy_lock_hold(&first));
    assert_false(sy_lock_hold(&second));
    assert_false(sy_lock_has(&second));
    assert_false(sy_lock_gave_way());
    sy_lock_drop(&first);
    sy_lock_drop(&second);
    sy_lock_end_fork();
    sy_lock_release(&third);
    assert_false(is_free(&second));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_true(is_free(&first) && is_free(&second) && is_free(&third));
}

/* Forks while it holds `second`, as in a handler that interrupted work. */
static void *fork_burdened(void *arg) {
    sy_lock_acquire(&second);
    sy_lock_begin_fork();
    pthread_barrier_wait(&barrier);
    must(sy_lock_hold(&first)); /* the other thread has to give way */
    sy_lock_drop(&first);
    sy_lock_end_fork();
    sy_lock_release(&second);
    return arg;
}

static void one_that_is_not_gives_way(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    sy_lock_begin_fork();
    assert_true(sy_lock_hold(&first));
    assert_int_equal(pthread_create(&thread, NULL, fork_burdened, NULL), 0);
    pthread_barrier_wait(&barrier);
    assert_false(sy_lock_hold(&second));
    assert_true(sy_lock_gave_way());
    sy_lock_drop(&first);
    sy_lock_end_fork();
    bool had = false;
    while (!had) { /* needs more than one try on a slow machine */
        sy_lock_wait_for_way();
        sy_lock_begin_fork();
        had = sy_lock_hold(&first) && sy_lock_hold(&second);
        assert_true(had == !sy_lock_gave_way());
        sy_lock_drop(&second);
        sy_lock_drop(&first);
        sy_lock_end_fork();
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

/* The process becomes a child. */
static void be_a_child(void) {
    recovered = 0;
    sy_lock_begin_child();
    sy_lock_drop(&second);
    sy_lock_end_child(recover);
}

static void go_on_in_child(void) {
    be_a_child();
    must(recovered == 0 && sy_lock_is_mine(&second));
    sy_lock_release(&second);
    must(recovered == 1 && is_free(&second));
}

/* fork without hooks, in newer C libraries. */
extern __attribute__((weak)) pid_t _Fork(void);

/* After the system call alone, the C library has the parent's number for the child's thread. */
static pid_t fork_without_hooks(void) {
    if (&_Fork) return _Fork();
#if defined(__s390x__) /* the stack comes first */
    return (pid_t)syscall(SYS_clone, NULL, (long)SIGCHLD, NULL, NULL, NULL);
#else
    return (pid_t)syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

/* Runs `body` in a child, without the library's hooks for fork. */
static int in_bare_child(void (*body)(void)) {
    int status = -1;
    pid_t pid = fork_without_hooks();
    if (pid == 0) {
        alarm(60); /* a lock that it does not have as its own, it would await */
        body();
        _exit(0);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static void a_child_has_a_number_of_its_own(void **state) {
    (void)state;
    sy_lock_acquire(&second);
    sy_lock_begin_fork();
    assert_int_equal(in_bare_child(go_on_in_child), 0);
    sy_lock_drop(&second);
    sy_lock_end_fork();
    sy_lock_release(&second);
    assert_true(is_free(&second));
}

/* Holds `second` until the other thread of the child waits for it. */
static void *let_go_when_awaited(void *arg) {
    sy_lock_acquire(&second);
    pthread_barrier_wait(&barrier);
    sy_fake_await_waiting(1);
    sy_lock_release(&second);
    return arg;
}

static void wait_in_child(void *arg) {
    (void)arg;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    must(pthread_create(&thread, NULL, let_go_when_awaited, NULL) == 0);
    pthread_barrier_wait(&barrier);
    sy_lock_begin_fork();
    must(sy_lock_hold(&second) && !sy_lock_gave_way());
    sy_lock_drop(&second);
    sy_lock_end_fork();
    pthread_join(thread, NULL);
}

static void *be_burdened(void *arg) {
    sy_lock_acquire(&first);
    sy_lock_begin_fork();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_lock_end_fork();
    sy_lock_release(&first);
    return arg;
}

/* A thread of the parent that forks while it holds a lock does not exist in the child. So a fork in
 * the child waits for locks as usual. */
static void a_child_has_no_burden_of_others(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    if (THREAD_SANITIZED) skip(); /* ThreadSanitizer allows no new thread in the child */
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, be_burdened, NULL), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(in_child(wait_in_child, NULL), 0); /* with the library's hooks */
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

#ifdef SY_DEBUG
static void take_out_of_order(void *arg) {
    (void)arg;
    static sy_lock inner = SY_LOCK_INIT(SY_RANK_STORE), outer = SY_LOCK_INIT(SY_RANK_CHUNK);
    sy_lock_acquire(&inner);
    sy_lock_acquire(&outer);
}

static void call_without(void *arg) {
    (void)arg;
    static sy_lock wanted = SY_LOCK_INIT(SY_RANK_SIDE);
    SY_HOLDS(&wanted);
}

static void a_lock_that_is_missing_is_seen(void **state) {
    (void)state;
    static sy_lock wanted = SY_LOCK_INIT(SY_RANK_SIDE);
    sy_lock_acquire(&wanted);
    SY_HOLDS(&wanted);
    sy_lock_release(&wanted);
    assert_true(sy_fake_catch(call_without, NULL));
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
        cmocka_unit_test(a_thread_that_forks_may_take_what_it_holds_for_it),
        cmocka_unit_test(a_fork_within_a_fork_takes_and_drops_the_rest),
        cmocka_unit_test(a_child_goes_on_with_what_was_interrupted),
        cmocka_unit_test(a_burdened_thread_goes_on_without),
        cmocka_unit_test(one_that_is_not_gives_way),
#ifdef SY_DEBUG
        cmocka_unit_test(a_wrong_order_is_seen),
        cmocka_unit_test(a_release_unheld_is_seen),
        cmocka_unit_test(a_lock_that_is_missing_is_seen),
#endif
        cmocka_unit_test(all_sleepers_are_woken),
        cmocka_unit_test(a_child_has_a_number_of_its_own),
        cmocka_unit_test(a_child_has_no_burden_of_others),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
