/* The first thread of a process ends by pthread_exit, with much memory in use. The process ends
 * with status 0 when its last thread ends: its buffered output is written, its hooks of exit run.
 * Signals reach it as long as it lives. The same where the system refuses to separate descriptors,
 * and where it has no /proc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "hosts/sandbox.h"

static void *sleep_awhile(void *ms) {
    host_rest((long)(size_t)ms);
    return NULL;
}

static void *allocate(void *ms) {
    hungry(20);
    host_rest((long)(size_t)ms);
    return NULL;
}

static void say_goodbye(void) { printf("goodbye\n"); }

typedef void *body(void *);

static void stay(void) {}

static void *end_at_once(void *unused) {
    (void)unused;
    pthread_exit(NULL);
}

static void leave_proc(void) {
    pthread_t thread; /* for its end the C library loads a file, which is not there afterwards */
    CHECK(pthread_create(&thread, NULL, end_at_once, NULL) == 0 && pthread_join(thread, NULL) == 0);
    if (chroot("/sys") == 0) return;
    if (unshare(CLONE_NEWUSER) == 0 && chroot("/sys") == 0) return;
    fprintf(stderr, "not tested without /proc: this user may not leave it\n");
}

static void (*prepare)(void) = stay; /* called in each child */

#ifndef BEGIN
#    define BEGIN ((void)0) /* where there is more to be done afterwards */
#endif

/* In a child whose output goes to the pipe. */
static void run_child(int out, body *last, size_t ms, bool free_all) {
    static void *kept[40];
    prepare();
    BEGIN;
    dup2(out, STDOUT_FILENO);
    atexit(say_goodbye);
    printf("hello\n");
    for (int i = 0; i < 40; i++) memset(kept[i] = malloc(1 << 20), 1, 1 << 20);
    if (free_all)
        for (int i = 0; i < 40; i++) free(kept[i]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, last, (void *)ms) == 0);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static pid_t begin(int *in, body *last, size_t ms, bool free_all) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], last, ms, free_all);
    }
    close(ends[1]);
    *in = ends[0];
    return child;
}

static int end_of(pid_t child, int in, const char *output) {
    char text[64] = "";
    size_t length = 0;
    ssize_t got;
    while ((got = read(in, text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
    close(in);
    if (output) CHECK(strcmp(text, output) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void ends_well(body *last, size_t ms, bool free_all) {
    int in;
    pid_t child = begin(&in, last, ms, free_all);
    CHECK(end_of(child, in, "hello\ngoodbye\n") == 0);
}

static void ends_by_signal(int number) {
    int in;
    pid_t child = begin(&in, sleep_awhile, 20000, false);
    host_rest(200);
    CHECK(kill(child, number) == 0);
    int status = end_of(child, in, NULL);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

/* Runs the program once more, where calls that separate descriptors fail. */
static void run_refused(char **arguments) {
    static const long calls[] = {436 /* close_range */, SYS_unshare};
    if (fork() == 0) {
        set_filter(calls, COUNT_OF(calls), false, REFUSE);
        execv("/proc/self/exe", (char *[]){arguments[0], "refused", NULL});
        _exit(1);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0);
}

int main(int count, char **arguments) {
    alarm(60);
    signal(SIGINT, SIG_DFL); /* a shell ignores it in what runs in the background */
    ends_well(sleep_awhile, 0, false);
    ends_well(sleep_awhile, 300, false);
    ends_well(sleep_awhile, 300, true);
    ends_well(allocate, 0, false);
    ends_well(allocate, 300, true);
    ends_by_signal(SIGTERM);
    ends_by_signal(SIGINT);
    if (count > 1) return 0;
    run_refused(arguments);
    prepare = leave_proc;
    ends_well(sleep_awhile, 300, false);
    ends_well(allocate, 0, true);
    return 0;
}
