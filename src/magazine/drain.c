/*
 * drain.c: brings items back to the slabs from where they wait: this thread's slot, the slots of
 * parked threads, the depot.
 *
 *     wants                                       calls
 *     an allocation that found no item            sy_client_alloc_unloaded
 *     a trim                                      sy_client_drain
 *     a pass by growth, in steps                  sy_client_drain_step
 *     a pass by age, in steps                     sy_client_reap_step
 *
 * Each works in two stages. Under the lock of the thread list it takes magazines out of slots and
 * of the depot, and notes them as a move (roster.h), so that their items stay counted. With no lock
 * held it flushes and stores them. A thread that runs owns its slot: a drain changes the client's
 * generation, and the thread flushes its magazines when it sees that (sy_slot_ready).
 *
 * A running thread's idle slots are flushed by that thread (sy_thread_reap_step, roster.c), or, if
 * it sleeps, by sleepers.c.
 */
#include "magazine/drain.h"

#include <errno.h>
#include <limits.h>

#include "magazine/budget.h"
#include "magazine/roster.h"
#include "magazine/slot.h"

enum { STEP_MAGAZINES = 8 }; /* flushed in one step: a thousand items, some microseconds */

/* ---- taking and flushing ---- */

/* Takes the magazines out of the slots of threads that are parked; a chain. The lock is held. */
static sy_magazine *take_parked(sy_client *client) {
    SY_HOLDS_THREADS();
    sy_magazine *chain = NULL;
    if (!sy_threads_park()) return NULL;
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next) {
        if (!sy_thread_claim(thread)) continue;
        if (client->number < thread->slots_end) {
            sy_slot *slot = sy_thread_slot(thread, client->number);
            if (sy_slot_has_magazines(slot)) chain = sy_slot_take(slot, chain);
        }
        sy_thread_unclaim(thread);
    }
    return chain;
}

/* Moves the magazines of parked threads to the depot, to be flushed in steps. */
static void put_parked_in_depot(sy_client *client, bool surplus) {
    sy_threads_lock();
    sy_magazine *chain = take_parked(client);
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        sy_budget_put(client, magazine, surplus);
    }
    sy_threads_unlock();
}

/* Takes the magazines of parked threads and up to `most` of the depot; a chain. The lock is held.
 */
static sy_magazine *take_waiting(sy_client *client, unsigned most) {
    SY_HOLDS_THREADS();
    sy_magazine *chain = take_parked(client), **end = &chain;
    while (*end) end = &(*end)->chain;
    *end = sy_budget_take(client, most);
    return chain;
}

/* Flushes the magazines that `take(client, most)` returns; true if they held an item. */
static bool move_out(sy_client *client, sy_magazine *(*take)(sy_client *client, unsigned most),
                     unsigned most) {
    sy_move move;
    sy_threads_lock();
    sy_move_begin(client, &move, take(client, most));
    sy_threads_unlock();
    return sy_move_flush(client, &move);
}

/* Flushes the items of parked threads and of the depot; whether there were any. */
static bool reclaim_waiting(sy_client *client) { return move_out(client, take_waiting, UINT_MAX); }

/* ---- for an allocation ---- */

bool sy_client_alloc_unloaded(sy_client *client, const sy_slot *slot, bool flushed,
                              uintptr_t *item) {
    const sy_client_config *config = &client->config;
    if (!slot && config->refill(config->owner, item, 1)) return true;
    int error = errno;
    if ((reclaim_waiting(client) || flushed) && config->refill(config->owner, item, 1)) return true;
    errno = error;
    return false;
}

/* ---- drains ---- */

/* Flushes this thread's slot and stores its magazines. */
static void flush_own_slot(sy_client *client, sy_slot *slot) {
    sy_move move;
    sy_client_kind_of(client)->count(slot);
    sy_threads_lock();
    sy_move_begin(client, &move, sy_slot_take(slot, NULL));
    sy_threads_unlock();
    sy_move_flush(client, &move);
}

/* Asks running threads to flush at their next slow path. The calling thread flushes at once, unless
 * it is at work on a slot, perhaps this one (a constructor that trims): then it waits likewise. */
static void begin_drain(sy_client *client) {
    uint32_t before = atomic_fetch_add_explicit(&client->generation, 1, memory_order_relaxed);
    sy_thread *thread = sy_thread_running();
    if (!thread || sy_thread_is_inside(thread) || client->number >= thread->slots_end) return;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    slot->generation = before + 1;
    slot->reserved = 0;
    if (slot->loaded) flush_own_slot(client, slot);
}

void sy_client_drain(sy_client *client) {
    begin_drain(client);
    reclaim_waiting(client);
}

/* ---- whether there is anything to drain ---- */

_Atomic uint32_t sy_drained_watch;
SY_TLS unsigned sy_slots_opened;

/* A thread that is at work on a slot does not flush it. */
uint32_t sy_drained_begin(void) {
    const sy_thread *thread = sy_thread_running();
    uint32_t watch = atomic_load(&sy_drained_watch);
    sy_slots_opened = 0;
    if (thread && sy_thread_is_inside(thread)) return 0;
    while (!(watch & 1) && !atomic_compare_exchange_weak(&sy_drained_watch, &watch, watch + 1)) {}
    return watch | 1;
}

bool sy_drained_still(uint32_t watch) {
    return watch && sy_slots_opened == 0 && atomic_load(&sy_drained_watch) == watch;
}

void sy_drained_end_slow(void) {
    uint32_t watch = atomic_load(&sy_drained_watch);
    while (watch & 1 && !atomic_compare_exchange_weak(&sy_drained_watch, &watch, watch + 1)) {}
}

void sy_client_close_slot(sy_client *client) {
    sy_thread *thread = sy_thread_running();
    if (!thread || sy_thread_is_inside(thread) || client->number >= thread->slots_end) return;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    if (!slot->loaded || sy_slot_items(slot) || !sy_slots_opened) return;
    flush_own_slot(client, slot);
    sy_slots_opened--;
}

bool sy_client_drain_step(sy_client *client, bool first) {
    if (first) {
        begin_drain(client);
        put_parked_in_depot(client, false);
    }
    return move_out(client, sy_budget_take, STEP_MAGAZINES);
}

bool sy_client_reap_step(sy_client *client, bool first, bool idle) {
    if (first) {
        sy_budget_begin_reap(client, idle);
        if (idle) put_parked_in_depot(client, true);
    }
    return move_out(client, sy_budget_reap, STEP_MAGAZINES);
}
