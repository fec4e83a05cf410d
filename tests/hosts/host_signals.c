/* Signals: to the process, while its own threads block them; stops and continuations; timers whose
 * handlers interrupt allocations and jump out of the program's own work; handlers on alternate
 * stacks of the least size. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

#include "hosts/hosts.h"

static void *grow(void) {
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(8);
    return kept;
}

static volatile sig_atomic_t count;
static pthread_t first;

static void count_signal(int number) {
    (void)number;
    CHECK(pthread_equal(pthread_self(), first));
    count++;
}

/* A signal to the process is for one of the program's threads. */
static void handlers_run_in_own_threads(void *unused) {
    (void)unused;
    first = pthread_self();
    const struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    for (int number = 1; number <= SIGRTMAX; number++)
        if (number != SIGKILL && number != SIGSTOP && number != SIGALRM)
            sigaction(number, &action, NULL);
    void *kept = grow();
    for (int round = 0; round < 500; round++) {
        int before = count;
        CHECK(kill(getpid(), round % 2 ? SIGUSR1 : SIGTERM) == 0);
        CHECK(count == before + 1);
        if (round % 50 == 0) hungry(2);
    }
    free(kept);
}

/* Blocked in all of the program's threads, they wait for sigwait and signalfd. */
static void blocked_signals_wait(void *unused) {
    sigset_t set;
    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    void *kept = grow(); /* the background thread started before the set was blocked */
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    int file = signalfd(-1, &set, SFD_CLOEXEC);
    CHECK(file >= 0);
    for (int round = 0; round < 200; round++) {
        CHECK(kill(getpid(), SIGINT) == 0);
        struct signalfd_siginfo info;
        CHECK(read(file, &info, sizeof info) == sizeof info && info.ssi_signo == SIGINT);
        CHECK(kill(getpid(), SIGUSR1) == 0);
        int number = 0;
        CHECK(sigwait(&set, &number) == 0 && number == SIGUSR1);
        if (round % 50 == 0) hungry(2);
    }
    free(kept);
}

static void eat_for_long(void *unused) {
    (void)unused;
    void *kept = grow();
    for (int round = 0; round < 12; round++) hungry(16);
    free(kept);
}

static void stops_do_no_harm(void) {
    pid_t child = host_start(eat_for_long, NULL);
    for (int round = 0; round < 40; round++) {
        if (kill(child, SIGSTOP) != 0) break;
        host_rest(2);
        CHECK(kill(child, SIGCONT) == 0);
        host_rest(3);
    }
    CHECK(host_end_of(child) == 0);
}

/* As Postgres and shells do: the handler leaves the program's work by a jump, which does not happen
 * within an allocation, since they block the signal there. */
static sigjmp_buf back;

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void jumps_out_of_handlers(void *unused) {
    sigset_t set;
    volatile unsigned jumps = 0;
    (void)unused;
    const struct sigaction action = {.sa_handler = jump};
    CHECK(sigaction(SIGVTALRM, &action, NULL) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGVTALRM);
    const struct itimerval every = {{0, 1000}, {0, 1000}};
    void *kept = grow();
    CHECK(setitimer(ITIMER_VIRTUAL, &every, NULL) == 0);
    while (jumps < 100) {
        if (sigsetjmp(back, 1)) jumps++;
        sigprocmask(SIG_BLOCK, &set, NULL);
        hungry(1);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        for (volatile int i = 0; i < 1000000; i++) {}
    }
    CHECK(setitimer(ITIMER_VIRTUAL, &(struct itimerval){0}, NULL) == 0);
    free(kept);
}

/* A handler of the least alternate stack runs while the thread allocates. */
static void handlers_need_no_more_stack(void *unused) {
    (void)unused;
    static char room[64 << 10];
    first = pthread_self();
    const stack_t stack = {.ss_sp = room, .ss_size = (size_t)MINSIGSTKSZ};
    CHECK(sigaltstack(&stack, NULL) == 0);
    const struct sigaction action = {.sa_handler = count_signal,
                                     .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    const struct itimerval every = {{0, 50}, {0, 50}};
    CHECK(setitimer(ITIMER_PROF, &every, NULL) == 0);
    for (int round = 0; round < 4; round++) hungry(16);
    CHECK(setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL) == 0);
    CHECK(count > 0);
    for (size_t at = (size_t)MINSIGSTKSZ; at < sizeof room; at++) CHECK(room[at] == 0);
}

static void timer_thread(union sigval value) {
    hungry(1);
    *(_Atomic int *)value.sival_ptr += 1;
}

/* The C library starts a thread for each expiry. */
static void timers_that_are_threads(void *unused) {
    static _Atomic int expiries;
    timer_t timer;
    (void)unused;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_value.sival_ptr = &expiries,
                             .sigev_notify_function = timer_thread};
    void *kept = grow();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const struct itimerspec every = {{0, 2000000}, {0, 2000000}};
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    while (expiries < 50) hungry(1);
    CHECK(timer_delete(timer) == 0);
    free(kept);
}

int main(void) {
    host_lives(handlers_run_in_own_threads, NULL);
    host_lives(blocked_signals_wait, NULL);
    stops_do_no_harm();
    host_lives(jumps_out_of_handlers, NULL);
    host_lives(handlers_need_no_more_stack, NULL);
    host_lives(timers_that_are_threads, NULL);
    return 0;
}
