/*
 * reclaim.h: passes, which give unused memory back to the OS, and the maintenance thread.
 *
 * A *pass* goes through all clients and chunks in steps of bounded time. At most one pass is at
 * work; each thread that ends a slow path meanwhile does a step of it. There are two kinds:
 *
 *     by age      once a decay time: memory that was not used since the pass before goes to the OS
 *     by growth   when caches have made a sixteenth more of slabs: items in the depot and empty
 *                 slabs that were not used since the pass before go to the chunks
 *
 * In addition, each thread looks for idle slots among its own loaded slots, since no other thread
 * may touch them while it runs.
 *
 * A step is what a thread does in its turn (magazine/turn.h). Below: all layers up to cache/.
 */
#ifndef SY_KEEP_RECLAIM_H
#define SY_KEEP_RECLAIM_H

#include <slabyard/base.h>
#include <slabyard/reclaim.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/start.h"

/* One pass by age from begin to end, unless one is at work already: then the rest of it. */
void sy_reclaim_by_age(void);

/* Nanoseconds from one pass by age to the next; 0: there are none. */
uint64_t sy_reclaim_interval(void);

/* Turns begin. In the child of a fork no pass is at work. */
extern SY_HIDDEN const sy_part sy_reclaim_part;

/* Starts the maintenance thread, if the option is `auto` and there is memory enough. */
void sy_maintenance_look(uint64_t now);
/* Whether the maintenance thread runs, so that other threads leave passes by age to it. */
bool sy_maintenance_runs(void);
/* The options of which this layer and those below are told late. In the child of a fork the thread
 * does not run. */
extern SY_HIDDEN const sy_part sy_maintenance_part;

#endif
