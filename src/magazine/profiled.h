/*
 * profiled.h: samples the allocations of clients while a profile is taken (debug/profile.h), if
 * allocations and frees are inline.
 *
 * The kind of such clients changes when the profile begins, and back when it ends
 * (sy_clients_profile). While they are `profiled`, each free is a call: it asks the profile whether
 * the object is a sample, and no item enters a loaded magazine unseen. Allocations stay inline, up
 * to the one that is to be looked at:
 *
 *        items             base        top                         mark
 *          |   later ones   |  countdown |  allocated since the      |
 *          |                |  of them   |  last count               |
 *
 * As in sample.h, a call first counts what has left the loaded magazine since `mark`. But each slot
 * counts for itself, in its countdown (countdown.h), since the chance of an object depends on its
 * size. And no allocation is ever overdue: `base` is never below the one that is to be looked at.
 *
 * A slot that was opened by another kind has an old countdown, with another tag, and frees may have
 * been inline until now. So there can be more items than at `mark`: these count as none.
 *
 * While a thread counts all that it allocates (slabyard/count.h), its slots leave no item to the
 * inline code.
 *
 * Items of batches and of reserves are counted, too. Those that leave a magazine whose thread is
 * parked or has ended are not.
 *
 * Above: slot.h. Below: countdown.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_PROFILED_H
#define SY_MAGAZINE_PROFILED_H

#include "debug/profile.h"
#include "magazine/thread.h"

/* Counts what was allocated from the loaded magazine. */
static inline void sy_profiled_count(sy_slot *slot) {
    int have = (int)(slot->top - slot->loaded->items), gone = slot->mark - have;
    if (gone > 0) slot->countdown -= gone * SY_COUNTDOWN_ONE;
    slot->mark = (uint8_t)have;
}

/* Shuts frees, and allocation before the item that is to be looked at. */
static inline void sy_profiled_arm(sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    bool none = slot->countdown <= 0 || sy_profile_counter;
    ptrdiff_t inline_ones = none ? 0 : slot->countdown / SY_COUNTDOWN_ONE;
    slot->base = inline_ones < slot->top - items ? slot->top - inline_ones : items;
    slot->limit = NULL;
}

/* Whether the next allocation is to be looked at (sy_client_samples). */
static inline bool sy_profiled_is_due(sy_slot *slot) {
    sy_profiled_count(slot);
    return slot->countdown < SY_COUNTDOWN_ONE || sy_profile_counter;
}

/* A profile may have begun, or have another mean now: a count for another mean ends, so that the
 * next allocation is looked at. */
void sy_profiled_renew(sy_slot *slot);

/* The kind of a client that is being opened. The lock of the thread list is held. */
const sy_client_kind *sy_profiled_kind(const sy_client_config *config);

#endif
