/*
 * forks.h: for stress programs that fork.
 */
#ifndef SLABYARD_TESTS_STRESS_FORKS_H
#define SLABYARD_TESTS_STRESS_FORKS_H

#include <errno.h>
#include <sys/wait.h>

#include "stress/stress.h"

/* Waits for what fork returned to the parent: a child, which must end well. */
static inline void stress_await_child(pid_t child) {
    int status;
    stress_expect(child > 0, "a process forks");
    while (waitpid(child, &status, 0) < 0) stress_expect(errno == EINTR, "a child is waited for");
    stress_expect(status == 0, "the child ends well");
}

#endif
