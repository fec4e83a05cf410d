/*
 * slot.c: the longer steps on a loaded slot: give it its first magazine, flush it if a trim has
 * asked for this, flush it to the slabs.
 */
#include "magazine/slot.h"

#include "magazine/budget.h"
#include "os/invariant.h"

/* ---- flushing ---- */

void sy_magazine_flush(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    sy_magazine_set_count(magazine, 0);
    if (count) client->config.flush(client->config.owner, magazine->items, count, NULL);
}

void sy_magazine_flush_counted(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    if (count) client->config.flush(client->config.owner, magazine->items, count, &magazine->count);
}

void sy_magazine_flush_chain(sy_client *client, sy_magazine *chain) {
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        sy_magazine_flush(client, magazine);
        sy_store_put(magazine);
    }
}

void sy_slot_flush_loaded(sy_client *client, sy_slot *slot) {
    size_t count = (size_t)(slot->top - slot->loaded->items);
    sy_client_kind_of(client)->count(slot);
    slot->base = slot->loaded->items;
    sy_slot_set_top(slot, slot->base);
    slot->mark = 0;
    if (count) client->config.flush(client->config.owner, slot->loaded->items, count, NULL);
}

void sy_slot_flush(sy_client *client, sy_slot *slot) {
    if (slot->loaded) sy_slot_flush_loaded(client, slot);
    if (slot->previous) sy_magazine_flush(client, slot->previous);
}

/* ---- a slot that is ready ---- */

/* If a fork stops the thread meanwhile, the child finds an empty magazine, or all of the items. */
SY_COLD void sy_slot_close_gap(sy_slot *slot) {
    sy_magazine *magazine = slot->loaded;
    uintptr_t *items = magazine->items;
    const uintptr_t *first = items + slot->gone;
    size_t count = sy_slot_loaded_items(slot);
    sy_magazine_set_count(magazine, 0);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_top(slot, NULL);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    for (size_t i = 0; i < count; i++) __atomic_store_n(&items[i], first[i], __ATOMIC_RELAXED);
    __atomic_store_n(&slot->gone, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_magazine_set_count(magazine, count);
    sy_slot_open_both(slot, magazine);
}

/* Gives a slot its first magazine; false if there is none or the slot may hold nothing. */
static bool open_slot(sy_client *client, sy_thread *thread, sy_slot *slot) {
    if (sy_thread_places(thread, client->number)) return false;
    bool begins = !slot->capacity;
    if (begins && !(sy_capacity_may_begin(client) && sy_capacity_grow(client, thread, slot)))
        return false;
    sy_magazine *magazine = sy_thread_take_empty(thread);
    if (!magazine) return false;
    slot->generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    slot->seen = (uint16_t)(slot->exchanges - 1); /* no look has seen it yet */
    sy_magazine_set_count(magazine, 0);
    if (client->number >= thread->slots_end)
        atomic_store_explicit(&thread->slots_end, client->number + 1, memory_order_relaxed);
    if (sy_client_is_profiled(client)) sy_profiled_renew(slot);
    sy_client_kind_of(client)->load(slot, magazine);
    sy_slots_opened++;
    return true;
}

/* The invariants of a slot: its two magazines differ, and the items of each end within it. */
static bool slot_is_bounded(const sy_slot *slot) {
    const sy_magazine *loaded = slot->loaded, *previous = slot->previous;
    if (loaded == previous || slot->capacity > SY_MAGAZINE_ITEMS || slot->gone) return false;
    if (previous && sy_magazine_count(previous) > SY_MAGAZINE_ITEMS) return false;
    return slot->top >= loaded->items && slot->top <= loaded->items + SY_MAGAZINE_ITEMS;
}

sy_thread *sy_slot_owner(const sy_client *client) {
    return client->config.magazine_items ? sy_thread_self() : NULL;
}

/* The kind of the client may have changed (profiled.h). A function of the program that the flush
 * has called may have used the slot, or have lost it its magazines. */
static void reopen(sy_client *client, sy_slot *slot) {
    if (sy_client_is_profiled(client)) sy_profiled_renew(slot);
    if (slot->loaded) sy_client_kind_of(client)->load(slot, sy_slot_unload(slot));
}

sy_slot *sy_slot_ready(sy_client *client, sy_thread *thread) {
    if (!thread) return NULL;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    if (SY_UNLIKELY(!slot->loaded) && !open_slot(client, thread, slot)) return NULL;
    sy_slot_settle(slot);
    uint32_t generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    if (SY_UNLIKELY(slot->generation != generation)) {
        slot->generation = generation;
        slot->reserved = 0;
        sy_slot_flush(client, slot);
        if (client->config.profiled) reopen(client, slot);
    }
    SY_INVARIANT(slot_is_bounded(slot));
    return slot;
}
