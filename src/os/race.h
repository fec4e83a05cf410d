/*
 * race.h: tells ThreadSanitizer, Helgrind and DRD what happens before what in the library, so that
 * they see no race in a correct program.
 *
 *     thread A: writes an object, frees it | lock released, magazine pushed: before ---+
 *                                                                                      |
 *     thread B: lock acquired, magazine popped: after <--------------------------------+
 *               | allocates the object, writes it
 *
 * ThreadSanitizer watches the code that was compiled with it: the program's, and the inline
 * functions of Slabyard's headers in it. A library that is installed was compiled without. So it
 * would see the accesses of both threads, and not the synchronization between them. Helgrind and
 * DRD watch all code, and do not know the library's locks and atomic variables. The library's
 * tables, and the variables of the shared library, are left out for them.
 *
 * A detector is recognised at the start: ThreadSanitizer by its functions (weak references), the
 * others by their answers to requests, which do nothing outside of Valgrind. Without one each call
 * is a load and a branch. The pairs of calls are where the library synchronizes anyway: locks, the
 * stacks of the depot, and the states of threads' records.
 *
 * Lowest file of os/.
 */
#ifndef SY_OS_RACE_H
#define SY_OS_RACE_H

#include <slabyard/base.h>
#include <stddef.h>
#include <stdint.h>

extern SY_HIDDEN uint8_t sy_race_detector; /* 0: none */

/* Called once, before the library makes its first table. */
void sy_race_start(void);

/* For the two functions below. */
void sy_race_tell_before(const void *where);
void sy_race_tell_after(const void *where);

/* All that this thread has done happens before what a thread does that calls sy_race_after with the
 * same address later. Call this before the operation that the other thread can see. */
static inline void sy_race_before(const void *where) {
    if (SY_UNLIKELY(sy_race_detector)) sy_race_tell_before(where);
}

/* Call this after the operation by which this thread has seen that of the other. */
static inline void sy_race_after(const void *where) {
    if (SY_UNLIKELY(sy_race_detector)) sy_race_tell_after(where);
}

/* The memory is the library's own, and no detector has to look at it. */
void sy_race_own(const void *start, size_t bytes);

#endif
