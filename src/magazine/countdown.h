/*
 * countdown.h: counts the allocations of one client by one thread, down to the one that is to be
 * sampled: of the drop-in malloc (heap/sampled.h) or while a profile is taken (profiled.h). The
 * word lies in the loaded slot, in the cache line that the inline code of an allocation uses
 * anyway:
 *
 *      31                           8 7        0
 *     | allocations that pass, signed |   tag   |     counting down subtracts SY_COUNTDOWN_ONE
 *
 * Below zero, the allocation is to be looked at. The tag is for the function that set the word. A
 * slot that is new has 0: its first allocation is looked at.
 *
 * Only the thread itself writes the word, and only while the slot has a loaded magazine. Other
 * slots are shared by all threads that have no record, or have to stay zero to count as unused.
 *
 * Below: slabyard/loaded.h. Above: heap/ and profiled.h count, and decide what a count means.
 */
#ifndef SY_MAGAZINE_COUNTDOWN_H
#define SY_MAGAZINE_COUNTDOWN_H

#include <slabyard/loaded.h>

enum {
    SY_COUNTDOWN_AT = 2 * sizeof(void *) + 12, /* bytes from the start of a loaded slot */
    SY_COUNTDOWN_ONE = 1 << 8,
    SY_COUNTDOWN_MAX = INT32_MAX / SY_COUNTDOWN_ONE, /* allocations */
    SY_COUNTDOWN_TAG = SY_COUNTDOWN_ONE - 1,         /* bits */
};

static inline int32_t *sy_countdown_of(sy_loaded_slot *slot) {
    return (int32_t *)(void *)((char *)slot + SY_COUNTDOWN_AT);
}

/* Counts one allocation. True: it is to be looked at. */
static inline bool sy_countdown_ends(sy_loaded_slot *slot) {
    return SY_UNLIKELY((*sy_countdown_of(slot) -= SY_COUNTDOWN_ONE) < 0);
}

/* This thread's slot of the client, if its word may be written; else NULL. */
sy_loaded_slot *sy_countdown_slot(unsigned number);

/* A tag that is not 0 and differs, most likely, from that of other settings. */
int32_t sy_countdown_tag(uint64_t settings);

/*
 * Ends a count whose word is below zero, and begins the next one. Returns whether the allocation
 * that has ended it is sampled. Each allocation is sampled by `chance`. So the number of
 * allocations up to the next sample has a geometric distribution. This distribution has no memory:
 * a count that ends early, after `most` allocations, is drawn anew then. If the count was not one
 * up to a sample with this tag, the allocation is the first that is asked about. `chance` 0:
 * nothing is sampled.
 */
bool sy_countdown_end(int32_t *word, int32_t tag, double chance, int32_t most);

#endif
