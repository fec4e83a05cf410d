/*
 * client.c: the slow path of an allocation and of a free. The inline code of slabyard/loaded.h
 * comes here when the thread's loaded magazine is empty (allocation) or full (free).
 *
 * A thread has two magazines of a client: the loaded one, and the previous one, which is empty or
 * full (Bonwick and Adams, "Magazines and Vmem", 2001, section 3). An allocation tries, in this
 * order:
 *
 *     1. the loaded magazine, of which only a window was open    next_window
 *     2. the previous magazine, if it is full: exchange          sy_client_alloc_second, fill
 *     3. a full magazine from the depot                          fill, sy_budget_withdraw
 *     4. the slabs: the client's refill fills the magazine       refill
 *     5. items of parked threads, of other shards and of this    reclaim, flush_outbox
 *        thread's outbox: flushed to the slabs, then one item
 *     6. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the loaded magazine, if it has room                     push
 *     2. the previous magazine, if it is empty: exchange         sy_client_free_second
 *     3. a larger capacity for both, if the bounds allow it      grow_capacity
 *     4. the previous magazine goes to the depot, or, if that    put_away_previous
 *        has enough, to the slabs: the client's flush
 *     5. an empty magazine takes the previous one's place        make_room_in_slot
 *     6. there is none: the loaded magazine is flushed           flush_loaded
 *
 * A thread without a record, or a client without magazines, goes straight to refill and flush. A
 * one-way client (an epoch's) never exchanges: its previous magazine is an outbox for frees. A
 * client that sees frees (guards, zeroing) keeps its inline windows shut: each free comes here, and
 * so does the allocation that is to be guarded.
 */
#include "magazine/client.h"

#include <errno.h>
#include <limits.h>

#include "base/cpu.h"
#include "magazine/budget.h"
#include "magazine/slot.h"
#include "os/invariant.h"
#include "watch/guard.h"

enum {
    START_ITEMS = 16,       /* in a magazine at first use, of clients that may be seldom used, */
    START_BYTES = 16 << 10, /* but no more bytes of items than this */
    EASY_ITEMS = 64,        /* doubled at each exchange up to here, */
    EXCHANGES_MORE = 16,    /* and beyond after so many exchanges */
    LOADED_BYTES_MAX =
        4 << 20,        /* bytes of items in the magazines of one thread: what they may grow to */
    WINDOW = 16,        /* items of another CPU's magazine that are fetched at a time */
    STEP_MAGAZINES = 8, /* flushed in one step of a drain: a thousand items, some microseconds */
};

/* ---- how much a thread may hold ---- */

static bool grant(sy_client *client, uint64_t items) {
    if (!client->config.loaded_items) return true;
    uint64_t granted = atomic_fetch_add_explicit(&client->granted, items, memory_order_relaxed);
    if (granted + items <= client->config.loaded_items) return true;
    atomic_fetch_sub_explicit(&client->granted, items, memory_order_relaxed);
    return false;
}

static uint32_t first_capacity(const sy_client *client) {
    size_t items = START_BYTES / client->config.item_bytes;
    return items > START_ITEMS ? START_ITEMS : items ? (uint32_t)items : 1;
}

static void leave_as_holder(sy_client *client) { atomic_fetch_sub(&client->holders, 1); }

/* A thread that holds nothing is about to hold something; false: it may not. It is counted before
 * it asks, so a limit that is set meanwhile counts it. */
static bool enter_as_holder(sy_client *client) {
    const sy_client_config *config = &client->config;
    size_t holders = atomic_fetch_add(&client->holders, 1) + 1;
    if (!config->admits || config->admits(config->owner, holders * 2 * config->magazine_items))
        return true;
    leave_as_holder(client);
    return false;
}

/* Lets the slot hold so many items in each magazine; `limit` is not moved. */
static bool widen(sy_client *client, sy_thread *thread, sy_slot *slot, uint32_t want) {
    if (slot->capacity >= want) return true;
    bool first = !slot->capacity;
    if (first && !enter_as_holder(client)) return false;
    uint64_t more = 2 * (uint64_t)(want - slot->capacity); /* two magazines */
    if (!grant(client, more)) {
        if (first) leave_as_holder(client);
        return false;
    }
    atomic_fetch_add_explicit(&thread->loaded_bytes, more * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint16_t)want;
    return true;
}

/* Raises the capacity of the slot's magazines if the bounds let it. */
static bool grow_capacity(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t have = slot->capacity, most = (uint32_t)client->config.magazine_items;
    if (have >= most || (have >= EASY_ITEMS && slot->exchanges < EXCHANGES_MORE)) return false;
    uint32_t want = have ? have * 2 : first_capacity(client);
    if (want > most) want = most;
    uint64_t bytes = 2 * (uint64_t)(want - have) * client->config.item_bytes;
    uint64_t loaded = atomic_load_explicit(&thread->loaded_bytes, memory_order_relaxed);
    if (have && loaded + bytes > LOADED_BYTES_MAX) return false;
    return widen(client, thread, slot, want);
}

void sy_client_give_up_capacity(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint64_t items = 2 * (uint64_t)slot->capacity;
    if (items) leave_as_holder(client);
    atomic_fetch_sub_explicit(&thread->loaded_bytes, items * client->config.item_bytes,
                              memory_order_relaxed);
    if (client->config.loaded_items)
        atomic_fetch_sub_explicit(&client->granted, items, memory_order_relaxed);
    slot->capacity = 0;
}

/* The capacity is for more than the thread makes use of. Not under a bound of loaded items: the
 * outbox may hold what was granted. */
static void shrink(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t less = slot->capacity / 2;
    atomic_fetch_sub_explicit(&thread->loaded_bytes, 2 * (uint64_t)less * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint16_t)(slot->capacity - less);
}

/* ---- clients that see frees ---- */

/* Nothing came into the magazine but by a call, so what has gone was allocated. */
static void count_allocated(const sy_client *client, sy_slot *slot) {
    if (!client->config.guarded) return;
    uint16_t have = (uint16_t)(slot->top - slot->loaded->items);
    sy_guard_left -= slot->mark - have;
    slot->mark = have;
}

/* Shuts free, and allocation where the one comes that is to be guarded; not within what is
 * reserved. */
static void arm(const sy_client *client, sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    int64_t inline_ones = sy_guard_left > 1 ? sy_guard_left - 1 : 0;
    bool shut = client->config.guarded && inline_ones < slot->top - items && !slot->reserved;
    slot->base = shut ? slot->top - inline_ones : items;
    slot->limit = NULL;
}

static void count_and_arm(const sy_client *client, sy_slot *slot) {
    count_allocated(client, slot);
    arm(client, slot);
}

bool sy_client_due(sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    if (!client->config.magazine_items) return sy_guard_due();
    if (slot->reserved) return false;
    if (slot->loaded) count_allocated(client, slot);
    bool due = sy_guard_left <= 1 && sy_guard_due();
    if (slot->loaded) arm(client, slot);
    return due;
}

/* ---- what a slot has loaded ---- */

/* As sy_slot_load, with free shut where nothing comes back inline. */
static void load_magazine(const sy_client *client, sy_slot *slot, sy_magazine *magazine) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees && slot->loaded) count_allocated(client, slot);
    sy_slot_load(slot, magazine);
    if (client->config.one_way) slot->limit = NULL;
    if (sees_frees) arm(client, slot);
}

/* As sy_slot_exchange, likewise. Not for what is one-way, which has nothing to exchange. */
static void exchange(const sy_client *client, sy_slot *slot, sy_magazine *loaded,
                     sy_magazine *previous) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) count_allocated(client, slot);
    sy_slot_exchange(slot, loaded, previous);
    if (sees_frees) arm(client, slot);
}

static bool has_room(const sy_client *client, const sy_slot *slot) {
    bool sees_frees = client->config.sees_frees;
    return slot->top < (sees_frees ? slot->loaded->items + slot->capacity : slot->limit);
}

/* There is room. */
static void push(const sy_client *client, sy_slot *slot, uintptr_t item) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) count_allocated(client, slot);
    sy_slot_push(slot, item);
    if (!sees_frees) return;
    slot->mark++;
    arm(client, slot);
}

/* ---- slow paths ---- */

/* To the end of the scope, however that is left, the thread is at work on a slot: it does not look
 * for idle ones. */
static sy_thread *begin_inside(sy_thread *thread) {
    thread->inside++;
    return thread;
}

static void end_inside(sy_thread *const *thread) { (*thread)->inside--; }

#define SY_INSIDE(thread) sy_thread *inside SY_CLEANUP(end_inside) = begin_inside(thread)

static void flush_magazine(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    sy_magazine_set_count(magazine, 0);
    if (count) client->config.flush(client->config.owner, magazine->items, count, NULL);
}

void sy_client_flush_counted(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    if (count) client->config.flush(client->config.owner, magazine->items, count, &magazine->count);
}

/* Flushes the loaded magazine, which stays. */
static void flush_loaded(sy_client *client, sy_slot *slot) {
    size_t count = (size_t)(slot->top - slot->loaded->items);
    if (client->config.sees_frees) count_allocated(client, slot);
    slot->base = slot->loaded->items;
    sy_slot_set_top(slot, slot->base);
    slot->mark = 0;
    if (count) client->config.flush(client->config.owner, slot->loaded->items, count, NULL);
}

void sy_client_put_back(sy_client *client, sy_thread *thread, sy_slot *slot) {
    bool much = (size_t)(slot->top - slot->base) * 2 >= slot->capacity;
    if (much && !client->config.loaded_items) shrink(client, thread, slot);
    flush_loaded(client, slot);
}

/* Flushes what the slot holds; its magazines stay. */
static void flush_slot(sy_client *client, sy_slot *slot) {
    if (slot->loaded) flush_loaded(client, slot);
    if (slot->previous) flush_magazine(client, slot->previous);
}

/* Gives a slot its first magazine; false if there is none or the slot may hold nothing. */
static bool open_slot(sy_client *client, sy_thread *thread, sy_slot *slot) {
    if (!slot->capacity && !grow_capacity(client, thread, slot)) return false;
    sy_magazine *magazine = sy_thread_take_empty(thread);
    if (!magazine) return false;
    slot->generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    sy_magazine_set_count(magazine, 0);
    if (client->number >= thread->slots_end)
        atomic_store_explicit(&thread->slots_end, client->number + 1, memory_order_relaxed);
    load_magazine(client, slot, magazine);
    return true;
}

/* Its two magazines are different ones, and the items of each end within it. */
static bool slot_is_bounded(const sy_slot *slot) {
    const sy_magazine *loaded = slot->loaded, *previous = slot->previous;
    if (loaded == previous || slot->capacity > SY_MAGAZINE_ITEMS) return false;
    if (previous && sy_magazine_count(previous) > SY_MAGAZINE_ITEMS) return false;
    return slot->top >= loaded->items && slot->top <= loaded->items + SY_MAGAZINE_ITEMS;
}

/* The calling thread's slot, with a magazine loaded, after doing what a trim has asked for since;
 * NULL when it has to go without. */
static sy_slot *ready_slot(sy_client *client, sy_thread **self) {
    if (!client->config.magazine_items) return NULL;
    sy_thread *thread = *self = sy_thread_self();
    if (!thread) return NULL;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    if (SY_UNLIKELY(!slot->loaded) && !open_slot(client, thread, slot)) return NULL;
    uint32_t generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    if (SY_UNLIKELY(slot->generation != generation)) {
        slot->generation = generation;
        slot->reserved = 0;
        SY_INSIDE(thread);
        flush_slot(client, slot);
    }
    SY_INVARIANT(slot_is_bounded(slot));
    return slot;
}

/*
 * The objects of a magazine that another CPU filled are in that CPU's cache. They are asked for a
 * window at a time, one window ahead of use, by setting `base` in the midst of the magazine: the
 * fast path pays nothing, and comes here when a window has been given out.
 */
static void prefetch_below(uintptr_t *end, const uintptr_t *items) {
    for (unsigned i = 0; i < WINDOW && end > items; i++) sy_prefetch_for_write(*--end);
}

static void next_window(sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    slot->base = slot->top - items > WINDOW ? slot->top - WINDOW : items;
    prefetch_below(slot->base, items);
}

static void first_window(sy_slot *slot) {
    prefetch_below(slot->top, slot->loaded->items);
    next_window(slot);
}

static inline bool has_window(const sy_slot *slot) { return slot->base > slot->loaded->items; }

/* False: it was noted before, since the last put-back. */
static bool note_one_way(sy_thread *thread, const sy_client *client) {
    unsigned count = thread->one_way_count;
    for (unsigned i = 0; i < count && i < SY_ONE_WAY_NOTED; i++)
        if (thread->one_way[i] == client->number) return false;
    if (count < SY_ONE_WAY_NOTED) thread->one_way[count] = (uint16_t)client->number;
    if (count <= SY_ONE_WAY_NOTED) thread->one_way_count = count + 1;
    return true;
}

static size_t refill_magazine(sy_client *client, sy_thread *thread, sy_magazine *empty,
                              size_t count) {
    SY_INSIDE(thread);
    return client->config.refill(client->config.owner, empty->items, count);
}

/* Of a one-way client the first refill since the last put-back may be for a few items only. */
static bool refill(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *empty = slot->loaded;
    bool first = client->config.one_way && note_one_way(thread, client);
    size_t count = refill_magazine(client, thread, empty, slot->capacity);
    if (!first) grow_capacity(client, thread, slot);
    sy_magazine_set_count(empty, count);
    load_magazine(client, slot, empty);
    return count > 0;
}

/* Gets items into the loaded magazine, which is empty; false with errno when there are none. */
static bool fill(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    sy_magazine *empty = slot->loaded, *full = slot->previous;
    if (client->config.one_way) return refill(client, thread, slot);
    if (full && sy_magazine_count(full)) {
        sy_magazine_set_count(empty, 0);
        exchange(client, slot, full, empty);
        return true;
    }
    bool remote;
    if ((full = sy_budget_withdraw(client, &remote)) != NULL) {
        sy_magazine_set_count(empty, 0);
        bool spare = slot->previous;
        exchange(client, slot, full, spare ? slot->previous : empty);
        /* Not before it is unloaded: the child of a fork would find it in two places. */
        if (spare) sy_thread_put_empty(thread, empty);
        if (remote && client->config.addresses && !client->config.sees_frees) first_window(slot);
        return true;
    }
    return refill(client, thread, slot);
}

/* Takes the magazines out of the slots of threads that are parked; a chain. The lock is held. */
static sy_magazine *take_parked(sy_client *client) {
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

void sy_client_flush_chain(sy_client *client, sy_magazine *chain) {
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        flush_magazine(client, magazine);
        sy_store_put(magazine);
    }
}

/* Flushes magazines that `take` gives, up to `most`; whether there was an item in them. */
static bool move_out(sy_client *client, sy_magazine *(*take)(sy_client *client, unsigned most),
                     unsigned most) {
    sy_move move;
    sy_threads_lock();
    sy_move_begin(client, &move, take(client, most));
    sy_threads_unlock();
    return sy_move_flush(client, &move);
}

/* Of parked threads, and of the depot. The lock is held. */
static sy_magazine *take_all(sy_client *client, unsigned most) {
    sy_magazine *chain = take_parked(client), **end = &chain;
    while (*end) end = &(*end)->chain;
    *end = sy_budget_take(client, most);
    return chain;
}

/* Brings back items that wait where this thread does not look; whether there were any. */
static bool reclaim(sy_client *client) { return move_out(client, take_all, UINT_MAX); }

/* This thread's slot as it stands, if it has a magazine loaded and no trim has asked for it since;
 * else NULL. A thread without slots of its own looks at the shut ones, which have none. */
static inline sy_slot *steady_slot(const sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    bool steady = slot->loaded && slot->generation == atomic_load_explicit(&client->generation,
                                                                           memory_order_relaxed);
    return SY_LIKELY(steady) ? slot : NULL;
}

bool sy_client_alloc_second(sy_client *client, uintptr_t *item) {
    sy_slot *slot = steady_slot(client);
    if (!slot) return false;
    sy_magazine *empty = slot->loaded, *full = slot->previous;
    if (has_window(slot)) {
        next_window(slot);
    } else if (slot->top <= slot->base && full && sy_magazine_count(full) &&
               !client->config.one_way) {
        slot->exchanges++;
        sy_magazine_set_count(empty, 0);
        exchange(client, slot, full, empty);
    }
    if (slot->top <= slot->base) return false;
    *item = sy_slot_pop(slot);
    if (client->config.sees_frees) count_and_arm(client, slot);
    return true;
}

/* Into the outbox of a one-way client, if that has room: under a bound what it was granted. */
static bool put_out(const sy_client *client, sy_slot *slot, uintptr_t item) {
    sy_magazine *outbox = slot->previous;
    uint32_t count = outbox ? sy_magazine_count(outbox) : 0;
    size_t most = client->config.loaded_items ? slot->capacity : client->config.magazine_items;
    if (!outbox || count >= most) return false;
    __atomic_store_n(&outbox->items[count], item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_magazine_set_count(outbox, count + 1);
    return true;
}

static bool is_last(const uintptr_t *items, size_t count, uintptr_t item) {
    return count && items[count - 1] == item;
}

bool sy_client_freed_last(const sy_client *client, uintptr_t item) {
    const sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    const sy_magazine *loaded = slot->loaded, *previous = slot->previous;
    if (!loaded) return false;
    if (is_last(loaded->items, (size_t)(slot->top - loaded->items), item)) return true;
    return previous && is_last(previous->items, sy_magazine_count(previous), item);
}

bool sy_client_free_second(sy_client *client, uintptr_t item) {
    sy_slot *slot = steady_slot(client);
    if (!slot) return false;
    if (client->config.one_way) return put_out(client, slot, item);
    sy_magazine *empty = slot->previous;
    if (!has_room(client, slot)) {
        if (slot->capacity < client->config.magazine_items) return false;
        if (!empty || sy_magazine_count(empty)) return false;
        exchange(client, slot, empty, sy_slot_unload(slot));
    }
    push(client, slot, item);
    return true;
}

/* Whether there was something in it. */
static bool flush_outbox(sy_client *client, sy_slot *slot) {
    if (!client->config.one_way || !slot->previous || !sy_magazine_count(slot->previous))
        return false;
    flush_magazine(client, slot->previous);
    return true;
}

bool sy_client_alloc(sy_client *client, uintptr_t *item) {
    sy_thread *thread;
    sy_slot *slot = ready_slot(client, &thread);
    if (slot && slot->top <= slot->base && has_window(slot)) next_window(slot);
    if (SY_LIKELY(slot && (slot->top > slot->base || fill(client, thread, slot)))) {
        *item = sy_slot_pop(slot);
        if (client->config.sees_frees) count_and_arm(client, slot);
        return true;
    }
    const sy_client_config *config = &client->config;
    if (!slot && config->refill(config->owner, item, 1)) return true;
    int error = errno;
    bool outbox = slot && flush_outbox(client, slot);
    if ((reclaim(client) || outbox) && config->refill(config->owner, item, 1)) return true;
    errno = error;
    return false;
}

/* Takes the magazine with items out of `previous`: to the depot or, if that has enough, flushed and
 * kept as a spare. */
static void put_away_previous(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *older = slot->previous;
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    if (sy_budget_deposit(client, older)) return;
    flush_magazine(client, older);
    sy_thread_put_empty(thread, older);
    sy_client_flush_chain(client, sy_budget_burst(client));
}

/* Works on a loaded magazine that is full, so that there is room in one, most often: what flush
 * calls (destructors, the handler of faults) may use this slot too. The caller looks again. */
static void make_room_in_slot(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    if (grow_capacity(client, thread, slot)) {
        load_magazine(client, slot, sy_slot_unload(slot));
        /* A magazine of another thread may hold more than this one's may, even after growing. */
        if (has_room(client, slot)) return;
    }
    if (slot->previous && sy_magazine_count(slot->previous)) {
        put_away_previous(client, thread, slot);
        if (has_room(client, slot) || slot->previous) return;
    }
    sy_magazine *empty = slot->previous ? slot->previous : sy_thread_take_empty(thread);
    if (!empty) { /* nor is there one to be had: the full one, then */
        flush_loaded(client, slot);
        return;
    }
    sy_magazine_set_count(empty, 0);
    exchange(client, slot, empty, sy_slot_unload(slot));
}

/* Makes room in the outbox; false: there is no magazine to be had. The caller looks again. */
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
    flush_magazine(client, outbox);
    sy_thread_put_empty(thread, outbox);
    return true;
}

static void free_one_way(sy_client *client, uintptr_t item) {
    sy_thread *thread;
    sy_slot *slot;
    bool more = true;
    while (more && (slot = ready_slot(client, &thread)) != NULL) {
        if (put_out(client, slot, item)) return;
        SY_INSIDE(thread);
        more = empty_outbox(client, thread, slot);
    }
    client->config.flush(client->config.owner, &item, 1, NULL);
}

void sy_client_free(sy_client *client, uintptr_t item) {
    if (client->config.one_way) {
        free_one_way(client, item);
        return;
    }
    sy_thread *thread;
    sy_slot *slot;
    while ((slot = ready_slot(client, &thread)) != NULL && !has_room(client, slot)) {
        SY_INSIDE(thread);
        make_room_in_slot(client, thread, slot);
    }
    if (SY_LIKELY(slot))
        push(client, slot, item);
    else
        client->config.flush(client->config.owner, &item, 1, NULL);
}

size_t sy_client_alloc_loaded(sy_client *client, uintptr_t *items, size_t count) {
    sy_thread *thread;
    sy_slot *slot = count ? ready_slot(client, &thread) : NULL;
    size_t got = 0;
    if (!slot) return 0;
    while (got < count) {
        slot->base = slot->loaded->items;
        while (got < count && slot->top > slot->base) items[got++] = sy_slot_pop(slot);
        sy_magazine *full = slot->previous;
        if (got == count || !full || !sy_magazine_count(full) || client->config.one_way) break;
        sy_magazine *empty = sy_slot_unload(slot);
        exchange(client, slot, full, empty);
    }
    return got;
}

void sy_client_prepare(sy_client *client) {
    sy_thread *thread;
    ready_slot(client, &thread);
}

/* ---- reserve ---- */

/* Items behind the `have` that a magazine has, until there are `want`; how many there are. */
static size_t top_up(sy_client *client, sy_magazine *magazine, size_t have, size_t want) {
    const sy_client_config *config = &client->config;
    if (have >= want) return have;
    return have + config->refill(config->owner, magazine->items + have, want - have);
}

static size_t fill_loaded(sy_client *client, sy_slot *slot, size_t want, size_t reserved) {
    size_t have = (size_t)(slot->top - slot->loaded->items);
    have = top_up(client, slot->loaded, have, want);
    slot->reserved = reserved;
    sy_magazine_set_count(slot->loaded, have);
    load_magazine(client, slot, slot->loaded);
    return have;
}

static size_t fill_previous(sy_client *client, sy_thread *thread, sy_slot *slot, size_t want) {
    sy_magazine *magazine = slot->previous;
    if (!want) return 0;
    if (!magazine) {
        magazine = sy_thread_take_empty(thread);
        if (!magazine) return 0;
        sy_magazine_set_count(magazine, 0);
        sy_slot_set_magazines(slot, slot->loaded, magazine);
    }
    size_t have = top_up(client, magazine, sy_magazine_count(magazine), want);
    sy_magazine_set_count(magazine, have);
    return have;
}

size_t sy_client_reserve(sy_client *client, size_t count) {
    sy_thread *thread;
    sy_slot *slot = ready_slot(client, &thread);
    size_t most = client->config.magazine_items;
    size_t first = count < most ? count : most, rest = count - first;
    if (rest > (client->config.one_way ? 0 : most)) return 0;
    if (!slot || !widen(client, thread, slot, (uint32_t)first)) return 0;
    if (client->config.one_way) note_one_way(thread, client);
    SY_INSIDE(thread);
    size_t have = fill_loaded(client, slot, first, count);
    return have + fill_previous(client, thread, slot, rest);
}

/* Flushes what this thread's slot holds; its magazines go. */
static void flush_own_slot(sy_client *client, sy_slot *slot) {
    sy_move move;
    if (client->config.sees_frees) count_allocated(client, slot);
    sy_threads_lock();
    sy_move_begin(client, &move, sy_slot_take(slot, NULL));
    sy_threads_unlock();
    sy_move_flush(client, &move);
}

/* Asks running threads to flush. This one does, unless it is inside a slot, perhaps this one: a
 * constructor trims. Then it does so at its next slow path, as the others. */
static void begin_drain(sy_client *client) {
    uint32_t before = atomic_fetch_add_explicit(&client->generation, 1, memory_order_relaxed);
    sy_thread *thread = sy_thread_running();
    if (!thread || thread->inside || client->number >= thread->slots_end) return;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    slot->generation = before + 1;
    slot->reserved = 0;
    if (slot->loaded) flush_own_slot(client, slot);
}

void sy_client_drain(sy_client *client) {
    begin_drain(client);
    reclaim(client);
}

/* What parked threads hold waits in the depot from now on, to be flushed in steps. */
static void deposit_parked(sy_client *client, bool surplus) {
    sy_threads_lock();
    sy_magazine *chain = take_parked(client);
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        sy_budget_put(client, magazine, surplus);
    }
    sy_threads_unlock();
}

bool sy_client_drain_step(sy_client *client, bool first) {
    if (first) {
        begin_drain(client);
        deposit_parked(client, false);
    }
    return move_out(client, sy_budget_take, STEP_MAGAZINES);
}

bool sy_client_reap_step(sy_client *client, bool first, bool idle) {
    if (first) {
        sy_budget_begin_reap(client, idle);
        if (idle) deposit_parked(client, true);
    }
    return move_out(client, sy_budget_reap, STEP_MAGAZINES);
}
