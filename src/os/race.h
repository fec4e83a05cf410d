/*
 * race.h: tells ThreadSanitizer what happens before what in the library, so that it sees no race in
 * a correct program.
 *
 *     thread A: writes an object, frees it | lock released, magazine pushed: before ---+
 *                                                                                      |
 *     thread B: lock acquired, magazine popped: after <--------------------------------+
 *               | allocates the object, writes it
 *
 * ThreadSanitizer watches the code that was compiled with it: the program's, and the inline
 * functions of Slabyard's headers in it. A library that is installed was compiled without. So it
 * would see the accesses of both threads, and not the synchronization between them. It is
 * recognised by its functions, to which the references are weak. Without it each call is a load and
 * a branch. The pairs of calls are where the library synchronizes anyway: locks, the stacks of the
 * depot, and the states of threads' records.
 *
 * Lowest file of os/.
 */
#ifndef SY_OS_RACE_H
#define SY_OS_RACE_H

#include <slabyard/base.h>
#include <stddef.h>

extern __attribute__((weak, visibility("default"))) void __tsan_acquire(void *where);
extern __attribute__((weak, visibility("default"))) void __tsan_release(void *where);

/* All that this thread has done happens before what a thread does that calls sy_race_after with the
 * same address later. Call this before the operation that the other thread can see. */
static inline void sy_race_before(const void *where) {
    if (SY_UNLIKELY(__tsan_release != NULL)) __tsan_release((void *)where);
}

/* Call this after the operation by which this thread has seen that of the other. */
static inline void sy_race_after(const void *where) {
    if (SY_UNLIKELY(__tsan_acquire != NULL)) __tsan_acquire((void *)where);
}

#endif
