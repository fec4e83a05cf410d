/*
 * locked.h: what the kernel does with locked memory.
 */
#ifndef SY_TEST_LOCKED_H
#define SY_TEST_LOCKED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Whether the kernel discards locked pages, as from 5.18 on: tries it with one, which loses its
 * content. */
static inline bool discards_locked(void *start, size_t page) {
    enum { DONTNEED_LOCKED = 24 };
    return madvise(start, page, DONTNEED_LOCKED) == 0;
}

#endif
