/*
 * profile.h: the table of sampled objects that are live, and what was sampled at each stack.
 *
 *     record: address of the object --> size, weight, stack, thread, time
 *     site:   stack --> objects and bytes that were allocated, and that were freed
 *
 * A sample stands for `weight` objects: 1 / chance, if each object was sampled by this chance. So
 * the sums over sites are unbiased estimates of all objects of the process. Both the note of an
 * object and the end of its record are exact: the layers above call sy_profile_forget at each free
 * that can be one of a sampled object.
 *
 * The table is one reservation, made when the first profile begins. It has room for a million
 * records; samples beyond these are counted, and left out.
 *
 * Above: heap/, cache/, magazine/ (samples). Below: stack.h, options.h, os/.
 */
#ifndef SY_DEBUG_PROFILE_H
#define SY_DEBUG_PROFILE_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

/* Bytes that are allocated for one sample, on average; 0: no profile is taken. The option `profile`
 * says it, until sy_profile_begin or sy_profile_end is called. */
uint64_t sy_profile_mean(void);

/* The same, or the mean of the profile that has ended. */
uint64_t sy_profile_period(void);

/* Begins a profile: forgets what an earlier one found, unless one is being taken already, and only
 * the mean changes. 0, or -1 with ENOMEM. */
int sy_profile_begin(uint64_t mean);
/* Ends the profile. Frees of its objects are still noted, but see sy_profile_settle. */
void sy_profile_end(void);

/* The bytes that its table has committed. */
size_t sy_profile_bytes(void);

/* The chance of an object of a class of `bytes` to be in the profile. If the mean is large it is
 * bytes / mean, and an object stands for `mean` bytes; it is never above 1. `mean` 0: none. */
static inline double sy_profile_chance(size_t bytes, uint64_t mean) {
    return mean ? (double)bytes / ((double)bytes + (double)mean) : 0;
}

/* Until when the frees of an object are noticed. */
typedef enum sy_profile_frees {
    SY_PROFILE_FREES_SEEN,     /* always: it lies where frees take the slow path */
    SY_PROFILE_FREES_SEEN_NOW, /* as long as a profile is taken (magazine/profiled.h) */
    SY_PROFILE_COUNTED,        /* a counted object, which is not in the profile */
} sy_profile_frees;

/* Notes a new object of `size` bytes that was sampled by this chance. errno is kept. */
void sy_profile_note(const void *object, size_t size, double chance, sy_profile_frees frees);

/* Called when the profile has ended: records of objects whose frees are not noticed any more end.
 * In the profile these objects stay live. */
void sy_profile_settle(void);

/* Ends the records of the objects that `is_gone`, which are not freed one by one, because their
 * cache is destroyed. */
void sy_profile_forget_all(bool (*is_gone)(const void *object, const void *arg), const void *arg);

extern SY_HIDDEN _Atomic uint32_t sy_profile_records;
void sy_profile_forget_slow(const void *object);

/* Called before an object is freed: ends its record, if it has one. errno is kept. */
static inline void sy_profile_forget(const void *object) {
    if (SY_UNLIKELY(atomic_load_explicit(&sy_profile_records, memory_order_relaxed) != 0))
        sy_profile_forget_slow(object);
}

void sy_profile_follow_slow(const void *object, const void *moved);

/* Called when an object was copied to `moved`, before it is freed: its records become records of
 * `moved`. errno is kept. */
static inline void sy_profile_follow(const void *object, const void *moved) {
    if (SY_UNLIKELY(atomic_load_explicit(&sy_profile_records, memory_order_relaxed) != 0))
        sy_profile_follow_slow(object, moved);
}

/* Ends the record of an object that the program does not get: it counts as never allocated. */
void sy_profile_undo(const void *object);

/* ---- counts of what a thread allocates (slabyard/count.h) ---- */

enum { SY_PROFILE_COUNTERS = 32 };

/* The number of this thread's counter; 0: it counts nothing. */
extern SY_HIDDEN SY_TLS uint32_t sy_profile_counter;

typedef struct sy_profile_counts {
    uint64_t allocations, bytes, frees, live_bytes, peak_bytes;
    bool lost; /* an object was not counted: there was no memory for its record */
} sy_profile_counts;

/* Begins a count of this thread; 0, or -1 with EBUSY, EAGAIN or ENOMEM. The layers above then call
 * sy_profile_count for each of its allocations, and sy_profile_forget for each free. A count ends
 * with its thread, and in the child of another thread's fork. */
int sy_profile_begin_count(void);
void sy_profile_end_count(sy_profile_counts *counts);

/* Counts a new object of this thread, which has a counter. errno is kept. */
void sy_profile_count(const void *object, size_t size);

/* Whether a profile is taken, or a thread counts. */
bool sy_profile_watches(void);

/* ---- what was found ---- */

/* What was sampled at a stack: estimates for all objects. */
typedef struct sy_profile_site {
    uint32_t stack; /* 0: stacks that could not be taken, or for which there was no room */
    uint64_t allocated, freed; /* objects, */
    uint64_t allocated_bytes, freed_bytes;
} sy_profile_site;

/* Copies a site, by its number from 0 on. False: there are no more. */
bool sy_profile_get_site(uint32_t number, sy_profile_site *site);

/* How many samples were left out, because there was no room or no memory for their records. */
uint64_t sy_profile_left_out(void);

/* Violations of the table's invariants, 0 when sound. */
size_t sy_profile_verify(void);

/* The table's lock, SY_RANK_PROFILE. A child of a fork keeps the table; if another thread was
 * changing it, the child begins with an empty one. */
extern SY_HIDDEN const sy_part sy_profile_part;

#endif
