/*
 * roster.c: the table of clients by number. It opens, closes and pins clients, counts and finds the
 * items that they hold, and deals with these items when a thread ends or the process forks.
 */
#include "magazine/roster.h"

#include <errno.h>
#include <string.h>

#include "base/fork.h"
#include "base/shape.h"
#include "debug/callback.h"
#include "magazine/budget.h"
#include "magazine/sleepers.h"
#include "magazine/slot.h"
#include "os/os.h"

enum { STEP_SLOTS = 64, STEP_FLUSHES = 4 }; /* most in one sy_thread_reap_step */

static sy_client *clients[SY_CLIENTS_MAX];      /* by number; guarded by the thread list's lock */
static uint16_t unused_numbers[SY_CLIENTS_MAX]; /* closed ones, a stack; guarded by the same */
static unsigned unused_count, next_number = SY_CLIENT_DEMANDED;
static unsigned of_heaps; /* clients of separate heaps; guarded by the same */

sy_client *sy_roster_at(unsigned number) { return clients[number]; }

/* ---- pins and slow paths of this thread ---- */

enum { NOTED = 8 }; /* entries in each list: more than the program's functions nest */

/*
 * A thread that is in a function of the program never waits for pins: it may have the pin itself,
 * or two threads may each have one and wait for the other's. If it wants to end a client, the
 * thread that drops the last pin ends the client later. A slow path takes no pin, which would cost
 * a lock. If a function that the slow path has called wants to end its client, the client is pinned
 * then, until the thread has left the slow path.
 */
static SY_TLS struct {
    sy_client *pinned[NOTED], *called[NOTED];
    unsigned pins, calls; /* if more than NOTED, the others are not noted. The child of a fork then
                           * takes such pins for another thread's and drops them */
    sy_client *held;      /* list of clients pinned until this thread has left their slow paths */
} own_notes;

unsigned sy_slow_path_begin(sy_client *client) {
    sy_callback_check();
    if (own_notes.calls < NOTED) own_notes.called[own_notes.calls] = client;
    return own_notes.calls++;
}

/* Whether a slow path of the client, further up this thread's stack, is calling the program. */
static bool is_called(const sy_client *client) {
    for (unsigned i = 0; i < own_notes.calls && i < NOTED; i++)
        if (own_notes.called[i] == client) return true;
    return own_notes.calls > NOTED;
}

void sy_roster_pin(sy_client *client) {
    atomic_fetch_add_explicit(&client->pins, 1, memory_order_relaxed);
    if (own_notes.pins < NOTED) own_notes.pinned[own_notes.pins] = client;
    own_notes.pins++;
}

/* The lock is held before and after. It is released while an end that was put off is called. */
static void drop_pin(sy_client *client) {
    SY_HOLDS_THREADS();
    if (!atomic_load_explicit(&client->pins, memory_order_relaxed))
        return; /* in the child of a fork: a pin that was not noted is dropped already */
    if (atomic_fetch_sub_explicit(&client->pins, 1, memory_order_relaxed) != 1) return;
    if (client->awaited) sy_os_wake(&client->pins, 1 << 20);
    void (*end)(void *arg) = client->end;
    client->end = NULL;
    if (!end) return;
    void *arg = client->end_arg;
    sy_threads_unlock();
    end(arg);
    sy_threads_lock();
}

void sy_roster_unpin(sy_client *client) {
    own_notes.pins--;
    drop_pin(client);
}

/* The lock is held. */
static void put_off(sy_client *client, void (*end)(void *arg), void *arg) {
    SY_HOLDS_THREADS();
    client->suspended = true;
    client->end = end;
    client->end_arg = arg;
    if (!is_called(client)) return;
    atomic_fetch_add_explicit(&client->pins, 1, memory_order_relaxed);
    client->next_held = own_notes.held;
    own_notes.held = client;
}

bool sy_clients_leave(void) {
    sy_client **at = &own_notes.held, *client;
    while ((client = *at) != NULL) {
        if (is_called(client)) {
            at = &client->next_held;
            continue;
        }
        *at = client->next_held;
        sy_threads_lock();
        drop_pin(client);
        sy_threads_unlock();
        at = &own_notes.held; /* the end may have put off other clients */
    }
    return own_notes.held;
}

void sy_slow_path_end(const sy_slow_path *path) {
    own_notes.calls = path->outer;
    if (SY_UNLIKELY(!path->done && own_notes.held)) sy_clients_leave();
}

/* ---- flushing ---- */

void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain) {
    *move = (sy_move){.chain = chain, .thread = &own_notes, .next = client->moves};
    sy_fork_order();
    client->moves = move;
}

/* The lock is held. */
static void sy_move_end(sy_client *client, const sy_move *move) {
    SY_HOLDS_THREADS();
    sy_move **at = &client->moves;
    while (*at != move) at = &(*at)->next;
    *at = move->next;
}

bool sy_move_flush(sy_client *client, sy_move *move) {
    bool any = false;
    sy_magazine *magazine;
    while ((magazine = move->chain) != NULL) {
        any |= sy_magazine_count(magazine) > 0;
        sy_magazine_flush_counted(client, magazine);
        sy_threads_lock();
        move->chain = magazine->chain;
        sy_threads_unlock();
        sy_store_put(magazine);
    }
    sy_threads_lock();
    sy_move_end(client, move);
    sy_threads_unlock();
    return any;
}

/* The first magazine may have been half flushed at the fork, so its items are lost to the child.
 * The other magazines go to the depot. */
static void end_move_of_other(sy_client *client, sy_move *move) {
    if (move->chain) sy_magazine_set_count(move->chain, 0);
    for (sy_magazine *next, *magazine = move->chain; magazine; magazine = next) {
        next = magazine->chain;
        sy_budget_put(client, magazine, false);
    }
}

/* In the child of a fork. */
static void end_moves_of_others(sy_client *client) {
    sy_move **at = &client->moves, *move;
    while ((move = *at) != NULL) {
        if (move->thread == &own_notes) {
            at = &move->next;
            continue;
        }
        *at = move->next;
        end_move_of_other(client, move);
    }
}

/* Takes the magazines of a slot of this thread, and flushes them. The lock is held before and
 * after, not during the flush. The client is pinned meanwhile, since another thread may destroy it.
 */
static void flush_and_pin(sy_client *client, sy_slot *slot) {
    SY_HOLDS_THREADS();
    sy_move move;
    sy_move_begin(client, &move, sy_slot_take(slot, NULL));
    sy_roster_pin(client);
    sy_threads_unlock();
    sy_move_flush(client, &move);
    sy_threads_lock();
    sy_roster_unpin(client);
}

static void flush_record(void) {
    sy_thread *thread = sy_thread_self();
    if (!thread) return;
    sy_threads_lock();
    for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        sy_client *client = clients[number];
        if (sy_slot_has_magazines(slot) && !client->suspended) flush_and_pin(client, slot);
    }
    sy_threads_unlock();
}

void sy_thread_flush(void) {
    flush_record();
    if (sy_second_exchange()) {
        flush_record();
        sy_second_exchange();
    }
    sy_clients_leave();
}

/* The record that the thread runs with. */
static void flush_of_record(sy_client *client) {
    sy_thread *thread = sy_thread_self();
    if (!thread || sy_thread_is_inside(thread) || client->number >= thread->slots_end) return;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    if (!sy_slot_items(slot)) return;
    sy_threads_lock();
    if (!client->suspended) flush_and_pin(client, slot);
    sy_threads_unlock();
}

void sy_client_flush_own(sy_client *client) {
    flush_of_record(client);
    if (!sy_second_exchange()) return;
    flush_of_record(client);
    sy_second_exchange();
}

/* Flushes an idle slot of the calling thread, unless its client is suspended or calls the program
 * back. The lock is held before and after. */
static void flush_idle(sy_thread *thread, sy_slot *slot, unsigned number) {
    SY_HOLDS_THREADS();
    sy_client *client = clients[number];
    if (client->suspended || client->config.calls_back) return;
    sy_capacity_give_up(client, thread, slot);
    flush_and_pin(client, slot);
}

/* Whether the slot holds an item, and at least `least` bytes of items, and has had no exchange
 * since a call before looked at it. */
static bool is_idle(sy_slot *slot, unsigned number, size_t least) {
    if (!sy_slot_has_magazines(slot)) return false;
    size_t items = sy_slot_items(slot);
    if (items * clients[number]->config.item_bytes < least) return false;
    bool idle = slot->seen == (uint16_t)slot->exchanges && !slot->reserved && items > 0;
    slot->seen = (uint16_t)slot->exchanges;
    return idle;
}

/* The lock is held except during flushes: another thread may close a client of these slots. */
bool sy_thread_reap_step(size_t least) {
    sy_thread *thread = sy_thread_running();
    if (!thread || sy_thread_is_inside(thread)) return false;
    unsigned number = thread->next_idle, looked = 0, flushed = 0;
    sy_threads_lock();
    for (; number < thread->slots_end && looked < STEP_SLOTS && flushed < STEP_FLUSHES; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        looked++;
        if (!is_idle(slot, number, least)) continue;
        flush_idle(thread, slot, number);
        flushed++;
    }
    sy_threads_unlock();
    bool more = number < thread->slots_end;
    thread->next_idle = more ? number : SY_CLIENT_FIRST;
    sy_clients_leave();
    return more;
}

void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded) {
    *depot = *loaded = 0;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++)
        *depot += (size_t)sy_depot_items(&shards[i]);
    for (const sy_move *move = client->moves; move; move = move->next)
        for (const sy_magazine *magazine = move->chain; magazine; magazine = magazine->chain)
            *depot += sy_magazine_count(magazine);
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next)
        if (client->number < thread->slots_end)
            *loaded += sy_slot_items(sy_thread_slot(thread, client->number));
}

sy_client_counts sy_client_count(const sy_client *client) {
    sy_client_counts counts = {0};
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        counts.depot_hits += atomic_load_explicit(&shards[i].hits, memory_order_relaxed);
        counts.depot_misses += atomic_load_explicit(&shards[i].misses, memory_order_relaxed);
        counts.depot_steals += atomic_load_explicit(&shards[i].steals, memory_order_relaxed);
    }
    return counts;
}

/* The owner may change the items meanwhile; then the answer may be wrong, as client.h documents.
 * The loads are not atomic, since ThreadSanitizer sees atomic ones even in a function that it is
 * told to leave out. */
__attribute__((no_sanitize("thread"))) static bool contains(const uintptr_t *items, size_t count,
                                                            uintptr_t item) {
    for (size_t i = 0; i < count; i++)
        if (*(const volatile uintptr_t *)&items[i] == item) return true;
    return false;
}

static bool slot_holds(const sy_slot *slot, uintptr_t item) {
    const sy_magazine *loaded = __atomic_load_n(&slot->loaded, __ATOMIC_ACQUIRE);
    const sy_magazine *previous = __atomic_load_n(&slot->previous, __ATOMIC_ACQUIRE);
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    const sy_open_items open = loaded ? sy_slot_open_items(slot, loaded, top) : (sy_open_items){0};
    if (contains(open.first, open.count, item)) return true;
    return previous && previous != loaded &&
           contains(previous->items, sy_magazine_count(previous), item);
}

static bool depot_holds(const sy_client *client, uintptr_t item) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t top = atomic_load_explicit(&shards[i].top, memory_order_acquire);
        uint32_t number = (uint32_t)(top & ((UINT64_C(1) << SY_DEPOT_TAG_SHIFT) - 1));
        /* The stack may change meanwhile. The number of all magazines bounds the loop. */
        for (uint32_t steps = 0; number && steps >> SY_MAGAZINE_NUMBER_BITS == 0; steps++) {
            const sy_magazine *magazine = sy_magazine_of(number);
            if (contains(magazine->items, sy_magazine_count(magazine), item)) return true;
            number = atomic_load_explicit(&magazine->next, memory_order_acquire);
        }
    }
    return false;
}

static bool moves_hold(const sy_client *client, uintptr_t item) {
    for (const sy_move *move = client->moves; move; move = move->next)
        for (const sy_magazine *magazine = move->chain; magazine; magazine = magazine->chain)
            if (contains(magazine->items, sy_magazine_count(magazine), item)) return true;
    return false;
}

static bool threads_hold(const sy_client *client, uintptr_t item) {
    bool held = false;
    for (sy_thread *thread = sy_threads_first(); thread && !held; thread = thread->next)
        if (client->number < thread->slots_end)
            held = slot_holds(sy_thread_slot(thread, client->number), item);
    return held;
}

/* Searches the threads twice: a magazine may have gone from the depot to a thread meanwhile. */
bool sy_client_holds(sy_client *client, uintptr_t item) {
    return threads_hold(client, item) || depot_holds(client, item) || moves_hold(client, item) ||
           threads_hold(client, item);
}

void sy_clients_lock(void) { sy_threads_lock(); }

void sy_clients_unlock(void) { sy_threads_unlock(); }

/* Whether the thread never used the client. To write to its slot could touch a page. */
static bool is_unused(const sy_slot *slot) {
    static const sy_slot unused;
    return memcmp(slot, &unused, sizeof unused) == 0;
}

/* The thread ends, and has not called sy_count_end. */
static SY_COLD void stop_counting(void) {
    sy_profile_counts counts;
    sy_profile_end_count(&counts);
    sy_clients_profile();
}

/* Called at the end of a thread, before it loses its slots: flushes items that no allocation would
 * take from the depot. Clients that return items have numbers that are given out on demand. */
static void flush_returned(sy_thread *thread) {
    if (sy_profile_counter) stop_counting();
    if (sy_thread_running() != thread) return; /* it is parked: others may have its slots */
    SY_INSIDE(thread);
    for (unsigned number = SY_CLIENT_FIRST; number < SY_CLIENT_DEMANDED; number++) {
        if (number >= thread->slots_end) break;
        sy_slot *slot = sy_thread_slot(thread, number);
        if (!sy_slot_has_magazines(slot) || !clients[number]->config.returns) continue;
        sy_slot_settle(slot);
        sy_slot_flush(clients[number], slot);
    }
}

/* Called at the end of a thread, with the lock held: puts its magazines with items into the depot,
 * its empty ones into the store. */
static void empty_slots(sy_thread *thread) {
    for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        if (is_unused(slot)) continue;
        sy_client *client = clients[number];
        if (slot->top) sy_slot_settle(slot);
        sy_magazine *magazines[2] = {slot->loaded, slot->previous};
        if (magazines[0] == magazines[1]) magazines[1] = NULL;
        for (int i = 0; i < 2; i++) {
            sy_magazine *magazine = magazines[i];
            if (!magazine) continue;
            if (i == 0)
                sy_magazine_set_count(
                    magazine, sy_slot_items(&(sy_slot){.loaded = magazine, .top = slot->top}));
            sy_budget_put(client, magazine, false);
        }
        if (client) sy_capacity_give_up(client, thread, slot);
        *slot = (sy_slot){0};
    }
}

static int start_magazines(void) {
    sy_threads_start(empty_slots, flush_returned);
    return sy_budget_start();
}

/*
 * A number for a new client, or 0; the lock is held. New numbers are not multiples of 16: such a
 * loaded slot would begin at a multiple of 1 KiB, in the same cache sets as every object whose size
 * is a multiple of 1 KiB.
 */
static unsigned take_number(unsigned wanted, bool of_heap) {
    SY_HOLDS_THREADS();
    if (wanted) return clients[wanted] ? 0 : wanted;
    if (of_heap && of_heaps == SY_CLIENTS_OF_HEAPS) return 0;
    if (unused_count) return unused_numbers[--unused_count];
    if (next_number % 16 == 0 && next_number < SY_CLIENTS_MAX) next_number++;
    return next_number < SY_CLIENTS_MAX ? next_number++ : 0;
}

int sy_client_open(sy_client *client, const sy_client_config *config) {
    *client = (sy_client){.config = *config};
    if (!client->config.kind) client->config.kind = &sy_client_plain;
    if (client->config.item_bytes == 0) client->config.item_bytes = 1;
    if (client->config.magazine_items > SY_MAGAZINE_ITEMS)
        client->config.magazine_items = SY_MAGAZINE_ITEMS;
    sy_threads_lock();
    unsigned number = take_number(config->number, config->of_heap);
    atomic_store_explicit(&client->kind, sy_profiled_kind(&client->config), memory_order_relaxed);
    if (number) {
        of_heaps += config->of_heap;
        client->number = number;
        clients[number] = client;
    }
    sy_threads_unlock();
    if (number) return 0;
    errno = config->number ? EBUSY : ENOSPC;
    return -1;
}

void sy_client_forget(const sy_client *client) { clients[client->number] = NULL; }

/* The lock is held before and after. It is released while trims finish with the client. */
static void wait_for_pins(sy_client *client) {
    SY_HOLDS_THREADS();
    uint32_t pins;
    client->awaited = true;
    while ((pins = atomic_load_explicit(&client->pins, memory_order_relaxed)) != 0) {
        sy_threads_unlock();
        sy_os_wait(&client->pins, pins);
        sy_threads_lock();
    }
    client->awaited = false;
}

bool sy_client_suspend(sy_client *client, void (*end)(void *arg), void *arg) {
    sy_callback_check();
    sy_threads_lock();
    bool pinned = atomic_load_explicit(&client->pins, memory_order_relaxed) != 0;
    bool waits =
        client->closing || is_called(client) || (pinned && (own_notes.pins || own_notes.calls));
    if (!waits) {
        client->suspended = true;
        wait_for_pins(client);
    } else if (end && !client->end && !client->closing) {
        put_off(client, end, arg);
    }
    sy_threads_unlock();
    return !waits;
}

void sy_client_resume(sy_client *client) {
    sy_threads_lock();
    client->suspended = false;
    sy_threads_unlock();
}

/* Takes the client's magazines out of every thread's slot. No thread uses the client any more. The
 * lock is held. */
static sy_magazine *take_loaded(sy_client *client) {
    SY_HOLDS_THREADS();
    sy_magazine *chain = NULL;
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next) {
        if (client->number >= thread->slots_end) continue;
        sy_slot *slot = sy_thread_slot(thread, client->number);
        chain = sy_slot_take(slot, chain);
        sy_capacity_give_up(client, thread, slot);
        *slot = (sy_slot){0};
    }
    return chain;
}

void sy_client_close(sy_client *client) {
    sy_threads_lock();
    client->closing = true;
    wait_for_pins(client);
    sy_magazine *chain = take_loaded(client);
    clients[client->number] = NULL;
    sy_threads_unlock();
    sy_magazine_flush_chain(client, chain);
    sy_magazine_flush_chain(client, sy_budget_take_all(client));
    sy_budget_reset(client);
}

void sy_client_give_number(const sy_client *client) {
    if (client->number < SY_CLIENT_DEMANDED) return;
    sy_threads_lock();
    unused_numbers[unused_count] = (uint16_t)client->number;
    sy_fork_order();
    unused_count++;
    of_heaps -= client->config.of_heap;
    sy_threads_unlock();
}

size_t sy_client_offset(const sy_client *client) { return client->number * sizeof(sy_slot); }

sy_client *sy_client_next_locked(unsigned after) {
    for (unsigned number = after + 1; number < next_number; number++)
        if (clients[number]) return clients[number];
    return NULL;
}

sy_client *sy_client_pin_next(unsigned after) {
    sy_threads_lock();
    sy_client *found = sy_client_next_locked(after);
    while (found && found->suspended) found = sy_client_next_locked(found->number);
    if (found) sy_roster_pin(found);
    sy_threads_unlock();
    return found;
}

bool sy_client_pin(sy_client *client) {
    sy_threads_lock();
    bool open = !client->suspended;
    if (open) sy_roster_pin(client);
    sy_threads_unlock();
    return open;
}

void sy_client_unpin(sy_client *client) {
    sy_threads_lock();
    sy_roster_unpin(client);
    sy_threads_unlock();
    sy_clients_leave();
}

size_t sy_magazine_trim(void) { return sy_threads_trim() + sy_store_trim(); }

bool sy_magazine_trim_step(unsigned *at, bool aged, size_t *bytes) {
    if (sy_store_trim_step(at, aged, bytes)) return true;
    size_t of_thread = sy_threads_trim_one();
    *bytes += of_thread;
    return of_thread > 0;
}

size_t sy_magazine_bytes(void) { return sy_threads_bytes() + sy_store_bytes(); }

static void orphan_others(void) {
    sy_threads_lock();
    sy_threads_orphan_others();
    for (unsigned number = SY_CLIENT_FIRST; number < next_number; number++)
        if (clients[number]) {
            end_moves_of_others(clients[number]);
            atomic_store(&clients[number]->pins, 0); /* this thread's pins are added again below */
        }
    for (unsigned i = 0; i < own_notes.pins && i < NOTED; i++)
        atomic_fetch_add(&own_notes.pinned[i]->pins, 1);
    for (sy_client *client = own_notes.held; client; client = client->next_held)
        atomic_fetch_add(&client->pins, 1);
    sy_threads_unlock();
    sy_threads_open_again();
}

const sy_part sy_threads_part = {.start = start_magazines,
                                 .hold = sy_threads_hold,
                                 .drop = sy_threads_drop,
                                 .recover = orphan_others};

/* ---- for tools that read the process (base/shape.h) ---- */

#define ROSTER_VARIABLES(row) row(sy_clients, clients)

static const sy_shape_row roster_shape_rows[] = {SY_SHAPE_CONSTANT(SY_CLIENTS_MAX),
                                                 SY_SHAPE_FIELD(sy_client, sy_client, moves),
                                                 SY_SHAPE_FIELD(sy_client, sy_client, config.owner),
                                                 SY_SHAPE_FIELD(sy_move, sy_move, chain),
                                                 SY_SHAPE_FIELD(sy_move, sy_move, next),
                                                 ROSTER_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const roster_shape_addresses[] = {ROSTER_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_roster_shape = SY_SHAPE_PART(roster_shape_rows, roster_shape_addresses);
