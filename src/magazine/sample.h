/*
 * sample.h: decides which allocation of a client is to be guarded, if allocations are inline.
 *
 * A thread guards one in `guard_every` of its allocations. `sy_guard_left` (debug/guard.h) is the
 * number of allocations, from all its clients, up to the next guarded one. The inline code does not
 * count. So the slow paths count afterwards what the inline code has allocated, and make it stop
 * before the allocation that is to be guarded:
 *
 *          a call or more   inline      counted at the next call
 *          |<------------>|<-------->|<------------------------->|
 *        items           base       top                         mark
 *
 *  - Each free is a call, so between two calls no item enters the loaded magazine. Each item that
 *    has left it was allocated.
 *  - `mark` is the number of items at the last count. A count subtracts from sy_guard_left what has
 *    left since: mark - (top - items). Each step that changes the loaded magazine counts first; a
 *    free adds its item to `mark` as well.
 *  - After each count the slot is *armed*: `base` leaves sy_guard_left - 1 items to the inline
 *    code. The next allocation is a call, and sy_client_due says that it is to be guarded.
 *
 * On average exactly 1 in `guard_every` is guarded, although a call arms only the slot of its own
 * client. The inline code may take more items from the slots of other clients than the interval has
 * left. Once these items are counted, sy_guard_left is less than 1: the next call is due, and the
 * interval after it is shorter by as many.
 *
 * Two kinds of allocations are exceptions. Items that the thread reserved are counted, but never
 * guarded: a slot with reserved items is not armed. Items that left a magazine since the last count
 * are not counted if another thread takes the magazine (the thread is parked or has ended), since
 * sy_guard_left is the thread's own.
 *
 * Above: slot.h. Below: debug/guard.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SAMPLE_H
#define SY_MAGAZINE_SAMPLE_H

#include "debug/guard.h"
#include "magazine/thread.h"

/* Counts what was allocated from the loaded magazine. */
static inline void sy_sample_count(sy_slot *slot) {
    uint8_t have = (uint8_t)(slot->top - slot->loaded->items);
    sy_guard_left -= slot->mark - have;
    slot->mark = have;
}

/* Shuts allocation before the item that is to be guarded. With reserved items it leaves allocation
 * open. */
static inline void sy_sample_arm(sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    int64_t inline_ones = sy_guard_left > 1 ? sy_guard_left - 1 : 0;
    bool shut = inline_ones < slot->top - items && !slot->reserved;
    slot->base = shut ? slot->top - inline_ones : items;
}

#endif
