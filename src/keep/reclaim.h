/*
 * reclaim.h: slabyard/reclaim.h for the layers below: a turn at the end of each slow path.
 *
 * A *pass* goes through all clients and chunks in steps that are bounded in time. One is at work at
 * most; whoever comes by a slow path while it is does a step of it. There are two kinds:
 *
 *     by age      once a decay time: what was not used since the pass before goes to the OS
 *     by growth   when caches have made a sixteenth more of slabs: what magazines and empty slabs
 *                 of others hold, and did not want since the pass before, goes to the chunks
 *
 * Beside, each thread looks through its own loaded slots, which nobody else may touch.
 *
 * Above: the doors of cache/, and the thread of maintenance. Below: all layers up to cache/.
 */
#ifndef SY_KEEP_RECLAIM_H
#define SY_KEEP_RECLAIM_H

#include <slabyard/base.h>
#include <slabyard/reclaim.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SY_TURNS_PER_LOOK = 16 }; /* of a thread, from one look at the clock to the next */

extern SY_HIDDEN _Atomic bool sy_reclaim_at_work;  /* a pass is */
extern SY_HIDDEN SY_TLS unsigned sy_reclaim_turns; /* taken by this thread */

void sy_reclaim_take_turn(void);

/* At the end of a slow path: no lock is held, nothing half done, errno may change. */
static inline void sy_reclaim_turn(void) {
    if (SY_UNLIKELY(++sy_reclaim_turns % SY_TURNS_PER_LOOK == 0 ||
                    atomic_load_explicit(&sy_reclaim_at_work, memory_order_relaxed)))
        sy_reclaim_take_turn();
}

/* A slab was made of so many bytes. No lock is held. */
void sy_reclaim_note_slab(size_t bytes);

/* One pass by age from begin to end, unless one is at work already: then the rest of it. */
void sy_reclaim_by_age(void);

/* Nanoseconds from one pass by age to the next; 0: there are none. */
uint64_t sy_reclaim_interval(void);

/* In the child of a fork: no pass is at work. */
void sy_reclaim_recover(void);

/* Whether the thread of maintenance runs, so that others leave passes by age to it. */
bool sy_maintenance_runs(void);
/* In the child of a fork: it does not. */
void sy_maintenance_recover(void);

#endif
