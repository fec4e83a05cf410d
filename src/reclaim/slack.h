/*
 * slack.h: a bound for the memory that is held for objects: what live objects needed at the highest
 * moment of the last one to two seconds, and so many per cent of it (the option `slack`).
 *
 *     0                  live now         live peak             bound
 *     |------------------|----------------|---------------------|
 *                                         |<- per cent of it -->|
 *     held: |--------------------------------------------------->
 *
 * Held are slabs, mixed units, spans, and free units that hold memory, without what was discarded.
 * Live is what is held without free slots, holes and free units. Objects in magazines count as
 * live. All is counted, not read from the system.
 *
 * Above: reclaim.c. Below: all layers up to cache/.
 */
#ifndef SY_RECLAIM_SLACK_H
#define SY_RECLAIM_SLACK_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "os/start.h"

/* The option's value; 0: there is no bound. */
extern SY_HIDDEN _Atomic size_t sy_slack_percent;

static inline bool sy_slack_is_bounded(void) {
    return atomic_load_explicit(&sy_slack_percent, memory_order_relaxed) != 0;
}

/* Called in a turn, if there is a bound. If so much memory was taken since the last look, or so
 * much time has passed, that a look is due, looks. Returns the bytes that should go back now. */
size_t sy_slack_look(void);

/* In the child of a fork another thread's look has ended. */
extern SY_HIDDEN const sy_part sy_slack_part;

#endif
