/*
 * one_way.h: the slow path of a one-way client. An item that is freed is not given out again
 * directly, but goes back to the slabs first. (A cache with epochs is a one-way client: if a thread
 * has begun another epoch, the refill gives it items of other slabs.)
 *
 *     alloc                free
 *       ^                   |
 *     [ loaded ]          [ outbox ]      the slot's two magazines; the outbox is `previous`
 *       |                   v
 *     refill  (client)    flush  (client)
 *
 * The slot's magazines are never exchanged, and only magazines of ended threads wait in the depot.
 * The free direction is always shut. client.c calls these functions in place of its own steps.
 *
 * A thread notes the one-way clients from which it has refilled. sy_thread_put_back flushes the
 * items that it has loaded of these clients, and clears the notes. The next item then comes from a
 * refill.
 *
 * Below: slot.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_ONE_WAY_H
#define SY_MAGAZINE_ONE_WAY_H

#include "magazine/slot.h"

/* As sy_client_alloc_second, with its slot: an item of the loaded magazine, if that has one. */
static inline bool sy_one_way_take(const sy_client *client, sy_slot *slot, uintptr_t *item) {
    slot->base = slot->loaded->items;
    if (slot->top <= slot->base) return false;
    *item = sy_slot_pop(client, slot);
    return true;
}

/* As sy_client_free_second, with its slot: into the outbox, if that has room. Under a bound of
 * loaded items this is what the slot was granted. */
static inline bool sy_one_way_put(const sy_client *client, sy_slot *slot, uintptr_t item) {
    sy_magazine *outbox = slot->previous;
    uint32_t count = outbox ? sy_magazine_count(outbox) : 0;
    size_t most = client->config.loaded_items ? slot->capacity : client->config.magazine_items;
    if (!outbox || count >= most) return false;
    __atomic_store_n(&outbox->items[count], item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_magazine_set_count(outbox, count + 1);
    return true;
}

/* As sy_client_alloc and sy_client_free. */
bool sy_one_way_alloc(sy_client *client, uintptr_t *item);
void sy_one_way_free(sy_client *client, uintptr_t item);

/* Notes that the thread has items of the client; false: it was noted before, since the last
 * put-back. */
bool sy_one_way_note(sy_thread *thread, const sy_client *client);

/* Flushes what waits in the outbox; whether there was something. */
bool sy_one_way_flush_outbox(sy_client *client, sy_slot *slot);

#endif
