/*
 * start.h: one-time start of the layers, and fork.
 *
 * Beside the layers: it knows all of them up to cache/, and the doors that may come first call it.
 */
#ifndef SY_KEEP_START_H
#define SY_KEEP_START_H

#include <stdbool.h>

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
