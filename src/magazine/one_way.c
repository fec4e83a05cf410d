/*
 * one_way.c: the kinds of one-way clients: an item that is freed is not given out again directly,
 * but goes back to the slabs first. (A cache with epochs is a one-way client: if a thread has begun
 * another epoch, the refill gives it items of other slabs.)
 *
 *     alloc                free
 *       ^                   |
 *     [ loaded ]          [ outbox ]      the slot's two magazines; the outbox is `previous`
 *       |                   v
 *     refill  (client)    flush  (client)
 *
 * The slot's magazines are never exchanged, and only magazines of ended threads wait in the depot.
 * The free direction is always shut.
 *
 * An allocation tries, in this order:
 *
 *     1. the loaded magazine                                     pop_loaded
 *     2. the slabs: the client's refill fills the magazine       fill_one_way
 *     3. items of this thread's outbox, of parked threads, of    sy_client_alloc_unloaded
 *        ended ones: flushed to the slabs, then one item
 *     4. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the outbox, if it has room                              put_in_outbox
 *     2. the outbox is flushed; it gets a new magazine           empty_outbox
 *     3. there is no magazine: the item is flushed alone         one_way_free
 *
 * A thread notes the one-way clients from which it has refilled. sy_thread_put_back flushes the
 * items that it has loaded of these clients, and clears the notes. The next item then comes from a
 * refill.
 */
#include <errno.h>
#include <string.h>

#include "magazine/budget.h"
#include "magazine/drain.h"
#include "magazine/roster.h"
#include "magazine/slot.h"

/* ---- allocation ---- */

/* An item of the loaded magazine, if that has one. */
SY_STEP bool pop_loaded(sy_slot_rule rule, sy_slot *slot, uintptr_t *item) {
    slot->base = slot->loaded->items;
    if (slot->top <= slot->base) return false;
    *item = sy_slot_pop(rule, slot);
    return true;
}

/* Notes that the thread has items of the client; false: it was noted before, since the last
 * put-back. */
static bool note_one_way(sy_thread *thread, const sy_client *client) {
    unsigned count = thread->one_way_count;
    for (unsigned i = 0; i < count && i < SY_ONE_WAY_NOTED; i++)
        if (thread->one_way[i] == client->number) return false;
    if (count < SY_ONE_WAY_NOTED) thread->one_way[count] = (uint16_t)client->number;
    if (count <= SY_ONE_WAY_NOTED) thread->one_way_count = count + 1;
    return true;
}

/* Fills the loaded magazine, which is empty, from the slabs. The first refill since the last
 * put-back may be for a few items only: the capacity stays. */
SY_STEP void fill_one_way(sy_slot_rule rule, sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *empty = slot->loaded;
    slot->exchanges++;
    slot->reserved = 0;
    bool first = note_one_way(thread, client);
    size_t count = client->config.refill(client->config.owner, empty->items, slot->capacity);
    if (!first) sy_capacity_grow(client, thread, slot);
    sy_slot_load_filled(rule, slot, empty, count);
}

/* Flushes what waits in the outbox; whether there was something. errno is kept. */
static bool flush_outbox(sy_client *client, sy_slot *slot) {
    if (!slot->previous || !sy_magazine_count(slot->previous)) return false;
    int error = errno;
    sy_magazine_flush(client, slot->previous);
    errno = error;
    return true;
}

SY_STEP bool alloc_second_one_way(sy_slot_rule rule, sy_client *client, uintptr_t *item) {
    sy_slot *slot = sy_slot_steady(client);
    if (!slot) return false;
    SY_INSIDE(sy_thread_own);
    sy_slot_settle(slot);
    return pop_loaded(rule, slot, item);
}

/* The loaded magazine may have items now: sy_slot_ready may call functions of the program. */
SY_STEP bool alloc_rest_one_way(sy_slot_rule rule, sy_client *client, uintptr_t *item) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    if (slot) {
        if (slot->top <= slot->loaded->items) fill_one_way(rule, client, thread, slot);
        if (pop_loaded(rule, slot, item)) return true;
    }
    bool flushed = slot && flush_outbox(client, slot);
    return sy_client_alloc_unloaded(client, slot, flushed, item);
}

static size_t one_way_alloc_loaded(sy_client *client, uintptr_t *items, size_t count) {
    sy_thread *thread = count ? sy_slot_owner(client) : NULL;
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    return slot ? sy_slot_pop_some(slot, items, count) : 0;
}

/* Allocations come from the loaded magazine only: the other one is the outbox. */
static size_t one_way_reserve(sy_client *client, size_t count) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    if (!slot || count > client->config.magazine_items) return 0;
    if (!sy_capacity_widen(client, thread, slot, (uint32_t)count)) return 0;
    note_one_way(thread, client);
    return sy_slot_fill_loaded(client, slot, count, count);
}

/* ---- free ---- */

/* Puts an item into the outbox, if that has room. Under a bound of loaded items this is what the
 * slot was allowed. */
static inline bool put_in_outbox(const sy_client *client, sy_slot *slot, uintptr_t item) {
    sy_magazine *outbox = slot->previous;
    uint32_t count = outbox ? sy_magazine_count(outbox) : 0;
    size_t most = client->config.loaded_items ? slot->capacity : client->config.magazine_items;
    if (!outbox || count >= most) return false;
    __atomic_store_n(&outbox->items[count], item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_magazine_set_count(outbox, count + 1);
    return true;
}

static sy_freed one_way_free_second(sy_client *client, uintptr_t item) {
    sy_slot *slot = sy_slot_steady(client);
    if (!slot) return sy_client_freed_last(client, item) ? SY_FREED_BEFORE : SY_FREED_NOT;
    SY_INSIDE(sy_thread_own);
    sy_slot_settle(slot);
    if (SY_UNLIKELY(sy_slot_has_last(slot, item))) return SY_FREED_BEFORE;
    return put_in_outbox(client, slot, item) ? SY_FREED : SY_FREED_NOT;
}

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

static void one_way_free(sy_client *client, uintptr_t item) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot;
    bool more = true;
    while (more && (slot = sy_slot_ready(client, thread)) != NULL) {
        if (put_in_outbox(client, slot, item)) return;
        more = empty_outbox(client, thread, slot);
    }
    client->config.flush(client->config.owner, &item, 1, NULL);
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

static bool is_one_way(const sy_client *client) {
    return client->config.kind->free == one_way_free;
}

/* The lock is held before and after; while the client is pinned its slots are not taken. */
static void put_back(sy_thread *thread, unsigned number) {
    SY_HOLDS_THREADS();
    sy_slot *slot = sy_thread_slot(thread, number);
    sy_client *client = sy_roster_at(number);
    if (!client || !is_one_way(client) || client->suspended || !loaded_count(slot)) return;
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

/* ---- the kinds ---- */

/* The kind sy_client_NAME: the functions above, with a constant rule if they have one. */
#define ONE_WAY_KIND(NAME, COUNTS)                                                     \
    static const sy_slot_rule NAME##_rule = {.shuts_frees = true, .counts = (COUNTS)}; \
    static bool NAME##_alloc_second(sy_client *client, uintptr_t *item) {              \
        return alloc_second_one_way(NAME##_rule, client, item);                        \
    }                                                                                  \
    static bool NAME##_alloc_rest(sy_client *client, uintptr_t *item) {                \
        return alloc_rest_one_way(NAME##_rule, client, item);                          \
    }                                                                                  \
    static void NAME##_load(sy_slot *slot, sy_magazine *magazine) {                    \
        sy_slot_load(NAME##_rule, slot, magazine);                                     \
    }                                                                                  \
    static void NAME##_count(sy_slot *slot) { sy_slot_count(NAME##_rule, slot); }      \
    const sy_client_kind sy_client_##NAME = {                                          \
        .alloc_second = NAME##_alloc_second,                                           \
        .alloc_rest = NAME##_alloc_rest,                                               \
        .alloc_loaded = one_way_alloc_loaded,                                          \
        .free_second = one_way_free_second,                                            \
        .free = one_way_free,                                                          \
        .reserve = one_way_reserve,                                                    \
        .load = NAME##_load,                                                           \
        .count = NAME##_count,                                                         \
    }

ONE_WAY_KIND(one_way, false);
ONE_WAY_KIND(one_way_guarded, true);
