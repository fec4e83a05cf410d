/*
 * test_bad_access.c: what sy_os_on_bad_access promises: an access that faults is explained, and
 * then has the effect that it would have without the library's handler. Each test runs in a child,
 * which installs the handler and ends.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/sanitized.h"
#include "support/services.h"

enum { TOLD = 40, HANDLED = 41 };

static char *shut; /* a page that cannot be accessed */
static volatile sig_atomic_t explained;
static volatile uintptr_t explained_at;

static bool note(const sy_os_access *access) {
    explained++;
    explained_at = access->address;
    return true;
}

static void handle_signal(int signal_number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    must(sigaction(signal_number, &action, NULL) == 0);
}

/* Resets the signals: cmocka's handlers replaced those of sanitizers. */
static void begin(void) {
    handle_signal(SIGSEGV, SIG_DFL, 0);
    handle_signal(SIGBUS, SIG_DFL, 0);
    handle_signal(SIGABRT, SIG_DFL, 0);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    shut = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(shut != MAP_FAILED);
}

static char look(const char *address) { return *(const volatile char *)address; }

static int ended_by(int status) { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

static bool tell(const sy_os_access *access) {
    (void)access;
    must(write(STDOUT_FILENO, "x", 1) == 1);
    return false;
}

/* ---- without an earlier handler ---- */

/* `arg`: the pipe to which the explanation is written. */
static void access_with_nobody_else(void *arg) {
    begin();
    dup2(*(int *)arg, STDOUT_FILENO);
    sy_os_on_bad_access(tell);
    look(shut);
}

static void it_is_explained_once_and_ends_the_process(void **state) {
    (void)state;
    int ends[2];
    char text[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(ended_by(in_child(access_with_nobody_else, &ends[1])), SIGSEGV);
    close(ends[1]);
    assert_int_equal(read(ends[0], text, sizeof text), 1);
    close(ends[0]);
}

static void access_while_ignored(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, SIG_IGN, 0);
    sy_os_on_bad_access(note);
    look(shut);
}

static void an_access_cannot_be_ignored(void **state) {
    (void)state;
    assert_int_equal(ended_by(in_child(access_while_ignored, NULL)), SIGSEGV);
}

static void sent_while_ignored(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, SIG_IGN, 0);
    sy_os_on_bad_access(note);
    must(raise(SIGSEGV) == 0);
    must(!explained);
}

static void a_signal_that_is_sent_can(void **state) {
    (void)state;
    assert_int_equal(in_child(sent_while_ignored, NULL), 0);
}

static bool exit_told(const sy_os_access *access) {
    (void)access;
    _exit(TOLD);
}

static void sent_with_nobody_else(void *arg) {
    (void)arg;
    begin();
    sy_os_on_bad_access(exit_told);
    raise(SIGBUS);
}

static void a_signal_that_is_sent_ends_the_process_unexplained(void **state) {
    (void)state;
    assert_int_equal(ended_by(in_child(sent_with_nobody_else, NULL)), SIGBUS);
}

/* ---- with an earlier handler ---- */

/* What the kernel tells of the address of an access. */
static uintptr_t told_of(const char *address) {
#if defined(__s390x__) /* only the page */
    return (uintptr_t)address & -(uintptr_t)4096;
#else
    return (uintptr_t)address;
#endif
}

static void check_and_exit(int signal_number) {
    must(signal_number == SIGSEGV && explained == 1 && explained_at == told_of(shut + 5));
    _exit(HANDLED);
}

static void access_with_handler(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, check_and_exit, 0);
    sy_os_on_bad_access(note);
    look(shut + 5);
}

static void the_handler_there_was_is_called_after(void **state) {
    (void)state;
    int status = in_child(access_with_handler, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
}

static void check_info(int signal_number, siginfo_t *info, void *context) {
    must(signal_number == SIGSEGV && (uintptr_t)info->si_addr == told_of(shut + 7) && context &&
         explained == 1);
    sigset_t blocked;
    must(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    must(sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGSEGV) == 1);
    must(mprotect(shut, 1 << 16, PROT_READ) == 0);
}

/* The handler opens the page: the access is done again, and succeeds. */
static void access_with_informed_handler(void *arg) {
    (void)arg;
    begin();
    struct sigaction action = {.sa_sigaction = check_info, .sa_flags = SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGUSR1);
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    sy_os_on_bad_access(note);
    must(look(shut + 7) == 0);
    must(mprotect(shut, 1 << 16, PROT_NONE) == 0);
    explained = 0;
    must(look(shut + 7) == 0); /* the handler is still installed */
}

static void the_handler_there_was_finds_what_it_asked_for(void **state) {
    (void)state;
    assert_int_equal(in_child(access_with_informed_handler, NULL), 0);
}

/* ---- what the program asked for ---- */

static char signal_stack[256 << 10];
static volatile sig_atomic_t on_signal_stack;

static void note_stack_and_open(int signal_number) {
    (void)signal_number;
    stack_t stack;
    must(sigaltstack(NULL, &stack) == 0);
    on_signal_stack = (stack.ss_flags & SS_ONSTACK) != 0;
    must(mprotect(shut, 1 << 16, PROT_READ) == 0);
}

/* `arg`: the flags of the program's handler. */
static void access_with_two_stacks(void *arg) {
    begin();
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    must(sigaltstack(&stack, NULL) == 0);
    handle_signal(SIGSEGV, note_stack_and_open, *(int *)arg);
    sy_os_on_bad_access(note);
    must(look(shut) == 0);
    must(explained == 1 && on_signal_stack == (*(int *)arg & SA_ONSTACK ? 1 : 0));
}

static void the_handler_there_was_runs_on_its_stack(void **state) {
    (void)state;
    int own = 0, alternate = SA_ONSTACK;
    if (SANITIZED) skip(); /* the sanitizer's handler chooses the stack */
    assert_int_equal(in_child(access_with_two_stacks, &own), 0);
    assert_int_equal(in_child(access_with_two_stacks, &alternate), 0);
}

static void ask_for_ignored(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, SIG_IGN, 0);
    sy_os_on_bad_access(note);
    struct sigaction now;
    must(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
}

static void an_ignored_signal_is_left_alone(void **state) {
    (void)state;
    assert_int_equal(in_child(ask_for_ignored, NULL), 0);
}

static void sent_with_informed_default(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGBUS, SIG_DFL, SA_SIGINFO);
    sy_os_on_bad_access(note);
    raise(SIGBUS);
}

static void a_default_with_information_is_no_handler(void **state) {
    (void)state;
    assert_int_equal(ended_by(in_child(sent_with_informed_default, NULL)), SIGBUS);
}

/* A handler that the program installs later calls the one that it has replaced. */
static struct sigaction replaced;

static void call_replaced(int signal_number, siginfo_t *info, void *context) {
    must(replaced.sa_flags & SA_SIGINFO);
    replaced.sa_sigaction(signal_number, info, context);
}

static void access_with_chain(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, check_and_exit, 0);
    sy_os_on_bad_access(note);
    const struct sigaction later = {.sa_sigaction = call_replaced, .sa_flags = SA_SIGINFO};
    must(sigaction(SIGSEGV, &later, &replaced) == 0);
    look(shut + 5);
}

static void a_later_handler_can_call_ours(void **state) {
    (void)state;
    int status = in_child(access_with_chain, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
}

static void open_page(int signal_number) {
    (void)signal_number;
    must(mprotect(shut, 1 << 16, PROT_READ) == 0);
}

static void two_accesses_with_handler_for_one(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, open_page, (int)SA_RESETHAND);
    sy_os_on_bad_access(note);
    must(look(shut) == 0);
    must(explained == 1);
    must(mprotect(shut, 1 << 16, PROT_NONE) == 0);
    look(shut);
}

static void a_handler_for_once_is_called_once(void **state) {
    (void)state;
    assert_int_equal(ended_by(in_child(two_accesses_with_handler_for_one, NULL)), SIGSEGV);
}

/* ---- the explanation itself ---- */

static bool access_too(const sy_os_access *access) {
    explained++;
    return look((const char *)access->address) != 0;
}

static void access_in_explanation(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, open_page, SA_NODEFER);
    sy_os_on_bad_access(access_too);
    must(look(shut) == 0);
    must(explained == 1);
}

static void an_access_of_its_own_is_not_explained(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* the sanitizer's handler runs first, and blocks all signals */
    assert_int_equal(in_child(access_in_explanation, NULL), 0);
}

static volatile sig_atomic_t way;

static void open_to_write(int signal_number) {
    (void)signal_number;
    must(mprotect(shut, 1 << 16, PROT_READ | PROT_WRITE) == 0);
}

static bool note_way(const sy_os_access *access) {
    must(access->placed && access->code != 0 && sy_os_interrupted() == access->code);
    must(access->address == (uintptr_t)shut + 3);
    way = (sig_atomic_t)access->way;
    return true;
}

static void read_and_write(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, open_to_write, 0);
    sy_os_on_bad_access(note_way);
    must(look(shut + 3) == 0 && way == SY_OS_READ);
    must(mprotect(shut, 1 << 16, PROT_NONE) == 0);
    *(volatile char *)(shut + 3) = 1;
    must(way == SY_OS_WRITE && sy_os_interrupted() == 0);
}

static void a_read_is_told_from_a_write(void **state) {
    (void)state;
    if (is_emulated()) skip(); /* the signal does not say which of the two it was */
    assert_int_equal(in_child(read_and_write, NULL), 0);
}

static const uintptr_t nowhere = (uintptr_t)UINT64_C(0xdeadbeefdeadbeef); /* is no address */

static bool find_pointer(const sy_os_access *access) {
    for (unsigned i = 0; i < access->registers; i++)
        if (access->values[i] == nowhere && sy_os_register_name(i)[0] != 0) _exit(TOLD);
    return false;
}

static void follow_no_address(void *arg) {
    (void)arg;
    begin();
    sy_os_on_bad_access(find_pointer);
    const char *pointer = (const char *)nowhere;
    __asm__ volatile("" : "+r"(pointer));
    look(pointer);
}

static void a_register_has_what_was_followed(void **state) {
    (void)state;
    if (!sy_os_register_name(0)[0]) skip(); /* the library knows no registers of the processor */
    int status = in_child(follow_no_address, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOLD);
}

static bool must_not_be_called(const sy_os_access *access) {
    (void)access;
    abort();
}

static void installed_twice(void *arg) {
    (void)arg;
    begin();
    handle_signal(SIGSEGV, open_page, 0);
    sy_os_on_bad_access(note);
    sy_os_on_bad_access(must_not_be_called);
    must(look(shut) == 0);
    must(explained == 1);
}

static void the_second_to_ask_changes_nothing(void **state) {
    (void)state;
    assert_int_equal(in_child(installed_twice, NULL), 0);
}

/* ---- from the start of the process ---- */

static void (*handler_of(int signal_number))(int) {
    struct sigaction now;
    must(sigaction(signal_number, NULL, &now) == 0);
    return now.sa_handler;
}

/* As the Rust runtime does: it installs a handler only if there is none. */
static void install_if_none(int signal_number) {
    if (handler_of(signal_number) == SIG_DFL) handle_signal(signal_number, open_page, 0);
}

static void access_with_runtime(void *arg) {
    (void)arg;
    begin();
    sy_os_expect_bad_access();
    sy_os_on_bad_access(exit_told);
    install_if_none(SIGSEGV);
    look(shut);
}

static void a_runtime_finds_the_handler_from_the_start(void **state) {
    (void)state;
    int status = in_child(access_with_runtime, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOLD);
}

static void access_before_there_is_a_reason(void *arg) {
    (void)arg;
    begin();
    sy_os_expect_bad_access();
    look(shut);
}

static void the_handler_from_the_start_explains_nothing_alone(void **state) {
    (void)state;
    assert_int_equal(ended_by(in_child(access_before_there_is_a_reason, NULL)), SIGSEGV);
}

/* The program's handler has replaced the one from the start. It is called as any earlier one. */
static void access_with_handler_between(void *arg) {
    (void)arg;
    begin();
    sy_os_expect_bad_access();
    handle_signal(SIGSEGV, check_and_exit, 0);
    sy_os_on_bad_access(note);
    look(shut + 5);
}

static void a_handler_after_the_start_is_kept(void **state) {
    (void)state;
    int status = in_child(access_with_handler_between, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
}

/* `arg`: the pipe to which the explanation is written. */
static void access_with_chain_to_the_start(void *arg) {
    begin();
    dup2(*(int *)arg, STDOUT_FILENO);
    sy_os_expect_bad_access();
    const struct sigaction later = {.sa_sigaction = call_replaced, .sa_flags = SA_SIGINFO};
    must(sigaction(SIGSEGV, &later, &replaced) == 0);
    sy_os_on_bad_access(tell);
    look(shut);
}

static void a_chain_to_the_start_is_explained_once(void **state) {
    (void)state;
    int ends[2];
    char text[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(ended_by(in_child(access_with_chain_to_the_start, &ends[1])), SIGSEGV);
    close(ends[1]);
    assert_int_equal(read(ends[0], text, sizeof text), 1);
    close(ends[0]);
}

static void access_behind_the_end_of_a_file(void *arg) {
    (void)arg;
    begin();
    int file = memfd_create("test", 0);
    must(file >= 0);
    const char *start = mmap(NULL, 1 << 16, PROT_READ, MAP_SHARED, file, 0);
    must(start != MAP_FAILED);
    sy_os_on_bad_access(exit_told);
    look(start);
}

static void sigbus_is_explained_too(void **state) {
    (void)state;
    int status = in_child(access_behind_the_end_of_a_file, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOLD);
}

/* The handler runs on the alternative stack that the thread has set (sigaltstack). */
static bool check_stack(const sy_os_access *access) {
    (void)access;
    stack_t stack;
    must(sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK));
    _exit(TOLD);
}

static void access_on_another_stack(void *arg) {
    (void)arg;
    begin();
    size_t bytes = 1 << 18;
    stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
    must(sigaltstack(&stack, NULL) == 0);
    sy_os_on_bad_access(check_stack);
    look(shut);
}

static void it_runs_on_the_stack_for_signals(void **state) {
    (void)state;
    int status = in_child(access_on_another_stack, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOLD);
}

int main(void) {
    must_have(SY_OS_ACCESSES, "reports of bad accesses");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_explained_once_and_ends_the_process),
        cmocka_unit_test(an_access_cannot_be_ignored),
        cmocka_unit_test(a_signal_that_is_sent_can),
        cmocka_unit_test(a_signal_that_is_sent_ends_the_process_unexplained),
        cmocka_unit_test(the_handler_there_was_is_called_after),
        cmocka_unit_test(the_handler_there_was_finds_what_it_asked_for),
        cmocka_unit_test(the_handler_there_was_runs_on_its_stack),
        cmocka_unit_test(an_ignored_signal_is_left_alone),
        cmocka_unit_test(a_default_with_information_is_no_handler),
        cmocka_unit_test(a_later_handler_can_call_ours),
        cmocka_unit_test(a_handler_for_once_is_called_once),
        cmocka_unit_test(an_access_of_its_own_is_not_explained),
        cmocka_unit_test(a_read_is_told_from_a_write),
        cmocka_unit_test(a_register_has_what_was_followed),
        cmocka_unit_test(the_second_to_ask_changes_nothing),
        cmocka_unit_test(a_runtime_finds_the_handler_from_the_start),
        cmocka_unit_test(the_handler_from_the_start_explains_nothing_alone),
        cmocka_unit_test(a_handler_after_the_start_is_kept),
        cmocka_unit_test(a_chain_to_the_start_is_explained_once),
        cmocka_unit_test(sigbus_is_explained_too),
        cmocka_unit_test(it_runs_on_the_stack_for_signals),
    };
    return cmocka_run_group_tests_name("bad_access", tests, NULL, NULL);
}
