/*
 * threads.c: the part of os.h for the numbers of threads, how they wait, the ends of those of which
 * the C library does not know, and its lock of streams.
 */
#define _GNU_SOURCE

#include "os/linux/thread.h"
#include "os/os.h"
#include "os/posix/thread.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <pthread.h>
#    include <signal.h>
#    include <sys/syscall.h>
#    include <time.h>
#    include <unistd.h>

/* Names of the kernel that are not among the C library's headers. */
#    define WAIT_PRIVATE 128 /* FUTEX_WAIT_PRIVATE */
#    define WAKE_PRIVATE 129 /* FUTEX_WAKE_PRIVATE */

/* The system call that takes the C library's times. They may have 64 bits on a 32-bit processor. */
#    ifdef SYS_futex_time64
#        define TIMED_FUTEX (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#    else
#        define TIMED_FUTEX SYS_futex
#    endif

static const uint64_t NS_PER_SECOND = 1000000000;

/* The C library knows the thread's number, and makes the id of the thread's clock of it in the
 * kernel's manner, without a system call: all bits inverted, with the kind of clock in the last
 * three. */
unsigned sy_os_thread(void) {
    enum { KIND_BITS = 3, KIND_OF_THREAD = 6 };
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) != 0 ||
        (clock & ((1 << KIND_BITS) - 1)) != KIND_OF_THREAD)
        return (unsigned)syscall(SYS_gettid);
    return (unsigned)~(clock >> KIND_BITS);
}

bool sy_os_is_own_thread(void) { return (unsigned)syscall(SYS_gettid) == sy_os_thread(); }

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    int saved = errno;
    syscall(SYS_futex, word, WAIT_PRIVATE, expected, NULL, NULL, 0);
    errno = saved;
}

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    int saved = errno;
    const struct timespec time = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    syscall(TIMED_FUTEX, word, WAIT_PRIVATE, expected, &time, NULL, 0);
    errno = saved;
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    int saved = errno;
    syscall(SYS_futex, word, WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}

SY_TLS void *sy_linux_hidden_arg;

void sy_linux_end_hidden(void) {
    enum { ROUNDS = 4 }; /* as the C library does */
    for (int left = ROUNDS; left > 0 && sy_linux_hidden_arg; left--) {
        void *arg = sy_linux_hidden_arg;
        sy_linux_hidden_arg = NULL;
        sy_posix_run_exit_hook(arg);
    }
}

/*
 * glibc exports the lock of its list of streams, for a library of threads that it once had beside
 * it. It is recursive. fork takes it after the hooks if the process has more than one thread, and
 * makes it anew in the child before the hooks there. Other C libraries have no such lock.
 */
#    define OF_GLIBC __attribute__((weak, visibility("default")))

OF_GLIBC void _IO_list_lock(void);
OF_GLIBC void _IO_list_unlock(void);
OF_GLIBC void _IO_list_resetlock(void);
OF_GLIBC extern char __libc_single_threaded;

static SY_TLS unsigned streams_held; /* times */

bool sy_os_has_had_threads(void) { return !&__libc_single_threaded || !__libc_single_threaded; }

/* With one thread, fork does not wait for the lock. Then it must not be taken here: a handler of a
 * signal may have interrupted the code that holds it. */
static bool fork_locks_streams(void) {
    if (!_IO_list_lock || !_IO_list_unlock || !_IO_list_resetlock) return false;
    return sy_os_has_had_threads();
}

void sy_os_hold_streams(void) {
    if (!streams_held && !fork_locks_streams()) return;
    _IO_list_lock();
    streams_held++;
}

void sy_os_drop_streams(bool in_child) {
    if (!streams_held) return;
    if (in_child)
        _IO_list_resetlock();
    else
        _IO_list_unlock();
    streams_held = in_child ? 0 : streams_held - 1;
}

#endif
