/*
 * turn.h: a turn at the end of each slow path: there a thread leaves the clients whose end it had
 * put off, and does a piece of work that serves all threads, if there is any.
 *
 * What that work is, a layer above says (sy_turn_serve; keep/reclaim.c: a step of a pass).
 */
#ifndef SY_MAGAZINE_TURN_H
#define SY_MAGAZINE_TURN_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SY_TURNS_PER_LOOK = 16 }; /* of a thread, from one look at the clock to the next */

extern SY_HIDDEN _Atomic bool sy_turn_wanted; /* there is work: each turn looks */
extern SY_HIDDEN SY_TLS unsigned sy_turns;    /* taken by this thread */

/* Has `work` called in turns, in any thread: when some is wanted, and in every
 * SY_TURNS_PER_LOOK-th. */
void sy_turn_serve(void (*work)(void));

void sy_turn_slow(void);

/* At the end of a slow path: no lock is held, nothing half done, errno may change. */
static inline void sy_turn(void) {
    if (SY_UNLIKELY(++sy_turns % SY_TURNS_PER_LOOK == 0 ||
                    atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)))
        sy_turn_slow();
}

/* This thread's next turn does not wait for its sixteenth. */
static inline void sy_turn_soon(void) { sy_turns = SY_TURNS_PER_LOOK - 1; }

#endif
