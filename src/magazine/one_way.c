/*
 * one_way.c: the slow path of an allocation and of a free of a one-way client. It also puts a
 * thread's loaded items back when the thread begins another epoch.
 *
 * An allocation tries, in this order:
 *
 *     1. the loaded magazine                                     sy_one_way_take
 *     2. the slabs: the client's refill fills the magazine       refill_one_way
 *     3. items of this thread's outbox, of parked threads, of    sy_client_alloc_unloaded
 *        ended ones: flushed to the slabs, then one item
 *     4. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the outbox, if it has room                              sy_one_way_put
 *     2. the outbox is flushed; it gets a new magazine           empty_outbox
 *     3. there is no magazine: the item is flushed alone         sy_one_way_free
 */
#include "magazine/one_way.h"

#include <string.h>

#include "magazine/budget.h"
#include "magazine/drain.h"
#include "magazine/roster.h"

/* ---- allocation ---- */

bool sy_one_way_note(sy_thread *thread, const sy_client *client) {
    unsigned count = thread->one_way_count;
    for (unsigned i = 0; i < count && i < SY_ONE_WAY_NOTED; i++)
        if (thread->one_way[i] == client->number) return false;
    if (count < SY_ONE_WAY_NOTED) thread->one_way[count] = (uint16_t)client->number;
    if (count <= SY_ONE_WAY_NOTED) thread->one_way_count = count + 1;
    return true;
}

/* The first refill since the last put-back may be for a few items only: the capacity stays. */
static void refill_one_way(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    bool first = sy_one_way_note(thread, client);
    sy_slot_refill(client, thread, slot, !first);
}

bool sy_one_way_alloc(sy_client *client, uintptr_t *item) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    if (slot) {
        if (sy_one_way_take(client, slot, item)) return true;
        refill_one_way(client, thread, slot);
        if (sy_one_way_take(client, slot, item)) return true;
    }
    return sy_client_alloc_unloaded(client, slot, item);
}

/* ---- free ---- */

/* Makes room in the outbox; false: there is no magazine for it. The caller checks again, since
 * functions that flush calls (destructors, the handler of faults) may use this slot too. */
static bool empty_outbox(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *outbox = slot->previous;
    slot->exchanges++;
    if (!outbox) {
        outbox = sy_thread_take_empty(thread);
        if (!outbox) return false;
        sy_magazine_set_count(outbox, 0);
        sy_slot_set_magazines(slot, slot->loaded, outbox);
        return true;
    }
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    sy_magazine_flush(client, outbox);
    sy_thread_put_empty(thread, outbox);
    return true;
}

void sy_one_way_free(sy_client *client, uintptr_t item) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot;
    bool more = true;
    while (more && (slot = sy_slot_ready(client, thread)) != NULL) {
        if (sy_one_way_put(client, slot, item)) return;
        more = empty_outbox(client, thread, slot);
    }
    client->config.flush(client->config.owner, &item, 1, NULL);
}

bool sy_one_way_flush_outbox(sy_client *client, sy_slot *slot) {
    if (!slot->previous || !sy_magazine_count(slot->previous)) return false;
    sy_magazine_flush(client, slot->previous);
    return true;
}

/* ---- put back ---- */

/* Items in the loaded magazine. Counted from its start, not from `base`: while allocation is shut,
 * `base` is above the start. */
static size_t loaded_count(const sy_slot *slot) {
    return slot->loaded ? (size_t)(slot->top - slot->loaded->items) : 0;
}

/* Flushes the loaded magazine, which stays. If the thread used less than half of its capacity, the
 * capacity is halved. */
static void put_back_loaded(sy_client *client, sy_thread *thread, sy_slot *slot) {
    bool much = loaded_count(slot) * 2 >= slot->capacity;
    if (much && !client->config.loaded_items) sy_capacity_halve(client, thread, slot);
    sy_slot_flush_loaded(client, slot);
}

/* The lock is held before and after; while the client is pinned its slots are not taken. */
static void put_back(sy_thread *thread, unsigned number) {
    SY_HOLDS_THREADS();
    sy_slot *slot = sy_thread_slot(thread, number);
    sy_client *client = sy_roster_at(number);
    if (!client || !client->config.one_way || client->suspended || !loaded_count(slot)) return;
    sy_roster_pin(client);
    sy_threads_unlock();
    put_back_loaded(client, thread, slot);
    sy_threads_lock();
    sy_roster_unpin(client);
}

/* A parked thread keeps its items unless another thread drains them. So it is resumed first. */
void sy_thread_put_back(void) {
    sy_thread *thread = sy_thread_known();
    unsigned count = thread ? thread->one_way_count : 0;
    if (!count) return;
    uint16_t noted[SY_ONE_WAY_NOTED]; /* destructors may be the reason for noting some again */
    memcpy(noted, thread->one_way, sizeof noted);
    sy_thread_self();
    thread->one_way_count = 0;
    sy_threads_lock();
    if (count <= SY_ONE_WAY_NOTED)
        while (count > 0) put_back(thread, noted[--count]);
    else
        for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++)
            put_back(thread, number);
    sy_threads_unlock();
    sy_clients_leave();
}
