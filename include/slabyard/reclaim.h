/*
 * slabyard/reclaim.h: free memory goes back to the OS: all of it on request, some of it within a
 * time, and by itself what nobody has wanted for a while. Included by slabyard/cache.h.
 *
 *     sy_trim();                            everything that can go, however long it takes
 *     sy_trim_some(16 << 20, 200000);       16 MiB, or what 0.2 ms are enough for
 *     sy_set_decay(1000);                   the default: what was not used goes after 2 to 4 s
 *     sy_maintenance_start();               by a thread of its own rather than on slow paths
 *
 * By itself: now and then a thread that is on a slow path does a step of the work, some tens of
 * microseconds of it: first what waits in magazines that were not wanted, then empty slabs, then
 * pages of slabs that are not in use, then units of chunks. So a program that allocates is kept
 * small, and one that does nothing is left alone; for that there is the maintenance thread. Caches
 * that grow make others give up, for them to use, what these have in magazines and do not want.
 *
 * What calls functions of the program's (caches with a destructor, and in memory of its own;
 * quantum caches of arenas) is left to the maintenance thread and to trims: a slow path may be on a
 * thread that holds locks of the program's.
 *
 * Objects in the magazines of a running thread go at its next slow path; a thread that is going to
 * wait for long says so (sy_thread_idle).
 *
 * Thread rule: any thread, except where said. What sy_cache_reserve has provided goes with sy_trim
 * and sy_trim_some alone.
 */
#ifndef SLABYARD_RECLAIM_H
#define SLABYARD_RECLAIM_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/* Gives the free memory of all caches, of the heap and of the library itself back to the OS, as
 * sy_cache_trim does; returns bytes given back. */
SY_API size_t sy_trim(void);

/*
 * The same, until `bytes` have gone back or `budget_ns` nanoseconds have passed, at the next end of
 * a step of some tens of microseconds. It goes on where the last one has stopped. Returns bytes
 * given back; fewer than asked for within the time: there is no more but what magazines of running
 * threads hold, and words of handles (slabyard/handle.h), which sy_trim gives back.
 */
SY_API size_t sy_trim_some(size_t bytes, uint64_t budget_ns);

/* Free memory that nobody uses goes back by itself within two to four times `milliseconds`, as it
 * has to come down from magazines to slabs to the OS; 0: never. At first 1000. */
SY_API void sy_set_decay(uint64_t milliseconds);

/*
 * Starts a thread that does what slow paths do otherwise, once every decay time. 0, also if it is
 * running already; -1 with errno EAGAIN or ENOMEM. The child of a fork is without it until it
 * starts its own.
 */
SY_API int sy_maintenance_start(void);

/* Ends it, and waits until it has done its last step (the thread itself may take a moment longer).
 * Not from a callback of Slabyard's, nor at a thread's end; in one that the thread itself runs, it
 * does not wait. */
SY_API void sy_maintenance_stop(void);

SY_END_DECLS

#endif
