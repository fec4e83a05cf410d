/*
 * test_os_child.c: the functions of os.h that let a child process work, on the real system.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "support/services.h"

enum { NUMBERS = 5000, SECONDS = 60 };

static int changed;

static void add_one(const void *question, void *answer) {
    const int *numbers = question;
    int *sums = answer;
    for (int i = 0; i < NUMBERS; i++) sums[i] += numbers[i] + 1;
    changed = 1;
}

static void it_answers_and_changes_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    static int numbers[NUMBERS], sums[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) numbers[i] = i * 7;
    memset(sums, 0xa5, sizeof sums);
    errno = EBADF;
    assert_int_equal(sy_os_ask_child(add_one, numbers, sums, sizeof sums, SECONDS), 0);
    assert_int_equal(errno, EBADF);
    for (int i = 0; i < NUMBERS; i++) assert_int_equal(sums[i], i * 7 + 1);
    assert_int_equal(changed, 0);
}

static void answer_and_die(const void *question, void *answer) {
    (void)question;
    *(int *)answer = 42;
    abort();
}

static void one_that_dies_has_answered(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    int answer = 0;
    assert_int_equal(sy_os_ask_child(answer_and_die, NULL, &answer, sizeof answer, SECONDS), 0);
    assert_int_equal(answer, 42);
}

static void answer_and_hang(const void *question, void *answer) {
    (void)question;
    *(int *)answer = 43;
    for (;;) pause();
}

static void ignore(int signal) { (void)signal; }

/* A child that hangs is ended, whatever the program does with SIGALRM. */
static void one_that_hangs_is_ended(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    int answer = 0;
    const struct sigaction action = {.sa_handler = ignore};
    struct sigaction before;
    sigset_t alarms, mask;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, &before);
    pthread_sigmask(SIG_BLOCK, &alarms, &mask);
    assert_int_equal(sy_os_ask_child(answer_and_hang, NULL, &answer, sizeof answer, 1), 0);
    assert_int_equal(answer, 43);
    assert_int_equal(sigismember(&mask, SIGALRM), 0);
    pthread_sigmask(SIG_SETMASK, &mask, &alarms);
    assert_int_equal(sigismember(&alarms, SIGALRM), 1);
    sigaction(SIGALRM, &before, NULL);
}

static void note_process(const void *question, void *answer) {
    (void)question;
    *(int *)answer = sy_os_process();
}

static void it_is_a_process_of_its_own(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    int answer = 0;
    assert_int_equal(sy_os_process(), getpid());
    assert_int_equal(sy_os_ask_child(note_process, NULL, &answer, sizeof answer, SECONDS), 0);
    assert_int_not_equal(answer, 0);
    assert_int_not_equal(answer, getpid());
}

static int hooks;

static void count_hook(void) { hooks++; }

static void count_exit(void) { hooks += 100; }

static void note_hooks(const void *question, void *answer) {
    (void)question;
    *(int *)answer = hooks;
}

static volatile int heard;

static void hear(int signal) {
    (void)signal;
    heard++;
}

static void the_program_hears_nothing_of_it(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    int answer = -1;
    const struct sigaction action = {.sa_handler = hear};
    struct sigaction before;
    sigaction(SIGCHLD, &action, &before);
    assert_int_equal(pthread_atfork(count_hook, count_hook, count_hook), 0);
    assert_int_equal(atexit(count_exit), 0);
    assert_int_equal(sy_os_ask_child(note_hooks, NULL, &answer, sizeof answer, SECONDS), 0);
    assert_int_equal(answer, 0);
    assert_int_equal(hooks, 0);
    assert_int_equal(heard, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    sigaction(SIGCHLD, &before, NULL);
}

static void use_much_stack(const void *question, void *answer) {
    (void)question;
    volatile char much[1 << 20];
    for (size_t at = 0; at < sizeof much; at += 512) much[at] = 1;
    *(int *)answer = much[512];
}

static ucontext_t thread_context, small_context;
static int answer_to_small;

static void ask_from_small(void) {
    sy_os_ask_child(use_much_stack, NULL, &answer_to_small, sizeof answer_to_small, SECONDS);
}

static void it_has_a_large_stack_whatever_the_caller_has(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    static char stack[64 << 10];
    assert_int_equal(getcontext(&small_context), 0);
    small_context.uc_stack.ss_sp = stack;
    small_context.uc_stack.ss_size = sizeof stack;
    small_context.uc_link = &thread_context;
    makecontext(&small_context, ask_from_small, 0);
    assert_int_equal(swapcontext(&thread_context, &small_context), 0);
    assert_int_equal(answer_to_small, 1);
}

static void without_memory_there_is_none(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    int answer = 7;
    assert_int_equal(sy_os_ask_child(note_process, NULL, &answer, SIZE_MAX / 8 * 7, SECONDS), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(answer, 7);
}

/* The process asks to be traced by its parent, for which the parent need do nothing. */
static void ask_while_traced(void *arg) {
    (void)arg;
    must(!sy_os_is_traced());
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) return; /* tracing is not allowed here */
    errno = EBADF;
    must(sy_os_is_traced() && errno == EBADF);
}

static void a_tracer_is_seen(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    if (sy_os_is_traced()) skip();
    assert_int_equal(in_child(ask_while_traced, NULL), 0);
}

static void must_not_run(void) { abort(); }

static void end_with_words(void *pipe_end) {
    must(dup2(*(int *)pipe_end, STDOUT_FILENO) == STDOUT_FILENO);
    must(atexit(must_not_run) == 0 && printf("words") == 5);
    sy_os_end(7);
}

static void an_end_has_its_status_and_writes_what_was_said(void **state) {
    (void)state;
    int ends[2];
    char text[8] = "";
    assert_int_equal(pipe(ends), 0);
    int status = in_child(end_with_words, &ends[1]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    close(ends[1]);
    assert_int_equal(read(ends[0], text, sizeof text), 5);
    close(ends[0]);
    assert_string_equal(text, "words");
}

static void libraries_and_names_are_found(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    void *library = sy_os_load("libm.so.6");
    assert_non_null(library);
    assert_non_null(sy_os_symbol(library, "cbrt"));
    assert_null(sy_os_symbol(library, "sy_no_such_function"));
    assert_non_null(sy_os_symbol(NULL, "_assert_true"));
    assert_null(sy_os_load("libsy-no-such-library.so.1"));
}

/* A child of vfork runs in its parent's memory, which holds the number of the parent's thread.
 * ThreadSanitizer turns vfork into fork, whose child has a number of its own. */
static void a_child_of_vfork_is_told_apart(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    int status = 0;
    if (THREAD_SANITIZED) skip();
    assert_true(sy_os_is_own_thread());
    pid_t pid = vfork();
    if (pid == 0) _exit(sy_os_is_own_thread());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static void *tell_number(void *number) {
    *(unsigned *)number = sy_os_thread();
    return NULL;
}

/* A sandbox may end a process that asks the system for the number. */
static void number_threads_without_asking(void *arg) {
    (void)arg;
    unsigned own = (unsigned)syscall(SYS_gettid), other = 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return;
    in_thread(tell_number, &other);
    must(sy_os_thread() == own && other && other != own);
}

static void the_number_of_a_thread_needs_no_system_call(void **state) {
    needs(SY_OS_OBSERVER);
    (void)state;
    if (is_emulated() || SANITIZED) skip();
    assert_int_equal(in_child(number_threads_without_asking, NULL), 0);
}

static void a_child_of_fork_has_its_own_thread(void **state) {
    (void)state;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(!sy_os_is_own_thread());
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_true(sy_os_is_own_thread());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_answers_and_changes_nothing),
        cmocka_unit_test(one_that_dies_has_answered),
        cmocka_unit_test(one_that_hangs_is_ended),
        cmocka_unit_test(it_is_a_process_of_its_own),
        cmocka_unit_test(the_program_hears_nothing_of_it),
        cmocka_unit_test(it_has_a_large_stack_whatever_the_caller_has),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(a_tracer_is_seen),
        cmocka_unit_test(an_end_has_its_status_and_writes_what_was_said),
        cmocka_unit_test(libraries_and_names_are_found),
        cmocka_unit_test(a_child_of_vfork_is_told_apart),
        cmocka_unit_test(a_child_of_fork_has_its_own_thread),
        cmocka_unit_test(the_number_of_a_thread_needs_no_system_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
