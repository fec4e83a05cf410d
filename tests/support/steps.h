/*
 * steps.h: the cost of a piece of code, counted in instructions: a child runs it one step at a
 * time.
 */
#ifndef SLABYARD_TESTS_STEPS_H
#define SLABYARD_TESTS_STEPS_H

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>

#include "support/child.h"

/* Counting begins here, in the child. */
static inline void count_from_here(void) {
    must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    raise(SIGSTOP);
}

static inline void count_to_here(void) { raise(SIGSTOP); }

/* Instructions of `body(arg)` between the two; 0 if this system does not let a process be traced.
 */
static inline uint64_t instructions_of(void (*body)(const void *arg), const void *arg) {
    int status;
    uint64_t steps = 0;
    fflush(NULL);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        body(arg);
        _exit(0);
    }
    must(waitpid(pid, &status, WUNTRACED) == pid);
    if (!WIFSTOPPED(status)) return 0;
    /* Both marks raise SIGSTOP. The second one ends the steps. */
    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0) break;
        must(waitpid(pid, &status, 0) == pid);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP) break;
        steps++;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return steps;
}

#endif
