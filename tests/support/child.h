/*
 * child.h: functions that run a part of a test in a process or thread of its own.
 *
 * The library starts once in a process. A test of the start runs in a child, and so does a test
 * that leaves the library in a state that would disturb other tests. cmocka's assertions work only
 * in the thread that runs the test. Elsewhere must() prints the condition that does not hold, and
 * ends the process.
 */
#ifndef SLABYARD_TESTS_CHILD_H
#define SLABYARD_TESTS_CHILD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/emulated.h"

#define must(condition) \
    ((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__, __func__))

static inline void must_failed(const char *condition, const char *file, int line,
                               const char *function) {
    fprintf(stderr, "%s:%d: %s: not so: %s\n", file, line, function, condition);
    abort();
}

/* Runs `body(arg)` in a child. Returns 0 if body returned, else the status of waitpid. */
static inline int in_child(void (*body)(void *arg), void *arg) {
    fflush(NULL);
    if (is_emulated()) await_ended_threads();
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        body(arg);
        fflush(NULL);
        _exit(0);
    }
    int status = -1;
    must(waitpid(pid, &status, 0) == pid);
    return status;
}

/* Runs `body(arg)` in a thread and waits for its end. */
static inline void in_thread(void *(*body)(void *arg), void *arg) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, body, arg) == 0);
    must(pthread_join(thread, NULL) == 0);
}

/* The finaliser of splitmix64 over a counter: numbers that differ, the same for the same seed. */
static inline uint64_t next_random(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t bits = *state;
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* Puts `count` pointers in a random order. */
static inline void shuffle(void **pointers, size_t count, uint64_t *state) {
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)(next_random(state) % i);
        void *pointer = pointers[i - 1];
        pointers[i - 1] = pointers[j];
        pointers[j] = pointer;
    }
}

#endif
