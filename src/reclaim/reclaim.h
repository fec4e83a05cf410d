/*
 * reclaim.h: passes, which return unused memory to the OS, and the maintenance thread.
 *
 * A *pass* goes through all clients and chunks in steps of bounded time. At most one pass is at
 * work; each thread that ends a slow path meanwhile does a step of it. There are three kinds:
 *
 *     by age      once a decay time or less often: memory that was not used since the pass before
 *                 goes to the OS
 *     by growth   when caches have made a sixteenth more of slabs: items in the depot and empty
 *                 slabs that were not used since the pass before go to the chunks
 *
 *     at once     under memory pressure (chunk/pressure.h): all memory that is not used now goes to
 *                 the OS
 *
 * In addition, each thread looks for idle slots among its own loaded slots, and the maintenance
 * thread reaches into those of threads that sleep.
 *
 * A step is what a thread does in its turn (magazine/turn.h). Below: all layers up to cache/.
 */
#ifndef SY_RECLAIM_RECLAIM_H
#define SY_RECLAIM_RECLAIM_H

#include <slabyard/base.h>
#include <slabyard/reclaim.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/start.h"

/* A hidden maintenance thread (os.h), which must not call functions of the program, has left out
 * work that would call some: a client's flush, or moves. */
extern SY_HIDDEN _Atomic bool sy_reclaim_leaves_out;

/* Does a whole pass by age. If another pass is at work, it does the rest of that one first. This
 * and the next two functions also take the items of threads that sleep (magazine/sleepers.h). */
void sy_reclaim_by_age(void);

/* Does a whole pass at once, unless there was one shortly before. */
void sy_reclaim_at_once(void);

/* Does a pass of its own, at once, until it has returned so many bytes. It reaches into sleeping
 * threads only if the rest is not enough, and ends no reserve. Returns the number of bytes. */
size_t sy_reclaim_some(size_t bytes);

/* If the process is near its memory limit by the last reading, returns as much free memory as it
 * should. */
void sy_reclaim_near_limit(void);

/* Nanoseconds from one pass by age to the next: the decay time, or up to four times that if the
 * program soon uses again what passes have returned. 0: there are no passes. */
uint64_t sy_reclaim_interval(void);

/* Bytes that all passes by age have returned to the OS so far. */
uint64_t sy_reclaim_returned(void);

/* From its start on, threads do steps of passes in their turns. In the child of a fork it ends the
 * pass. */
extern SY_HIDDEN const sy_part sy_reclaim_part;

/* Starts the maintenance thread if the option `maintenance` is `auto` and the process uses enough
 * memory. True: not yet, because this turn is not that of an allocation. */
bool sy_maintenance_look(uint64_t now, bool allocates);
/* Whether the maintenance thread runs, so that other threads leave passes by age to it. */
bool sy_maintenance_runs(void);

/* Ends the background threads for a system call that only a process with one thread may make, and
 * starts them again if they ran. */
bool sy_maintenance_pause(void);
void sy_maintenance_resume(bool ran);

/* Carries out the options that take effect only after the start. In the child of a fork it notes
 * that the maintenance thread does not run. */
extern SY_HIDDEN const sy_part sy_maintenance_part;

#endif
