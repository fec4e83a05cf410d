/*
 * start.h: one-time start of the library, and fork.
 *
 * Each layer describes what it has to do at the start and around a fork as an `sy_part`: a constant
 * beside the code it names. The list of all parts is the one thing that knows every layer
 * (keep/parts.c). So a function that a program may call first starts the library by a call
 * downwards, and a layer that comes new, or goes, is one line of the list.
 */
#ifndef SY_OS_START_H
#define SY_OS_START_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>

/* Members that are NULL are left out. */
typedef struct sy_part {
    /* Once, innermost part first: after it the part serves the parts outside of it. 0, or -1: the
     * start has failed, and a later one begins again with this part. */
    int (*start)(void);
    /* Once, in the same order, when all have started: may allocate, and call what allocates. */
    int (*finish)(void);
    /* Around a fork: takes its locks by sy_lock_hold, outermost part first; lets go of them by
     * sy_lock_drop, innermost first. */
    void (*hold)(void);
    void (*drop)(void);
    /* In the child, at once after all were let go. */
    void (*inherit)(void);
    /*
     * In the child, innermost first, once the thread holds nothing any more for the work that it
     * was in when it forked: what other threads had begun is ended or undone. Of what this thread
     * was in the midst of, in a function of the program's or when a signal came whose handler
     * forked, nothing is touched.
     */
    void (*recover)(void);
} sy_part;

/* In the order of their locks, outermost first (os/lock.h). Defined in keep/parts.c. */
extern SY_HIDDEN const sy_part *const sy_parts[];
extern SY_HIDDEN const size_t sy_part_count;

/*
 * Starts what has not started. 0, or -1 with ENOMEM: a later call tries again. Any thread. The
 * thread that is at it may come by here again, by an allocation of the system's functions: then 0
 * if an allocation can be served already, else -1.
 */
int sy_start(void);

/* What is made once and later than that, like a class of the heap, is made under this lock, which a
 * fork waits for: the child finds it made or not begun. False, and not locked: this thread has it,
 * and has come by here again in the same way. */
bool sy_start_lock(void);
void sy_start_unlock(void);

/* All locks of the library in their order, so that a copy of the process finds every structure
 * whole. */
void sy_start_lock_all(void);
void sy_start_unlock_all(void);

#endif
