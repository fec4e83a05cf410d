/*
 * turn.h: the turn at the end of each slow path. In its turn, a thread lets go of clients whose
 * destruction it has put off, and does a piece of work for all threads, if there is any.
 *
 * reclaim/reclaim.c registers this work with sy_turn_serve: it is a step of a pass.
 */
#ifndef SY_MAGAZINE_TURN_H
#define SY_MAGAZINE_TURN_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { SY_TURNS_PER_LOOK = 16 }; /* turns of a thread from one look at the clock to the next */

extern SY_HIDDEN _Atomic bool sy_turn_wanted; /* there is work: each turn looks */
extern SY_HIDDEN SY_TLS unsigned sy_turns;    /* taken by this thread */

/* After the allocation of a span of so many bytes or more, the turn does its work. Changed by
 * reclaim/slack.c. */
extern SY_HIDDEN _Atomic size_t sy_turn_span;

/* Registers `work`. Turns of any thread call it: each turn while sy_turn_wanted is set, else every
 * SY_TURNS_PER_LOOK-th of a thread. `allocates`: the turn is that of an allocation. */
void sy_turn_serve(void (*work)(bool allocates));

void sy_turn_slow(bool allocates);

/* Called at the end of a slow path, with no lock held and no change half done. errno may change. */
static inline void sy_turn_any(bool allocates) {
    if (SY_UNLIKELY(++sy_turns % SY_TURNS_PER_LOOK == 0 ||
                    atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)))
        sy_turn_slow(allocates);
}

static inline void sy_turn(void) { sy_turn_any(false); }

/* The turn at the end of an allocation. Only such a turn may start a thread: the C library may call
 * free while it holds a lock that the start of a thread needs. */
static inline void sy_turn_of_alloc(void) { sy_turn_any(true); }

/* Makes this thread's next turn do its work, as every sixteenth does. */
static inline void sy_turn_soon(void) { sy_turns = SY_TURNS_PER_LOOK - 1; }

#endif
