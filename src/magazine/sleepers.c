/*
 * sleepers.c: takes items out of the slots of threads that run but do not use them.
 *
 * A thread that frees much and then waits keeps up to two magazines of each client. No other thread
 * may touch them, since the inline code (slabyard/loaded.h) works on the slot without any
 * synchronization. So this file makes the thread's next operations take the slow path, and the slow
 * path wait. It takes only what the one operation that may be under way cannot touch.
 *
 *     1. The record is held (sy_thread_hold): its thread is not in a slow path, and begins none.
 *     2. Both bounds of each slot are shut, by stores: base above all, limit below all.
 *     3. A barrier (sy_os_barrier_threads) makes the thread run a full memory barrier, wherever it
 *        is. Each operation that it begins afterwards reads the shut bounds, takes the slow path,
 *        and waits. So at most one operation, in one of its slots, is still under way. It has read
 *        the old bounds, and also `top`, which no other thread writes.
 *     4. Now `top` is read. The operation under way, if it is in this slot,
 *            an allocation    reads top[-1], stores top - 1
 *            a free           reads top[-1] (a double free?), writes *top, stores top + 1
 *        or it has stored `top` before it was read here, and is over. It does not touch the items
 *        below top[-1], so these are copied away.
 *
 *            items       base = top - 1
 *            |   gone     | newest | free places |
 *            +------------+--------+-------------+
 *                           ^ stays  ^ top         limit as before
 *
 *     5. `base` leaves the newest item to the inline code, `limit` is what it was, and the record
 *        is let go. Then the operation under way ends: `top` is at `base` or above the newest item.
 *
 * What the thread wrote to the objects before it freed them happens before the barrier, and so
 * before all that is done with the items here. If the operation under way is a free, its item is
 * not among those that are taken.
 *
 * The slot remembers how many places are `gone`. Its thread moves the rest to the front in its next
 * slow path (sy_slot_settle). Only slow paths use the other magazine, so all of it is taken.
 *
 * The lock of the thread list is held from 1 to 5. So the thread does not end meanwhile, no client
 * is closed, no parked slot is claimed, and no process forks. The thread may park and come back: it
 * touches no slot then. If a thread forks in the handler of a signal and goes on without the lock,
 * the child opens what is shut (sy_threads_open_again).
 *
 * A handler of a signal that interrupts an operation and allocates itself is not an exception: the
 * library does not allow it.
 *
 * tests/models/sleepers.c has the models.
 */
#include "magazine/sleepers.h"

#include <string.h>

#include "magazine/roster.h"
#include "magazine/slot.h"
#include "os/os.h"

enum {
    BATCH = 8, /* slots that are shut together, for the time of a barrier: some microseconds */
    KEPT = 1,  /* items, which an operation under way may take */
};

/* A slot, its bounds while they are shut, and what was taken from it. */
typedef struct reached {
    sy_client *client; /* pinned */
    sy_slot *slot;
    uintptr_t *base, *limit;
    sy_magazine *spare; /* for the items; NULL: it has got them */
    sy_magazine *chain;
    sy_move move;
} reached;

static uintptr_t *const above_all = (uintptr_t *)UINTPTR_MAX;

/* ---- looking ---- */

static bool may_take(const sy_client *client) {
    const sy_client_config *config = &client->config;
    return !client->suspended && sy_client_kind_of(client) == &sy_client_plain &&
           !config->calls_back;
}

/* Whether the slot has items, and `top` is where it was. Its thread may be using it right now, so
 * this is a guess. An address within a magazine and some bits of the magazine's own stand for
 * `top`. */
static bool seems_idle(sy_slot *slot, bool all) {
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    uint16_t now = (uint16_t)((uintptr_t)top / sizeof *top);
    bool same = slot->noted == now;
    slot->noted = now;
    return (all || same) && sy_slot_items(slot) > KEPT;
}

/* Finds slots from *number on, and pins their clients. The lock is held. */
static unsigned find_idle(sy_thread *thread, unsigned *number, bool all, reached *found) {
    SY_HOLDS_THREADS();
    unsigned end = atomic_load_explicit(&thread->slots_end, memory_order_relaxed), count = 0;
    for (; *number < end && count < BATCH; ++*number) {
        sy_client *client = sy_roster_at(*number);
        sy_slot *slot = sy_thread_slot(thread, *number);
        if (!client || !may_take(client) || !seems_idle(slot, all)) continue;
        sy_roster_pin(client);
        found[count++] = (reached){.client = client, .slot = slot};
    }
    return count;
}

/* ---- taking ---- */

static void set_bounds(sy_slot *slot, uintptr_t *base, uintptr_t *limit) {
    __atomic_store_n(&slot->base, base, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->limit, limit, __ATOMIC_RELAXED);
}

static void shut(reached *it) {
    it->base = it->slot->base;
    it->limit = it->slot->limit;
    set_bounds(it->slot, above_all, NULL);
}

/* Moves the items below the newest one to the spare magazine. If a fork stops this in the middle,
 * the child has them in the slot, or loses them. */
static void take_older(reached *it, uintptr_t *newest) {
    sy_slot *slot = it->slot;
    const uintptr_t *first = slot->loaded->items + slot->gone;
    size_t count = (size_t)(newest - first);
    memcpy(it->spare->items, first, count * sizeof *first);
    __atomic_store_n(&slot->gone, (uint16_t)(newest - slot->loaded->items), __ATOMIC_RELAXED);
    it->base = newest;
    sy_magazine_set_count(it->spare, count);
    it->spare->chain = it->chain;
    it->chain = it->spare;
    it->spare = NULL;
}

static void take_other_magazine(reached *it) {
    sy_slot *slot = it->slot;
    sy_magazine *other = slot->previous;
    if (!other || !sy_magazine_count(other)) return;
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    other->chain = it->chain;
    it->chain = other;
}

/* No operation of the thread but one that is under way has seen other bounds than shut ones. */
static void take(reached *it) {
    uintptr_t *top = __atomic_load_n(&it->slot->top, __ATOMIC_RELAXED);
    const uintptr_t *first = it->slot->loaded->items + it->slot->gone;
    if (it->spare && top - first > KEPT) take_older(it, top - KEPT);
    take_other_magazine(it);
}

/* A profile may have begun since the slot was found: it counts what leaves a magazine. */
static bool may_reach_into(const reached *it) {
    return it->slot->loaded && !it->slot->reserved && !sy_client_is_profiled(it->client);
}

/* The lock is held. */
static void take_from(sy_thread *thread, reached *found, unsigned count) {
    SY_HOLDS_THREADS();
    if (atomic_load_explicit(&thread->state, memory_order_relaxed) != SY_THREAD_RUNNING) return;
    if (!sy_thread_hold(thread)) return;
    for (unsigned i = 0; i < count; i++)
        if (may_reach_into(&found[i])) shut(&found[i]);
    bool passed = sy_os_barrier_threads() == 0;
    for (unsigned i = 0; i < count; i++) {
        reached *it = &found[i];
        if (!may_reach_into(it)) continue;
        if (passed) take(it);
        set_bounds(it->slot, it->base, it->limit);
    }
    sy_thread_let_go(thread);
}

/* Flushes what was taken. No lock is held. */
static void put_away(reached *it) {
    sy_move_flush(it->client, &it->move);
    if (it->spare) sy_store_put(it->spare);
    sy_client_unpin(it->client);
}

/* Reaches into some slots of the thread from *number on; false: there were none. */
static bool reach_some(sy_thread *thread, unsigned *number, bool all) {
    reached found[BATCH];
    sy_threads_lock();
    unsigned count = find_idle(thread, number, all, found);
    sy_threads_unlock();
    for (unsigned i = 0; i < count; i++) found[i].spare = sy_store_take();
    sy_threads_lock();
    if (count) take_from(thread, found, count);
    for (unsigned i = 0; i < count; i++)
        sy_move_begin(found[i].client, &found[i].move, found[i].chain);
    sy_threads_unlock();
    for (unsigned i = 0; i < count; i++) put_away(&found[i]);
    return count > 0;
}

void sy_threads_reach(bool all) {
    if (!sy_threads_may_be_reached()) return;
    sy_threads_lock();
    sy_thread *thread = sy_threads_first();
    sy_threads_unlock();
    for (; thread; thread = thread->next) {
        unsigned number = SY_CLIENT_FIRST;
        while (thread != sy_thread_known() && reach_some(thread, &number, all)) {}
    }
}

/* ---- fork ---- */

static void open_again(sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    ptrdiff_t most = slot->top - items;
    if (most < slot->capacity) most = slot->capacity;
    set_bounds(slot, items + slot->gone, items + most);
}

static void open_record_again(sy_thread *thread) {
    if (!atomic_load_explicit(&thread->held, memory_order_relaxed)) return;
    for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        if (slot->loaded && slot->base == above_all) open_again(slot);
    }
    sy_thread_let_go(thread);
}

void sy_threads_open_again(void) {
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next)
        if (sy_thread_is_own(thread)) open_record_again(thread);
}
