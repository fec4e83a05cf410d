/*
 * locked.h: what the kernel does with locked memory.
 */
#ifndef SY_TEST_LOCKED_H
#define SY_TEST_LOCKED_H

#include <stdbool.h>
#include <stddef.h>

#include "os/platform.h"

#if SY_PLATFORM_LINUX
#    include <sys/mman.h>
#endif

/* Whether the system discards locked pages, as Linux does from 5.18 on: tries it with one, which
 * loses its content. */
static inline bool discards_locked(void *start, size_t page) {
#if SY_PLATFORM_LINUX
    enum { DONTNEED_LOCKED = 24 };
    return madvise(start, page, DONTNEED_LOCKED) == 0;
#else
    (void)start, (void)page;
    return false;
#endif
}

#endif
