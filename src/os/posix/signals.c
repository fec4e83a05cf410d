/*
 * signals.c: the part of os.h that notes a signal: a handler that sets one byte. The program's own
 * handlers come first: a signal that has one, or that is ignored, is left alone.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_POSIX

#    include <errno.h>
#    include <signal.h>

static const int numbers[] = {0, SIGUSR1, SIGUSR2, SIGHUP, SIGURG};

static _Atomic int noted; /* number of the signal; 0: none */
static _Atomic(_Atomic uint8_t *) note;

static void on_signal(int number) {
    (void)number;
    _Atomic uint8_t *byte = atomic_load_explicit(&note, memory_order_relaxed);
    if (byte) atomic_store_explicit(byte, 1, memory_order_relaxed);
}

static bool is_ours(const struct sigaction *now) {
    return !(now->sa_flags & SA_SIGINFO) && now->sa_handler == on_signal;
}

bool sy_os_notes_signal(void) {
    struct sigaction now;
    int saved = errno;
    int number = noted;
    bool ours = number && sigaction(number, NULL, &now) == 0 && is_ours(&now);
    errno = saved;
    return ours;
}

static void forget_signal(void) {
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    if (sy_os_notes_signal()) sigaction(noted, &usual, NULL);
    noted = 0;
}

/* System calls that wait go on after the handler, if the system can let them. A thread with a stack
 * for signals may be on a small one of a coroutine. */
int sy_os_note_signal(unsigned which, _Atomic uint8_t *byte) {
    struct sigaction now, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    int saved = errno, number = numbers[which];
    forget_signal();
    if (number && sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL)
        return sy_os_failed(EBUSY);
    atomic_store_explicit(&note, byte, memory_order_relaxed);
    if (number && sigaction(number, &ours, NULL) != 0) return -1;
    noted = number;
    errno = saved;
    return 0;
}

#endif
