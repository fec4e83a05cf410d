/*
 * slot.h: the steps on a loaded slot and its magazines, of which the slow paths are made.
 *
 * The steps know the kinds of clients. They keep the free direction of a client that is one-way or
 * sees frees shut, and count for sample.h. So the slow paths take these steps for each client
 * alike.
 *
 * A slot is written by its thread alone or, when that does not run, under the thread list's lock.
 * What other threads may read meanwhile (statistics, fork) is written atomically, and in an order
 * in which each state between two stores makes sense: the child of a fork takes up the slots of
 * threads that were stopped anywhere. No magazine is in two places, and none has more items than
 * it has: those of the loaded one end at `top`, or, while that is NULL, are its count.
 *
 * Below: sample.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SLOT_H
#define SY_MAGAZINE_SLOT_H

#include "magazine/sample.h"
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

/* Writes the count of the loaded magazine into it; gives the magazine. */
static inline sy_magazine *sy_slot_unload(sy_slot *slot) {
    sy_magazine *magazine = slot->loaded;
    sy_magazine_set_count(magazine, (size_t)(slot->top - magazine->items));
    return magazine;
}

/* Points the slot at `magazine`, with its count, and opens both directions. */
static inline void sy_slot_open_both(sy_slot *slot, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    __atomic_store_n(&slot->loaded, magazine, __ATOMIC_RELEASE);
    slot->base = magazine->items;
    sy_slot_set_top(slot, magazine->items + count);
    slot->limit = magazine->items + (count > slot->capacity ? count : slot->capacity);
    slot->mark = (uint16_t)count;
}

/* Makes `magazine`, with its count, the loaded one; what was loaded has been dealt with. */
static inline void sy_slot_load(const sy_client *client, sy_slot *slot, sy_magazine *magazine) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees && slot->loaded) sy_sample_count(client, slot);
    sy_slot_open_both(slot, magazine);
    if (client->config.one_way) slot->limit = NULL;
    if (sees_frees) sy_sample_arm(client, slot);
}

/* Changes both magazines, whose counts are written in them; not of a one-way client, which has
 * nothing to exchange. A `top` that points past the end of one magazine may point to the start of
 * the next: it goes first. */
static inline void sy_slot_exchange(const sy_client *client, sy_slot *slot, sy_magazine *loaded,
                                    sy_magazine *previous) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) sy_sample_count(client, slot);
    sy_slot_set_top(slot, NULL);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_magazines(slot, loaded, previous);
    sy_slot_open_both(slot, loaded);
    if (sees_frees) sy_sample_arm(client, slot);
}

static inline bool sy_slot_has_room(const sy_client *client, const sy_slot *slot) {
    bool sees_frees = client->config.sees_frees;
    return slot->top < (sees_frees ? slot->loaded->items + slot->capacity : slot->limit);
}

/* There is room. */
static inline void sy_slot_push(const sy_client *client, sy_slot *slot, uintptr_t item) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) sy_sample_count(client, slot);
    __atomic_store_n(slot->top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_top(slot, slot->top + 1);
    if (!sees_frees) return;
    slot->mark++;
    sy_sample_arm(client, slot);
}

/* As the inline code does. Of a client that sees frees the item is counted later. */
static inline uintptr_t sy_slot_pop_inline(sy_slot *slot) {
    uintptr_t item = slot->top[-1];
    sy_slot_set_top(slot, slot->top - 1);
    return item;
}

/* There is an item. */
static inline uintptr_t sy_slot_pop(const sy_client *client, sy_slot *slot) {
    uintptr_t item = sy_slot_pop_inline(slot);
    if (client->config.sees_frees) {
        sy_sample_count(client, slot);
        sy_sample_arm(client, slot);
    }
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

/* ---- slot.c ---- */

/* The calling thread's slot, with a magazine loaded, after doing what a trim has asked for since;
 * NULL when it has to go without. *self is its record, if there is a slot. */
sy_slot *sy_slot_ready(sy_client *client, sy_thread **self);

/* Fills the loaded magazine, which is empty, from the slabs, and then lets the capacity grow if
 * `grow`; false with errno when there are no items. */
bool sy_slot_refill(sy_client *client, sy_thread *thread, sy_slot *slot, bool grow);

/* Flushes the loaded magazine, which stays. */
void sy_slot_flush_loaded(sy_client *client, sy_slot *slot);

/* Flushes a magazine, whose items nobody counts from now on. No lock is held. */
void sy_magazine_flush(sy_client *client, sy_magazine *magazine);

/* Flushes a magazine whose items are counted until they are in the slabs. */
void sy_magazine_flush_counted(sy_client *client, sy_magazine *magazine);

/* Flushes and stores the magazines of a chain that nobody else counts or looks for. No lock is
 * held. */
void sy_magazine_flush_chain(sy_client *client, sy_magazine *chain);

#endif
