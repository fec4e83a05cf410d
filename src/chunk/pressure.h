/*
 * pressure.h: memory pressure. Under pressure, free memory that is kept for reuse goes back to the
 * OS at once. There are two signs of it:
 *
 *     the process comes near its memory limit   parts of slabs and runs that hold no memory are
 *                                               counted as they are taken (sy_pressure_note). From
 *                                               time to time a thread looks how much memory the
 *                                               process has (sy_pressure_look)
 *     tasks of the control group wait for       seen by the maintenance thread
 *     memory                                    (sy_pressure_stalled)
 *
 * Then chunk.c releases free units and kept spans. If these are too few, keep/reclaim.c begins a
 * pass at once, which also empties depots, and discards the free pages of slabs.
 *
 * Above: chunk.c, cache/slab.c, keep/. Below: os/.
 */
#ifndef SY_CHUNK_PRESSURE_H
#define SY_CHUNK_PRESSURE_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that may be taken before the next look. */
extern SY_HIDDEN _Atomic int64_t sy_pressure_room;

/* To be called when `bytes` that hold no memory are taken. */
static inline void sy_pressure_note(size_t bytes) {
    atomic_fetch_sub_explicit(&sy_pressure_room, (int64_t)bytes, memory_order_relaxed);
}

/* Whether it is time for a look. */
static inline bool sy_pressure_is_due(void) {
    return atomic_load_explicit(&sy_pressure_room, memory_order_relaxed) < 0;
}

/* Looks how near the process is to its limit, once `coming` more bytes hold memory. Returns the
 * number of bytes of free memory that should be released; 0: there is no pressure, or another
 * thread is looking. It may read files, and change errno. */
size_t sy_pressure_look(size_t coming);

/* Bytes that should be released and that chunks did not have: a pass at once takes them. */
extern SY_HIDDEN _Atomic size_t sy_pressure_unmet;
/* Whether the limit was so near at the last look that this pass must not wait. */
bool sy_pressure_presses(void);

/* Whether the limit was far at the last look: until the next one, less than half of the distance to
 * the mark can be taken. False before the first look. */
bool sy_pressure_is_far(void);

/* Whether tasks have waited for memory for a tenth of the time since the last call or more. Reads a
 * file. Only one thread calls it. */
bool sy_pressure_stalled(uint64_t now);

#endif
