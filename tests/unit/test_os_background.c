/*
 * test_os_background.c: background threads, which a program does not notice, and the facts about
 * the system that one of them reads.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/facts.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/services.h"

static int policy_of_background, processors_of_background;
static char name_of_background[16];

static void note_itself(void) {
    cpu_set_t mine;
    policy_of_background = sched_getscheduler(0);
    if (sched_getaffinity(0, sizeof mine, &mine) == 0) processors_of_background = CPU_COUNT(&mine);
    prctl(PR_GET_NAME, name_of_background);
}

static const sy_os_background noter = {
    .body = note_itself, .name = "slabyard-noter", .stack = 32 << 10};

/* Starts a background thread from a thread with one processor, and if the system permits it, with
 * real-time scheduling. */
static void *start_from_bound_thread(void *real_time) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    must(sched_setaffinity(0, sizeof one, &one) == 0);
    const struct sched_param high = {.sched_priority = 1};
    *(bool *)real_time = sched_setscheduler(0, SCHED_FIFO, &high) == 0;
    uintptr_t reader;
    must(sy_os_start_reader(&noter, &reader) == 0);
    sy_os_end_reader(reader);
    return NULL;
}

static void a_background_thread_runs_anywhere_as_an_ordinary_thread(void **state) {
    (void)state;
    unsigned all = sy_os_affinity_count();
    bool real_time = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, start_from_bound_thread, &real_time), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(policy_of_background, SCHED_OTHER);
    assert_int_equal(processors_of_background, all);
    assert_string_equal(name_of_background, "slabyard-noter");
}

/* ---- hidden threads ---- */

/* For this program. */
bool sy_os_may_hide_threads(void) { return true; }

static _Thread_local int of_each_thread = 7, zero_in_each_thread;
static int seen_first, seen_zero, seen_errno, exits;
static unsigned seen_number;
static pid_t seen_by_system;
static bool seen_hidden, had_threads;
static _Atomic uint32_t may_end;

static void note_exit(void *arg) {
    exits++;
    if (exits == 1) must(sy_os_at_thread_exit(note_exit, arg) == 0);
}

static void look_around(void) {
    seen_hidden = sy_os_is_hidden();
    had_threads = sy_os_has_had_threads();
    seen_first = of_each_thread++;
    seen_zero = zero_in_each_thread++;
    seen_errno = errno;
    errno = 55;
    seen_number = sy_os_thread();
    seen_by_system = (pid_t)syscall(SYS_gettid);
    must(sy_os_at_thread_exit(note_exit, &exits) == 0);
}

static const sy_os_background hidden_looker = {
    .body = look_around, .name = "looker", .stack = 32 << 10, .hidden = true};

static void look_as_reader(void) {
    uintptr_t reader;
    exits = 0;
    must(sy_os_start_reader(&hidden_looker, &reader) == 0);
    sy_os_end_reader(reader);
}

/* Sanitizers and Valgrind have to know all threads. */
static void need_hidden_threads(void) {
    look_as_reader();
    if (!seen_hidden) skip();
}

/* The first test: the program has had no other thread yet. */
static void the_c_library_does_not_know_hidden_threads(void **state) {
    (void)state;
    need_hidden_threads();
    assert_false(had_threads);
    assert_false(sy_os_has_had_threads());
    assert_false(sy_os_is_hidden());
}

static _Atomic unsigned lives;

static void live_until_told(void) {
    lives++;
    while (!may_end) sy_os_wait(&may_end, 0);
}

static const sy_os_background hidden_liver = {
    .body = live_until_told, .name = "liver", .stack = 256 << 10, .hidden = true};

/* The second start waits for the end of the first thread. */
static void look_as_thread(void) {
    exits = 0;
    may_end = 1;
    must(sy_os_start_thread(&hidden_looker) == 0);
    must(sy_os_start_thread(&hidden_liver) == 0);
}

static void a_hidden_thread_has_variables_of_its_own(void **state) {
    (void)state;
    need_hidden_threads();
    of_each_thread = 8;
    for (int round = 0; round < 6; round++) { /* in the same rooms */
        errno = 77;
        (round % 2 ? look_as_thread : look_as_reader)();
        assert_int_equal(errno, 77);
        assert_true(seen_hidden);
        assert_int_equal(seen_first, 7);
        assert_int_equal(seen_zero, 0);
        assert_int_equal(seen_errno, 0);
        assert_int_equal(seen_number, seen_by_system);
        assert_int_not_equal(seen_by_system, getpid());
        assert_int_equal(exits, 2);
    }
    assert_int_equal(of_each_thread, 8);
}

/* A start waits for the end of the thread before. */
static void hidden_threads_follow_one_another(void **state) {
    (void)state;
    need_hidden_threads();
    enum { ROUNDS = 1000 };
    lives = 0;
    may_end = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_int_equal(sy_os_start_thread(&hidden_liver), 0);
        look_as_reader();
        assert_true(seen_hidden);
        assert_int_equal(exits, 2);
    }
    while (lives < ROUNDS) sched_yield();
}

static void start_in_child(void *unused) {
    (void)unused;
    sy_os_forget_background();
    may_end = 1;
    lives = 0;
    must(sy_os_start_thread(&hidden_liver) == 0);
    while (!lives) sched_yield();
}

static void the_child_of_a_fork_has_rooms_for_its_own(void **state) {
    (void)state;
    need_hidden_threads();
    lives = 0;
    may_end = 0;
    assert_int_equal(sy_os_start_thread(&hidden_liver), 0);
    while (!lives) sched_yield();
    assert_int_equal(in_child(start_in_child, NULL), 0);
    may_end = 1;
    sy_os_wake(&may_end, 1);
}

static void start_without_address_space(void *unused) {
    (void)unused;
    const struct rlimit none = {1, 1};
    must(setrlimit(RLIMIT_AS, &none) == 0);
    errno = 0;
    must(sy_os_start_thread(&hidden_liver) == -1 && errno == ENOMEM);
}

/* Permits all system calls but this one. */
static void forbid(unsigned call, unsigned error) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void start_without_threads(void *unused) {
    (void)unused;
    forbid(SYS_clone, EAGAIN);
    for (int round = 0; round < 3; round++) {
        errno = 0;
        must(sy_os_start_thread(&hidden_liver) == -1 && errno == EAGAIN);
        uintptr_t reader;
        must(sy_os_start_reader(&hidden_looker, &reader) == -1 && errno == EAGAIN);
    }
}

static void a_hidden_thread_that_cannot_be_had_is_said(void **state) {
    (void)state;
    if (is_emulated()) skip(); /* it has no filters of system calls */
    need_hidden_threads();
    assert_int_equal(in_child(start_without_threads, NULL), 0);
}

/* Before another test has made the room. */
static void a_room_that_cannot_be_had_is_said(void **state) {
    (void)state;
    if (is_emulated()) skip(); /* it ignores limits */
    need_hidden_threads();
    assert_int_equal(in_child(start_without_address_space, NULL), 0);
}

/* ---- readers ---- */

static int readers_first, readers_input;

static void open_a_file(void) {
    readers_input = fcntl(0, F_GETFD);
    readers_first = open("/proc/self/statm", O_RDONLY);
    for (int i = 0; i < 100; i++) open("/proc/self/statm", O_RDONLY); /* it closes none of them */
}

static const sy_os_background opener = {.body = open_a_file, .name = "opener"};

/* The reader has no descriptor of the process, and the process has none of the reader. */
static void a_reader_has_descriptors_of_its_own(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int next = dup(0);
    close(next);
    uintptr_t reader;
    assert_int_equal(sy_os_start_reader(&opener, &reader), 0);
    sy_os_end_reader(reader);
    assert_int_equal(readers_input, -1);
    assert_int_equal(readers_first, 0);
    assert_int_equal(dup(0), next);
    close(next);
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0); /* no other thread keeps the pipe open */
    close(ends[0]);
    sy_fake_fail_nth(SY_FAKE_START_READER, 1);
    assert_int_equal(sy_os_start_reader(&opener, &reader), -1);
}

/* ---- facts ---- */

static void facts_are_those_of_the_last_reading(void **state) {
    (void)state;
    assert_int_equal(sy_facts_now.affinity, sy_os_affinity_count());
    sy_fake_set_memory_limit(5000000);
    sy_fake_set_resident(3000000);
    errno = 77;
    sy_facts_read();
    assert_int_equal(errno, 77);
    assert_int_equal(sy_facts_now.memory_limit, 5000000);
    assert_int_equal(sy_facts_now.resident, 3000000);
    assert_true(sy_facts_now.files_are_read);
}

/* For example after chroot. */
static void facts_stay_if_files_cannot_be_read(void **state) {
    (void)state;
    sy_fake_set_memory_limit(5000000);
    sy_fake_set_resident(SIZE_MAX);
    sy_fake_set_memory_limit(7000000);
    assert_int_equal(sy_facts_now.memory_limit, 5000000);
    assert_int_equal(sy_facts_now.resident, 0);
}

static void only_the_first_start_reads(void **state) {
    (void)state;
    sy_fake_set_memory_limit(5000000);
    atomic_store(&sy_facts_now.memory_limit, 1);
    sy_facts_start();
    assert_int_equal(sy_facts_now.memory_limit, 1);
}

static void asking_twice_wakes_once(void **state) {
    (void)state;
    atomic_store(&sy_facts_asked, 0);
    sy_facts_ask();
    assert_int_equal(sy_facts_asked, 1);
    sy_facts_ask();
    assert_int_equal(sy_facts_asked, 1);
}

/* In this process the first thread lives. */
static void a_process_with_threads_is_not_left_alone(void **state) {
    (void)state;
    assert_true(sy_os_lists_threads());
    for (unsigned background = 0; background < 3; background++)
        assert_false(sy_os_is_left_alone(background));
}

/* In a new namespace of process numbers, /proc shows the numbers of the old one. */
static void live_in_own_namespace(void *arg) {
    (void)arg;
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return;
    pid_t child = fork();
    if (child == 0) _exit(sy_os_is_left_alone(0));
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
}

static void numbers_of_processes_do_not_matter(void **state) {
    (void)state;
    assert_int_equal(in_child(live_in_own_namespace, NULL), 0);
}

static int reset(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

/* ---- barriers ---- */

enum { ROUNDS = 3000 };

static _Atomic uint32_t light, heavy, seen_by_light, round_of_light;

/* Stores, then loads, with nothing between that a processor could see. */
static void *store_and_load(void *unused) {
    (void)unused;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&round_of_light) != round) {}
        atomic_store_explicit(&light, round, memory_order_relaxed);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        uint32_t seen = atomic_load_explicit(&heavy, memory_order_relaxed);
        atomic_store(&seen_by_light, seen);
        atomic_store(&round_of_light, 0);
    }
    return NULL;
}

/* One of two threads that each store and then load sees what the other one has stored. */
static void a_barrier_orders_the_other_threads_too(void **state) {
    (void)state;
    errno = EDOM;
    if (sy_os_barrier_threads() != 0) skip();
    assert_int_equal(errno, EDOM);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, store_and_load, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        atomic_store(&round_of_light, round);
        atomic_store_explicit(&heavy, round, memory_order_relaxed);
        assert_int_equal(sy_os_barrier_threads(), 0);
        uint32_t seen = atomic_load_explicit(&light, memory_order_relaxed);
        while (atomic_load(&round_of_light) != 0) {}
        assert_true(seen == round || atomic_load(&seen_by_light) == round);
    }
    pthread_join(thread, NULL);
}

static void want_a_barrier(void *unused) {
    (void)unused;
    must(sy_os_barrier_threads() == 0);
    forbid(SYS_membarrier, EPERM);
    for (int i = 0; i < 2; i++) {
        errno = 0;
        must(sy_os_barrier_threads() == -1 && errno == ENOSYS);
    }
}

static void a_barrier_may_be_refused(void **state) {
    (void)state;
    if (is_emulated()) skip(); /* it has no filters of system calls */
    if (sy_os_barrier_threads() != 0) skip();
    assert_int_equal(in_child(want_a_barrier, NULL), 0);
    sy_fake_fail_nth(SY_FAKE_BARRIER_THREADS, 1);
    assert_int_equal(sy_os_barrier_threads(), -1);
    assert_int_equal(sy_os_barrier_threads(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void) {
    must_have(SY_OS_OBSERVER, "hidden threads");
    const struct CMUnitTest tests[] = {
        TEST(the_c_library_does_not_know_hidden_threads),
        TEST(a_room_that_cannot_be_had_is_said),
        TEST(a_hidden_thread_has_variables_of_its_own),
        TEST(hidden_threads_follow_one_another),
        TEST(the_child_of_a_fork_has_rooms_for_its_own),
        TEST(a_hidden_thread_that_cannot_be_had_is_said),
        TEST(a_background_thread_runs_anywhere_as_an_ordinary_thread),
        TEST(a_reader_has_descriptors_of_its_own),
        TEST(facts_are_those_of_the_last_reading),
        TEST(facts_stay_if_files_cannot_be_read),
        TEST(only_the_first_start_reads),
        TEST(asking_twice_wakes_once),
        TEST(a_process_with_threads_is_not_left_alone),
        TEST(numbers_of_processes_do_not_matter),
        TEST(a_barrier_orders_the_other_threads_too),
        TEST(a_barrier_may_be_refused),
    };
    return cmocka_run_group_tests_name("background", tests, NULL, NULL);
}
