/* A profiler's timer interrupts a thread every 50 microseconds of its processor time, while stacks
 * are taken and reports of the library's are made. */
#define _GNU_SOURCE

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "hosts/hosts.h"

static volatile sig_atomic_t alarms;

static void count_alarm(int number) {
    (void)number;
    alarms++;
}

static void start_timer(long microseconds) {
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    CHECK(setitimer(ITIMER_PROF, &every, NULL) == 0);
}

/* The report is made in a child: it comes whole, and the process ends by SIGABRT. */
static void free_twice(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int silent = dup(STDERR_FILENO);
        close(STDERR_FILENO);
        (void)silent;
        start_timer(50);
        char *volatile object = malloc(100);
        free(object);
        free(object);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int count, char **arguments) {
    (void)count;
    with_options("audit,sample=1/10", arguments);
    struct sigaction action = {.sa_handler = count_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    start_timer(50);
    for (int i = 0; i < 4; i++) {
        hungry(4);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            hungry(1);
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    start_timer(0);
    CHECK(alarms > 0);
    free_twice();
    return 0;
}
