/*
 * count.c: prints how many instructions each path of paths.c executes. A child process runs the
 * path between two signals that it sends to itself. This process lets the child execute one
 * instruction at a time from one signal to the other, so the count is exact and repeatable.
 *
 * The count includes the instructions that send the signals and call the path. They are the same
 * in each run, so the count of an empty path (one return) or of fewer iterations is subtracted.
 *
 * Under an emulator, nothing can be traced. There `count PATH EMPTY ITERATIONS` runs one path, with
 * calls of golden_mark in place of the signals, and tests/golden/check.sh counts what the emulator
 * says that it has executed. `count --list` prints the address of golden_mark, and the kinds and
 * names of all paths.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void golden_mark(void);
__asm__(".pushsection .text\n"
        ".globl golden_mark\n"
        "golden_mark: ret\n"
        ".popsection\n");
static void signal_parent(void) { raise(SIGSTOP); }

/* Runs the path between two marks. */
static _Noreturn void run(const golden_path *path, int empty, size_t iterations,
                          void (*volatile mark)(void)) {
    void *where = path->prepare();
    void *object = path->object == NULL ? NULL : path->object(where);
    call_alloc = empty ? empty_alloc : path->alloc;
    call_release = empty ? empty_release : path->release;
    call_loop = path->loop;
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
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        run(path, empty, iterations, signal_parent);
    }
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

/* For an emulator. */
static int list_paths(void) {
    printf("mark %zx\n", (size_t)(uintptr_t)golden_mark);
    for (size_t i = 0; i < golden_path_count; i++)
        printf("%s %s\n", golden_paths[i].loop ? "loop" : "call", golden_paths[i].name);
    return 0;
}

static int run_named(const char *name, int empty, size_t iterations) {
    for (size_t i = 0; i < golden_path_count; i++)
        if (strcmp(golden_paths[i].name, name) == 0)
            run(&golden_paths[i], empty, iterations, golden_mark);
    return 2;
}

int main(int count_of, char **words) {
    if (count_of == 2 && strcmp(words[1], "--list") == 0) return list_paths();
    if (count_of == 4)
        return run_named(words[1], atoi(words[2]), strtoul(words[3], NULL, 10)); /* NOLINT */
    for (size_t i = 0; i < golden_path_count; i++) count(&golden_paths[i]);
    return 0;
}
