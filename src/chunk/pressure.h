/*
 * pressure.h: memory pressure. Under pressure, free memory that is kept for reuse goes back to the
 * OS at once. There are two signs of it:
 *
 *     the process comes near its memory limit   parts of slabs and runs that hold no memory are
 *                                               counted as they are taken, and when they go back
 *                                               (sy_pressure_note). From time to time a thread
 *                                               calculates how much memory the process has
 *                                               (sy_pressure_look); the observer reads how much it
 *                                               has (sy_pressure_take_reading)
 *     tasks of the control group wait for       seen by the observer (sy_pressure_stalled)
 *     memory
 *
 * Then chunk.c releases free units and kept spans. If these are too few, reclaim/reclaim.c begins a
 * pass at once, which also empties depots, and discards the free pages of slabs.
 *
 * Above: chunk.c, cache/slab.c, reclaim/. Below: os/.
 */
#ifndef SY_CHUNK_PRESSURE_H
#define SY_CHUNK_PRESSURE_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that may be taken before the next look, and bytes returned since the last look or
 * reading. */
extern SY_HIDDEN _Atomic int64_t sy_pressure_room;
extern SY_HIDDEN _Atomic size_t
    sy_pressure_taken; /* since the start; reclaim/slack.c looks at it */
extern SY_HIDDEN _Atomic size_t sy_pressure_returned;

/* To be called when `bytes` that hold no memory are taken, and when they have been returned. */
static inline void sy_pressure_note(size_t bytes) {
    atomic_fetch_sub_explicit(&sy_pressure_room, (int64_t)bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&sy_pressure_taken, bytes, memory_order_relaxed);
}
static inline void sy_pressure_note_return(size_t bytes) {
    atomic_fetch_add_explicit(&sy_pressure_returned, bytes, memory_order_relaxed);
}

/* Whether it is time for a look. */
static inline bool sy_pressure_is_due(void) {
    return atomic_load_explicit(&sy_pressure_room, memory_order_relaxed) < 0;
}

/* Calculates how near the process is to its limit, and asks the observer for a reading. Returns the
 * number of bytes of free memory that should be released; 0: there is no pressure, or no look is
 * due. */
size_t sy_pressure_look(void);

/* Begins anew with the memory limit and the resident memory of the last reading. True: free memory
 * should be released, and the next look says how much. `asked`: a look asked for this reading, and
 * has said how much already; else the next allocation looks. One thread at a time calls this. */
bool sy_pressure_take_reading(bool asked);

/* Bytes that should be released and that chunks did not have: a pass at once takes them. */
extern SY_HIDDEN _Atomic size_t sy_pressure_unmet;
/* Whether the limit was so near at the last reading or look that this pass must not wait. */
bool sy_pressure_presses(void);

/* Whether the limit is far, or none is known. */
bool sy_pressure_is_far(void);

/* Whether tasks have waited for memory for a tenth of the time since the last call or more, by the
 * last reading. Only one thread calls it. */
bool sy_pressure_stalled(uint64_t now);

#endif
