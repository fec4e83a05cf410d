/*
 * wait.c: the part of os.h for waiting, by the calls of FreeBSD (_umtx_op) and OpenBSD (futex). The
 * other BSDs use the parking lot (os/parking.c).
 */
#include "os/os.h"

#if SY_PLATFORM_BSD && !SY_PLATFORM_PARKS

#    include <errno.h>
#    include <sys/types.h>
#    include <time.h>
#    if defined(__FreeBSD__)
#        include <sys/umtx.h>
#    else
#        include <sys/futex.h>
#    endif

static const uint64_t NS_PER_SECOND = 1000000000;

/* time NULL: as long as it takes. */
static void wait_for(_Atomic uint32_t *word, uint32_t expected, struct timespec *time) {
    int saved = errno;
#    if defined(__FreeBSD__)
    _umtx_op((void *)word, UMTX_OP_WAIT_UINT_PRIVATE, expected,
             time ? (void *)(uintptr_t)sizeof *time : NULL, time);
#    else
    futex((volatile uint32_t *)word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, (int)expected, time, NULL);
#    endif
    errno = saved;
}

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) { wait_for(word, expected, NULL); }

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    struct timespec time = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    wait_for(word, expected, &time);
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    int saved = errno;
#    if defined(__FreeBSD__)
    _umtx_op((void *)word, UMTX_OP_WAKE_PRIVATE, (unsigned long)count, NULL, NULL);
#    else
    futex((volatile uint32_t *)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL);
#    endif
    errno = saved;
}

#endif
