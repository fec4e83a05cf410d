/*
 * count.c: prints how many instructions each path of paths.c executes. A child process runs the
 * path between two signals that it sends to itself. This process lets the child execute one
 * instruction at a time from one signal to the other, so the count is exact and repeatable.
 *
 * The count includes the instructions that send the signals and call the path. They are the same
 * in each run, so the count of an empty path (one return) or of fewer iterations is subtracted.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "golden.h"

enum { FEW = 16, MANY = 80 };

/* A function of one instruction, declared with both types. */
__asm__(".pushsection .text\n"
        "golden_return: ret\n"
        ".popsection\n");
void *empty_alloc(void *where) __asm__("golden_return");
void empty_release(void *where, void *object) __asm__("golden_return");

/* The pointers through which the path and the empty path are called. */
static void *(*volatile call_alloc)(void *);
static void (*volatile call_release)(void *, void *);
static void (*volatile call_loop)(void *, size_t);

void *golden_miss(void *where) {
    (void)where;
    abort();
}

static void mark(void) { raise(SIGSTOP); }

/* Runs the path in the child, between two marks. */
static _Noreturn void run(const golden_path *path, int empty, size_t iterations) {
    void *where = path->prepare();
    void *object = path->object == NULL ? NULL : path->object(where);
    call_alloc = empty ? empty_alloc : path->alloc;
    call_release = empty ? empty_release : path->release;
    call_loop = path->loop;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    mark();
    if (path->loop != NULL)
        call_loop(where, iterations);
    else if (path->alloc != NULL)
        (void)call_alloc(where);
    else
        call_release(where, object);
    mark();
    _exit(0);
}

static void fail(const char *what) {
    perror(what);
    exit(2);
}

/* Waits until the child stops. Returns the signal that stopped it. */
static int stop_of(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) fail("count: waitpid");
    if (!WIFSTOPPED(status)) {
        fprintf(stderr, "count: the path ended the process (status %#x)\n", (unsigned)status);
        exit(2);
    }
    return WSTOPSIG(status);
}

/* Returns the instructions from the first mark to the second. */
static long steps_of(const golden_path *path, int empty, size_t iterations) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) fail("count: fork");
    if (child == 0) run(path, empty, iterations);
    if (stop_of(child) != SIGSTOP) fail("count: unexpected signal");
    long steps = 0;
    int stopped_by;
    do {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) fail("count: ptrace");
        stopped_by = stop_of(child);
        steps++;
    } while (stopped_by == SIGTRAP);
    if (stopped_by != SIGSTOP) {
        fprintf(stderr, "count: %s: signal %d\n", path->name, stopped_by);
        exit(2);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return steps;
}

static void count(const golden_path *path) {
    if (path->loop == NULL) {
        long empty = steps_of(path, 1, 0) - 1; /* its return is part of the path's figure */
        printf("%s %ld\n", path->name, steps_of(path, 0, 0) - empty);
        return;
    }
    long steps = steps_of(path, 0, MANY) - steps_of(path, 0, FEW);
    long iterations = MANY - FEW;
    if (steps % iterations == 0)
        printf("%s %ld\n", path->name, steps / iterations);
    else
        printf("%s %.3f\n", path->name, (double)steps / (double)iterations);
}

int main(void) {
    for (size_t i = 0; i < golden_path_count; i++) count(&golden_paths[i]);
    return 0;
}
