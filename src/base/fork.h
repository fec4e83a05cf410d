/*
 * fork.h: help for changes that a fork may interrupt. The child of a fork has only the forking
 * thread, and finds all memory as it was at the moment of the fork. Another thread may have been
 * between any two instructions of a change; the forking thread too, if it forks in a signal handler
 * or in a function of the program that the library calls.
 *
 * Lowest layer: includes no other header of the project.
 */
#ifndef SY_BASE_FORK_H
#define SY_BASE_FORK_H

#include <stddef.h>

/* Keeps the compiler from moving memory accesses across this place. It is no instruction. A list
 * whose change takes effect by one store, after this, is whole in the child: the child finds it
 * either changed or unchanged. */
static inline void sy_fork_order(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

/* A thread's notes, in a thread-local variable, of what it is working on. If the thread forks
 * within the work, the child's recovery leaves it alone, since the thread goes on with it. A thread
 * can be in several pieces of work at a time, one inside the other, if the library calls functions
 * of the program. Four can be noted; the recovery treats more as the work of other threads. */
enum { SY_OWN_MAX = 4 };
typedef struct sy_own {
    const void *of[SY_OWN_MAX];
} sy_own;

/* Notes `to` in place of `from`. NULL is a place without a note. */
static inline void sy_own_replace(sy_own *own, const void *from, const void *to) {
    unsigned i = 0;
    while (i < SY_OWN_MAX && own->of[i] != from) i++;
    if (i < SY_OWN_MAX) own->of[i] = to;
}

/* How many notes there are of it. */
static inline unsigned sy_own_times(const sy_own *own, const void *of) {
    unsigned times = 0;
    for (unsigned i = 0; i < SY_OWN_MAX; i++) times += own->of[i] == of;
    return times;
}

#endif
