/*
 * clock.c: the part of os.h for time.
 */
#define _GNU_SOURCE

#include "os/os.h"

#if SY_PLATFORM_POSIX

#    include <time.h>

static const uint64_t NS_PER_SECOND = 1000000000;

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t sy_os_now(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t sy_os_thread_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

#endif
