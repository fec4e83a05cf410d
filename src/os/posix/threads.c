/*
 * threads.c: the part of os.h for the ends of threads, forks and cancellation, by POSIX threads.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/linux/thread.h"
#include "os/os.h"
#include "os/parking.h"
#include "os/posix/thread.h"

#if SY_PLATFORM_POSIX

#    include <errno.h>
#    include <pthread.h>
#    include <unistd.h>

typedef void exit_hook(void *);

static _Atomic(exit_hook *) thread_exit_hook;

/* The key plus one, 0 before there is one. */
static _Atomic uint64_t thread_exit_key;

void sy_posix_run_exit_hook(void *arg) {
    exit_hook *hook = atomic_load_explicit(&thread_exit_hook, memory_order_acquire);
    hook(arg);
}

/* The first thread that calls this makes the key. If several threads make one at the same time, all
 * but one delete theirs. */
static int find_key(pthread_key_t *key) {
    uint64_t known = atomic_load_explicit(&thread_exit_key, memory_order_acquire);
    if (known == 0) {
        int error = pthread_key_create(key, sy_posix_run_exit_hook);
        if (error != 0) return sy_os_failed(error);
        if (atomic_compare_exchange_strong(&thread_exit_key, &known, (uint64_t)*key + 1)) return 0;
        pthread_key_delete(*key);
    }
    *key = (pthread_key_t)(known - 1);
    return 0;
}

int sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    if (sy_os_is_failing("at_thread_exit")) return -1;
    exit_hook *known = NULL;
    if (!atomic_compare_exchange_strong(&thread_exit_hook, &known, hook) && known != hook)
        return sy_os_failed(EINVAL);
#    if SY_PLATFORM_LINUX
    if (sy_linux_is_hidden) {
        sy_linux_hidden_arg = arg;
        return 0;
    }
#    endif
    pthread_key_t key;
    if (find_key(&key) != 0) return -1;
    int error = pthread_setspecific(key, arg);
    return error == 0 ? 0 : sy_os_failed(error);
}

#    if !SY_PLATFORM_LINUX

bool sy_os_has_had_threads(void) { return true; }

/* The process in which this library runs: written at the start, and in the child of a fork. */
static _Atomic pid_t own_process;

__attribute__((constructor(101))) static void note_process(void) { own_process = getpid(); }

bool sy_os_is_own_thread(void) { return own_process == getpid(); }

/* Runs before the hooks of the library in the child. */
static void begin_child(void) {
    note_process();
#        if SY_PLATFORM_PARKS
    sy_parking_clear();
#        endif
}

/* Before the hooks of the library, which a later constructor registers. */
__attribute__((constructor(101))) static void register_first(void) {
    if (pthread_atfork(NULL, NULL, begin_child) != 0)
        sy_os_abort("slabyard: the hooks of fork cannot be registered\n");
}

#    endif

int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    if (sy_os_is_failing("at_fork")) return -1;
    int error = pthread_atfork(prepare, parent, child);
    return error == 0 ? 0 : sy_os_failed(error);
}

int sy_os_hold_cancellation(void) {
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void sy_os_drop_cancellation(int before) { pthread_setcancelstate(before, NULL); }

#endif
