/*
 * emulated.h: whether the test runs under qemu's user mode (tests/install/emulated.sh). The
 * emulator passes most system calls on, but answers some of them differently from a kernel. A test
 * that needs such a call is skipped there. A comment says what the emulator does differently.
 *
 * There the child of a fork must not start a thread, if the parent has others. qemu has a lock that
 * each thread takes while it starts or ends a thread (clone_lock in linux-user/syscall.c), and does
 * not take it for a fork. If another thread held the lock at the fork, the child waits for it as
 * soon as it starts a thread, and no signal of the program's reaches it any more: not that of
 * alarm() either. pthread_join may return before the thread that ended has released the lock, so
 * in_child (support/child.h) waits for threads that have not quite ended.
 */
#ifndef SLABYARD_TESTS_EMULATED_H
#define SLABYARD_TESTS_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static inline bool is_emulated(void) { return getenv("SLABYARD_TEST_EMULATED") != NULL; }

/* Waits until the emulator has only the calling thread and one of its own, a second at most: the
 * test may have other threads that go on. The folder has a link for each thread and two more. */
static inline void await_ended_threads(void) {
    struct stat threads;
    for (int i = 0; i < 1000; i++) {
        if (stat("/proc/self/task", &threads) != 0 || threads.st_nlink <= 4) return;
        usleep(1000);
    }
}

#endif
