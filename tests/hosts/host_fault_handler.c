/*
 * Programs that handle SIGSEGV themselves, before and after the library has set its handler with
 * the first sampled object: each handler runs as the program has asked for.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hosts/hosts.h"

enum { PAGE = 4096, MUCH = 64 << 10 };

static char *page;
static char signal_stack[32 << 10];
static sigjmp_buf back;
static volatile sig_atomic_t faults, on_signal_stack, blocked;
static struct sigaction before;

static void shut(void) { CHECK(mprotect(page, PAGE, PROT_NONE) == 0); }

static void note_state(void) {
    stack_t stack;
    sigset_t mask;
    CHECK(sigaltstack(NULL, &stack) == 0 && sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
    on_signal_stack = (stack.ss_flags & SS_ONSTACK) != 0;
    blocked = sigismember(&mask, SIGSEGV) + 2 * sigismember(&mask, SIGUSR1);
    faults++;
}

static void open_page(int number, siginfo_t *info, void *context) {
    CHECK(number == SIGSEGV && info->si_addr == page && context != NULL);
    note_state();
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
}

/* Needs more room than the alternate stack has. */
static void open_page_in_depth(int number, siginfo_t *info, void *context) {
    volatile char much[MUCH];
    for (size_t i = 0; i < MUCH; i += 512) much[i] = 1;
    if (much[0]) open_page(number, info, context);
}

static void jump(int number) {
    (void)number;
    note_state();
    siglongjmp(back, 1);
}

static void call_the_one_before(int number, siginfo_t *info, void *context) {
    CHECK(before.sa_flags & SA_SIGINFO);
    before.sa_sigaction(number, info, context);
}

static void informed(void (*handler)(int, siginfo_t *, void *), int flags, struct sigaction *old) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(sigaction(SIGSEGV, &action, old) == 0);
}

static void write_and_expect(bool alternate, int mask) {
    faults = 0;
    shut();
    *(volatile char *)page = 1;
    CHECK(faults == 1 && on_signal_stack == alternate && blocked == mask);
}

static void handles_on_its_own_stack(void) {
    informed(open_page_in_depth, 0, NULL);
    hungry(1);
    for (int i = 0; i < 3; i++) write_and_expect(false, 3);
}

static void handles_on_the_alternate_stack(void) {
    informed(open_page, SA_ONSTACK, NULL);
    hungry(1);
    for (int i = 0; i < 3; i++) write_and_expect(true, 3);
}

static void lets_the_signal_in(void) {
    informed(open_page, SA_NODEFER, NULL);
    hungry(1);
    write_and_expect(false, 2);
}

static void handles_later(void) {
    hungry(1);
    informed(open_page_in_depth, 0, NULL);
    for (int i = 0; i < 3; i++) write_and_expect(false, 3);
}

static void hands_on_what_it_replaces(void) {
    informed(open_page, 0, NULL);
    hungry(1);
    informed(call_the_one_before, 0, &before);
    write_and_expect(false, 3);
}

static void jumps_out(void) {
    CHECK(signal(SIGSEGV, jump) != SIG_ERR);
    hungry(1);
    shut();
    for (int i = 0; i < 100; i++)
        if (sigsetjmp(back, 1) == 0) *(volatile char *)page = 1;
    CHECK(faults == 100);
}

static void gives_up_its_stack_meanwhile(void) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    informed(open_page, SA_ONSTACK, NULL);
    hungry(1);
    CHECK(sigaltstack(&none, NULL) == 0);
    write_and_expect(false, 3);
}

static void handles_once(void) {
    struct sigaction once = {.sa_handler = jump, .sa_flags = (int)SA_RESETHAND};
    CHECK(sigaction(SIGSEGV, &once, NULL) == 0);
    hungry(1);
    shut();
    if (sigsetjmp(back, 1) == 0) *(volatile char *)page = 1;
    struct sigaction now;
    CHECK(faults == 1 && sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

static void is_sent_one(void) {
    CHECK(signal(SIGSEGV, jump) != SIG_ERR);
    hungry(1);
    for (int i = 0; i < 10; i++)
        if (sigsetjmp(back, 1) == 0) CHECK(kill(getpid(), SIGSEGV) == 0);
    CHECK(faults == 10);
}

static void ignores_and_starts_another(void) {
    CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
    hungry(1);
    CHECK(raise(SIGSEGV) == 0);
    CHECK(system("kill -SEGV $$") == 0); /* the other one ignores it too */
}

static void fall(int number) {
    (void)number;
    *(volatile char *)(page + 8) = 1;
}

static void falls_in_its_own_handler(void) {
    CHECK(signal(SIGSEGV, fall) != SIG_ERR);
    hungry(1);
    shut();
    *(volatile char *)page = 1;
}

static int deep(int calls) {
    volatile char some[4096];
    some[0] = (char)calls;
    return calls > 0 ? deep(calls - 1) + some[0] : 0;
}

static void overflows_its_stack(void) {
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    hungry(1);
    if (sigsetjmp(back, 1) == 0) CHECK(deep(1 << 30) == 1);
    CHECK(faults == 1 && on_signal_stack);
}

static void access_behind_a_file(void) {
    FILE *file = tmpfile();
    if (!file) return;
    char *mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fileno(file), 0);
    CHECK(mapped != MAP_FAILED && signal(SIGBUS, jump) != SIG_ERR);
    hungry(1);
    if (sigsetjmp(back, 1) == 0) CHECK(*(volatile char *)mapped == 1);
    CHECK(faults == 1);
}

static void expect(void (*program)(void), int signal_number) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(60);
        program();
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (signal_number)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
    else
        CHECK(status == 0);
}

int main(int count, char **arguments) {
    (void)count;
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    with_options("sample=1/100", arguments);
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
    expect(handles_on_its_own_stack, 0);
    expect(handles_on_the_alternate_stack, 0);
    expect(lets_the_signal_in, 0);
    expect(handles_later, 0);
    expect(hands_on_what_it_replaces, 0);
    expect(jumps_out, 0);
    expect(gives_up_its_stack_meanwhile, 0);
    expect(handles_once, 0);
    expect(is_sent_one, 0);
    expect(ignores_and_starts_another, 0);
    expect(falls_in_its_own_handler, SIGSEGV);
    expect(overflows_its_stack, 0);
    expect(access_behind_a_file, 0);
    return 0;
}
