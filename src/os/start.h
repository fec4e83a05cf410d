/*
 * start.h: the start of the library, once in a process, and what each layer does around a fork.
 *
 * Each layer describes what it has to do at the start and around a fork as an `sy_part`: a constant
 * beside the code it names. Only the list of all parts knows every layer (parts.c). So a
 * function that a program may call first can start the library by calling a lower layer, and adding
 * or removing a layer changes one line of the list.
 */
#ifndef SY_OS_START_H
#define SY_OS_START_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>

/* A member that is NULL is not called. */
typedef struct sy_part {
    /* Called once, innermost part first. After it, outer parts may use this part. 0, or -1: the
     * start has failed, and a later start begins again with this part. */
    int (*start)(void);
    /* Called once, in the same order, when all parts have started. It may allocate, and call
     * functions that allocate. */
    int (*finish)(void);
    /* Called before a fork takes any lock: waits until other threads are where the fork may come.
     * `drop` ends what it has begun. */
    void (*settle)(void);
    /* Around a fork: `hold` takes the part's locks by sy_lock_hold, outermost part first; `drop`
     * releases them by sy_lock_drop, innermost first. */
    void (*hold)(void);
    void (*drop)(void);
    /* Called in the child, directly after all locks were dropped. */
    void (*inherit)(void);
    /*
     * Called in the child, innermost part first, as soon as the thread holds no more locks for work
     * that it had begun before the fork. Completes or undoes the operations of the parent's other
     * threads. It must not touch operations of this thread that the fork interrupted: the program
     * forked within a callback, or in a handler of a signal.
     */
    void (*recover)(void);
} sy_part;

/* All parts, in the order of their locks, outermost first (os/lock.h). Defined in parts.c. */
extern SY_HIDDEN const sy_part *const sy_parts[];
extern SY_HIDDEN const size_t sy_part_count;

/*
 * Starts all parts that have not started. 0, or -1 with ENOMEM: a later call tries again. Any
 * thread may call it. Functions of the system that the start calls may allocate, so the starting
 * thread may call this again within the start. Then the result is 0 if an allocation can be served
 * already, else -1.
 */
int sy_start(void);

/* A structure that is made once, after the start, such as a size class of the heap, is made under
 * this lock. A fork waits for the lock, so the child finds the structure either complete or not
 * begun. False, and nothing is locked: this thread holds the lock already, and an allocation within
 * its work has called this again. */
bool sy_start_lock(void);
void sy_start_unlock(void);

/* Take and release all locks of the library in their order, so that a copy of the process that is
 * made meanwhile finds every structure whole. */
void sy_start_lock_all(void);
void sy_start_unlock_all(void);

#endif
