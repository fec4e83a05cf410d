/*
 * slot.h: the steps on a loaded slot and its magazines, of which the slow paths are made.
 *
 * A slot is written by its thread alone or, when that does not run, under the thread list's lock.
 * What other threads may read meanwhile (statistics, fork) is written atomically, and in an order
 * in which each state between two stores makes sense: the child of a fork takes up the slots of
 * threads that were stopped anywhere. No magazine is in two places, and none has more items than
 * it has: those of the loaded one end at `top`, or, while that is NULL, are its count.
 *
 * Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SLOT_H
#define SY_MAGAZINE_SLOT_H

#include "magazine/thread.h"

/* Releasing: a reader follows them to their headers. */
static inline void sy_slot_set_magazines(sy_slot *slot, sy_magazine *loaded,
                                         sy_magazine *previous) {
    __atomic_store_n(&slot->previous, previous, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->loaded, loaded, __ATOMIC_RELEASE);
}

static inline void sy_slot_set_top(sy_slot *slot, uintptr_t *top) {
    __atomic_store_n(&slot->top, top, __ATOMIC_RELAXED);
}

static inline bool sy_slot_has_magazines(const sy_slot *slot) {
    return slot->loaded || slot->previous;
}

static inline uint32_t sy_magazine_count(const sy_magazine *magazine) {
    return atomic_load_explicit(&magazine->count, memory_order_relaxed);
}

static inline void sy_magazine_set_count(sy_magazine *magazine, size_t count) {
    atomic_store_explicit(&magazine->count, (uint32_t)count, memory_order_relaxed);
}

/* Makes `magazine`, with its count, the loaded one; what was loaded has been dealt with. */
static inline void sy_slot_load(sy_slot *slot, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    __atomic_store_n(&slot->loaded, magazine, __ATOMIC_RELEASE);
    slot->base = magazine->items;
    sy_slot_set_top(slot, magazine->items + count);
    slot->limit = magazine->items + (count > slot->capacity ? count : slot->capacity);
    slot->mark = (uint16_t)count;
}

/* Changes both magazines, whose counts are written in them. A `top` that points past the end of one
 * magazine may point to the start of the next: it goes first. */
static inline void sy_slot_exchange(sy_slot *slot, sy_magazine *loaded, sy_magazine *previous) {
    sy_slot_set_top(slot, NULL);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_magazines(slot, loaded, previous);
    sy_slot_load(slot, loaded);
}

/* Writes the count of the loaded magazine into it; gives the magazine. */
static inline sy_magazine *sy_slot_unload(sy_slot *slot) {
    sy_magazine *magazine = slot->loaded;
    sy_magazine_set_count(magazine, (size_t)(slot->top - magazine->items));
    return magazine;
}

static inline void sy_slot_push(sy_slot *slot, uintptr_t item) {
    __atomic_store_n(slot->top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_top(slot, slot->top + 1);
}

static inline uintptr_t sy_slot_pop(sy_slot *slot) {
    uintptr_t item = slot->top[-1];
    sy_slot_set_top(slot, slot->top - 1);
    return item;
}

/* Takes the magazines out of a slot, which is shut then, and puts them before `chain`. The list's
 * lock is held: a client that is being closed takes them there too. */
static inline sy_magazine *sy_slot_take(sy_slot *slot, sy_magazine *chain) {
    sy_magazine *magazines[2] = {slot->loaded ? sy_slot_unload(slot) : NULL, slot->previous};
    sy_slot_set_magazines(slot, NULL, NULL);
    slot->reserved = slot->mark = 0;
    slot->base = slot->limit = NULL;
    sy_slot_set_top(slot, NULL);
    for (int i = 0; i < 2; i++)
        if (magazines[i]) magazines[i]->chain = chain, chain = magazines[i];
    return chain;
}

/* Items in a slot, seen from another thread. */
static inline size_t sy_slot_items(const sy_slot *slot) {
    const sy_magazine *loaded = __atomic_load_n(&slot->loaded, __ATOMIC_ACQUIRE);
    const sy_magazine *previous = __atomic_load_n(&slot->previous, __ATOMIC_ACQUIRE);
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    size_t items = previous && previous != loaded ? sy_magazine_count(previous) : 0;
    if (loaded && !top) items += sy_magazine_count(loaded);
    if (loaded && top >= loaded->items && top <= loaded->items + SY_MAGAZINE_ITEMS)
        items += (size_t)(top - loaded->items);
    return items;
}

/* ---- roster.c, for client.c ---- */

/* What is moved stays counted, and is found by sy_client_holds. The lock of the thread list is held
 * at the beginning, since before the magazines were taken; none is while they are flushed and
 * stored. Whether there was an item in them. */
void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain);
bool sy_move_flush(sy_client *client, sy_move *move);

/* ---- client.c, for roster.c ---- */

/* Flushes and stores the magazines of a chain that nobody else counts or looks for. No lock is
 * held. */
void sy_client_flush_chain(sy_client *client, sy_magazine *chain);

/* Flushes a magazine that is counted until then. */
void sy_client_flush_counted(sy_client *client, sy_magazine *magazine);

/* Flushes the loaded magazine of a one-way client, which stays. */
void sy_client_put_back(sy_client *client, sy_thread *thread, sy_slot *slot);

/* What the slot may hold is for other slots to use. */
void sy_client_give_up_capacity(sy_client *client, sy_thread *thread, sy_slot *slot);

#endif
