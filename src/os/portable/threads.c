/*
 * threads.c: the part of os.h for threads, by those of C11. A platform without them has one thread:
 * which waits for no other, and does not end.
 */
#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_PORTABLE

#    include <errno.h>
#    if SY_PLATFORM_DESCRIPTORS && (SY_OS_SERVICES & SY_OS_THREADS)
#        include <pthread.h>
#    endif

typedef void exit_hook(void *);

#    if SY_OS_SERVICES & SY_OS_THREADS

#        include <threads.h>

bool sy_os_has_had_threads(void) { return true; }

static _Atomic(exit_hook *) thread_exit_hook;
static once_flag key_made = ONCE_FLAG_INIT;
static tss_t key;
static bool has_key;

static void run_thread_exit_hook(void *arg) {
    exit_hook *hook = atomic_load_explicit(&thread_exit_hook, memory_order_acquire);
    hook(arg);
}

static void make_key(void) { has_key = tss_create(&key, run_thread_exit_hook) == thrd_success; }

int sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    if (sy_os_is_failing("at_thread_exit")) return -1;
    exit_hook *known = NULL;
    if (!atomic_compare_exchange_strong(&thread_exit_hook, &known, hook) && known != hook)
        return sy_os_failed(EINVAL);
    int saved = errno;
    call_once(&key_made, make_key);
    if (!has_key) return sy_os_failed(EAGAIN);
    if (tss_set(key, arg) != thrd_success) return sy_os_failed(ENOMEM);
    errno = saved;
    return 0;
}

#    else

bool sy_os_has_had_threads(void) { return false; }

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) { (void)word, (void)expected; }

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    (void)word, (void)expected, (void)ns;
}

void sy_os_wake(_Atomic uint32_t *word, int count) { (void)word, (void)count; }

int sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    static exit_hook *known;
    (void)arg;
    if (sy_os_is_failing("at_thread_exit")) return -1;
    if (known && known != hook) return sy_os_failed(EINVAL);
    known = hook;
    return 0;
}

#    endif

bool sy_os_is_own_thread(void) { return true; }

/* C's threads cannot be cancelled, but a system's threads may lie below them. */
#    if SY_PLATFORM_DESCRIPTORS && (SY_OS_SERVICES & SY_OS_THREADS)

int sy_os_hold_cancellation(void) {
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void sy_os_drop_cancellation(int before) { pthread_setcancelstate(before, NULL); }

#    else

int sy_os_hold_cancellation(void) { return 0; }

void sy_os_drop_cancellation(int before) { (void)before; }

#    endif

#endif
