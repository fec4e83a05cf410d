/* Ends without notice, or waits to be ended, in the way that its argument names. Before that, it
 * makes 10 allocations of 4321 bytes, which the recorder has had no reason to write yet. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocate(void *unused) {
    for (int round = 0; round < 10; round++) {
        void *volatile object = malloc(4321);
        (void)object;
    }
    return unused;
}

static void crash(void) { *(volatile int *)16 = 1; }

static void *crash_in_a_thread(void *unused) {
    allocate(unused);
    crash();
    return NULL;
}

/* Prints that it waits, and its process id. */
static void wait_for_signals(void) {
    char line[32];
    int length = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (write(1, line, (size_t)length) < 0) _exit(1);
    for (;;) pause();
}

static void leave(int signal) {
    (void)signal;
    exit(5);
}

static volatile int turns;

static void fork_in_handler(int signal) {
    (void)signal;
    turns++;
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
}

static void leave_in_handler(int signal) {
    (void)signal;
    if (++turns == 3) _exit(6);
}

/* Allocates while the handler of a timer interrupts it anywhere. */
static void be_interrupted(void (*handler)(int), int enough) {
    signal(SIGALRM, handler);
    struct itimerval often = {{0, 3000}, {0, 3000}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (turns < enough) free(malloc(100));
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static void many(void) {
    for (size_t round = 0; round < 400000; round++) free(malloc(round * 7919 % 100000));
    puts("done");
}

static void child_that_is_killed(void) {
    pid_t child = fork();
    if (child == 0) {
        allocate(NULL);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
}

static void *many_in_a_thread(void *unused) {
    for (size_t round = 0; round < 100000; round++) free(malloc(round % 1000));
    return unused;
}

/* Limits its own files to this number of KiB, from the first of its calls on. */
static void be_limited(const char *kibibytes) {
    rlim_t most = (rlim_t)atoi(kibibytes) << 10;
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
    pthread_t threads[4];
    for (int number = 0; number < 4; number++)
        pthread_create(&threads[number], NULL, many_in_a_thread, NULL);
    for (int number = 0; number < 4; number++) pthread_join(threads[number], NULL);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    if (strncmp(way, "limit ", 6) == 0) be_limited(way + 6);
    allocate(NULL);
    pthread_t thread;
    if (strcmp(way, "crash") == 0) crash();
    if (strcmp(way, "thread") == 0) {
        pthread_create(&thread, NULL, crash_in_a_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
    if (strcmp(way, "term") == 0) raise(SIGTERM);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "vanish") == 0) syscall(SYS_exit_group, 3);
    if (strcmp(way, "wait") == 0) wait_for_signals();
    if (strcmp(way, "catch") == 0) {
        signal(SIGTERM, leave);
        wait_for_signals();
    }
    if (strcmp(way, "fork") == 0) be_interrupted(fork_in_handler, 200);
    if (strcmp(way, "leave") == 0) be_interrupted(leave_in_handler, 1000);
    if (strcmp(way, "many") == 0) many();
    if (strcmp(way, "many and crash") == 0) {
        many();
        crash();
    }
    if (strcmp(way, "child") == 0) child_that_is_killed();
    return 3;
}
