/*
 * slot.h: the steps on a loaded slot and its magazines, of which the slow paths are made.
 *
 * Kinds of clients (kind.h) differ in some steps. These steps have a sy_slot_rule, which is a
 * constant wherever they are inlined.
 *
 * A slot is written only by its thread or, while that thread does not run, under the thread list's
 * lock; sleepers.c is the exception. Fields that other threads read (statistics, fork) are written
 * atomically. Their order is such that the state after each store is consistent, because a fork may
 * stop the thread between two stores, and the child uses the slot as it is. In each such state no
 * magazine is in two places, and no count exceeds the items that exist: the items of the loaded
 * magazine end at `top`; while `top` is NULL, the magazine's `count` holds.
 *
 * The items of the loaded magazine begin at its front, or after the places that are `gone`. They
 * are `gone` only between slow paths of the thread: the first step of each is sy_slot_settle.
 *
 * Below: sample.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SLOT_H
#define SY_MAGAZINE_SLOT_H

#include "magazine/profiled.h"
#include "magazine/sample.h"
#include "magazine/thread.h"

/* What the steps do for a kind of clients besides moving items. */
typedef struct sy_slot_rule {
    bool shuts_frees; /* they keep the free direction shut: each free is a call */
    bool counts;      /* they count allocations, and shut the one to be guarded (sample.h) */
    bool profiles;    /* the same for the one that the profile samples (profiled.h) */
} sy_slot_rule;

/* A step with a rule. It is always inlined, so that it tests nothing. */
#define SY_STEP static inline __attribute__((always_inline))

/* The stores release, since a reader follows these pointers to the magazines' headers. */
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

/* Items of the loaded magazine, which there is, that are the thread's. */
static inline size_t sy_slot_loaded_items(const sy_slot *slot) {
    return (size_t)(slot->top - slot->loaded->items) - slot->gone;
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
    slot->mark = (uint8_t)count;
}

/* After sleepers.c has taken items from the front of the loaded magazine: moves the others there,
 * and opens both directions. */
void sy_slot_close_gap(sy_slot *slot);

static inline void sy_slot_settle(sy_slot *slot) {
    if (SY_UNLIKELY(slot->gone)) sy_slot_close_gap(slot);
}

/* Shuts allocation before the item that is to be sampled. */
SY_STEP void sy_slot_arm(sy_slot_rule rule, sy_slot *slot) {
    if (rule.counts) sy_sample_arm(slot);
    if (rule.profiles) sy_profiled_arm(slot);
}

/* Points the slot at `magazine`, with its count, and shuts what the rule says. */
SY_STEP void sy_slot_open(sy_slot_rule rule, sy_slot *slot, sy_magazine *magazine) {
    sy_slot_open_both(slot, magazine);
    if (rule.shuts_frees) slot->limit = NULL;
    sy_slot_arm(rule, slot);
}

/* Comes before items leave the loaded magazine otherwise than by an allocation. */
SY_STEP void sy_slot_count(sy_slot_rule rule, sy_slot *slot) {
    if (rule.counts) sy_sample_count(slot);
    if (rule.profiles) sy_profiled_count(slot);
}

/* Makes `magazine`, with its count, the loaded one. The caller has put the previously loaded
 * magazine elsewhere, or it is the same one. */
SY_STEP void sy_slot_load(sy_slot_rule rule, sy_slot *slot, sy_magazine *magazine) {
    if (slot->loaded) sy_slot_count(rule, slot);
    sy_slot_open(rule, slot, magazine);
}

/* As sy_slot_load, for a magazine that refill has filled with `count` items. Whether it has any. */
SY_STEP bool sy_slot_load_filled(sy_slot_rule rule, sy_slot *slot, sy_magazine *magazine,
                                 size_t count) {
    sy_magazine_set_count(magazine, count);
    sy_slot_load(rule, slot, magazine);
    return count > 0;
}

/* Sets both magazines, whose counts are written in them. Not for a one-way client, which exchanges
 * nothing. `top` is cleared first: a `top` at the end of one magazine's items could be taken for an
 * address within the items of the next. */
SY_STEP void sy_slot_exchange(sy_slot_rule rule, sy_slot *slot, sy_magazine *loaded,
                              sy_magazine *previous) {
    sy_slot_count(rule, slot);
    sy_slot_set_top(slot, NULL);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_magazines(slot, loaded, previous);
    sy_slot_open(rule, slot, loaded);
}

SY_STEP bool sy_slot_has_room(sy_slot_rule rule, const sy_slot *slot) {
    return slot->top < (rule.shuts_frees ? slot->loaded->items + slot->capacity : slot->limit);
}

/* Pushes an item; the caller has checked that there is room. */
SY_STEP void sy_slot_push(sy_slot_rule rule, sy_slot *slot, uintptr_t item) {
    sy_slot_count(rule, slot);
    __atomic_store_n(slot->top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_top(slot, slot->top + 1);
    if (!rule.counts && !rule.profiles) return;
    slot->mark++;
    sy_slot_arm(rule, slot);
}

/* Pops an item as the inline code does. If allocations are counted, the item is counted later. */
static inline uintptr_t sy_slot_pop_inline(sy_slot *slot) {
    uintptr_t item = slot->top[-1];
    sy_slot_set_top(slot, slot->top - 1);
    return item;
}

/* Pops an item; the caller has checked that there is one. */
SY_STEP uintptr_t sy_slot_pop(sy_slot_rule rule, sy_slot *slot) {
    uintptr_t item = sy_slot_pop_inline(slot);
    sy_slot_count(rule, slot);
    sy_slot_arm(rule, slot);
    return item;
}

/* Pops up to `count` items of the loaded magazine; returns how many. */
static inline size_t sy_slot_pop_some(sy_slot *slot, uintptr_t *items, size_t count) {
    slot->base = slot->loaded->items;
    size_t have = (size_t)(slot->top - slot->base), most = have < count ? have : count;
    for (size_t got = 0; got < most; got++) items[got] = sy_slot_pop_inline(slot);
    return most;
}

/* Whether `item` is the last one of a magazine of the slot, which has a loaded one. */
static inline bool sy_slot_has_last(const sy_slot *slot, uintptr_t item) {
    const sy_magazine *previous = slot->previous;
    if (slot->top > slot->loaded->items && slot->top[-1] == item) return true;
    uint32_t count = previous ? sy_magazine_count(previous) : 0;
    return count && previous->items[count - 1] == item;
}

/* Takes the magazines out of a slot, which is shut then, and puts them before `chain`. The thread
 * list's lock is held, because a client that is being closed takes them under this lock too. */
static inline sy_magazine *sy_slot_take(sy_slot *slot, sy_magazine *chain) {
    sy_slot_settle(slot);
    sy_magazine *magazines[2] = {slot->loaded ? sy_slot_unload(slot) : NULL, slot->previous};
    sy_slot_set_magazines(slot, NULL, NULL);
    slot->reserved = slot->mark = 0;
    slot->base = slot->limit = NULL;
    sy_slot_set_top(slot, NULL);
    for (int i = 0; i < 2; i++)
        if (magazines[i]) magazines[i]->chain = chain, chain = magazines[i];
    return chain;
}

/* Items of the loaded magazine, seen from another thread: none if `top` is that of another one. */
typedef struct sy_open_items {
    const uintptr_t *first;
    size_t count;
} sy_open_items;

static inline sy_open_items sy_slot_open_items(const sy_slot *slot, const sy_magazine *loaded,
                                               const uintptr_t *top) {
    const uintptr_t *first = loaded->items + __atomic_load_n(&slot->gone, __ATOMIC_RELAXED);
    bool within = top >= first && top <= loaded->items + SY_MAGAZINE_ITEMS;
    return (sy_open_items){first, within ? (size_t)(top - first) : 0};
}

/* Items in a slot, seen from another thread. */
static inline size_t sy_slot_items(const sy_slot *slot) {
    const sy_magazine *loaded = __atomic_load_n(&slot->loaded, __ATOMIC_ACQUIRE);
    const sy_magazine *previous = __atomic_load_n(&slot->previous, __ATOMIC_ACQUIRE);
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    size_t items = previous && previous != loaded ? sy_magazine_count(previous) : 0;
    if (loaded && !top) items += sy_magazine_count(loaded);
    if (loaded && top) items += sy_slot_open_items(slot, loaded, top).count;
    return items;
}

/* This thread's slot, unchanged, if it has a loaded magazine and no trim has asked for its items
 * since the last look; else NULL. A thread without slots reads the shut ones: no magazine there. */
static inline sy_slot *sy_slot_steady(const sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    bool steady = slot->loaded && slot->generation == atomic_load_explicit(&client->generation,
                                                                           memory_order_relaxed);
    return SY_LIKELY(steady) ? slot : NULL;
}

/* ---- slot.c ---- */

/* The record of the calling thread, for its slot of the client; NULL: the thread has to do without
 * a slot. The caller begins a scope of SY_INSIDE before it uses the slot. */
sy_thread *sy_slot_owner(const sy_client *client);

/* The thread's slot, with a loaded magazine. If a trim has asked for the slot's items, they are
 * flushed first. NULL: the thread has to do without a slot; so it is if `thread` is NULL. */
sy_slot *sy_slot_ready(sy_client *client, sy_thread *thread);

/* Flushes the loaded magazine, which stays. */
void sy_slot_flush_loaded(sy_client *client, sy_slot *slot);
/* Flushes what the slot holds; its magazines stay. */
void sy_slot_flush(sy_client *client, sy_slot *slot);

/* Flushes a magazine. Its items are not counted from now on. No lock is held. */
void sy_magazine_flush(sy_client *client, sy_magazine *magazine);

/* Flushes a magazine whose items are counted until they are in the slabs. */
void sy_magazine_flush_counted(sy_client *client, sy_magazine *magazine);

/* Flushes and stores the magazines of a chain that belongs to the calling thread alone. Their items
 * are not counted from now on. No lock is held. */
void sy_magazine_flush_chain(sy_client *client, sy_magazine *chain);

/* ---- reserve.c ---- */

/* Fills the loaded magazine until it has `want` items. From now on the slot counts as one with
 * `reserved` reserved items. Returns how many the magazine has. */
size_t sy_slot_fill_loaded(sy_client *client, sy_slot *slot, size_t want, size_t reserved);

/* The `reserve` of kinds that allocate from both magazines. */
size_t sy_slot_reserve_both(sy_client *client, size_t count);

#endif
