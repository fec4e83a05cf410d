/*
 * numbers.c: numbers of threads, for platforms whose system gives none that are small enough. No
 * number is given twice, as long as fewer than 67 million threads use the library (os/lock.c). The
 * child of a fork keeps that of the thread that forked.
 */
#include "os/os.h"

#if (SY_PLATFORM_POSIX && !SY_PLATFORM_LINUX) || SY_PLATFORM_PORTABLE

unsigned sy_os_thread(void) {
    static _Atomic unsigned last;
    static SY_TLS unsigned own;
    if (!own) own = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return own;
}

#endif
