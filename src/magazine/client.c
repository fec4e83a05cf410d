/*
 * client.c: the slow path of an allocation and of a free. The inline code of slabyard/loaded.h
 * comes here when the thread's loaded magazine is empty (allocation) or full (free).
 *
 * A thread has two magazines of a client: the loaded one, and the previous one, which is empty or
 * full (Bonwick and Adams, "Magazines and Vmem", 2001, section 3). An allocation tries, in this
 * order (1 and 2 by alloc_second, the others by alloc_rest):
 *
 *     1. the loaded magazine, of which only a window was open    next_window
 *     2. the previous magazine, if it is full: exchange          exchange_for_full
 *     3. a full magazine from the depot                          sy_budget_get
 *     4. the slabs: the client's refill fills the magazine       fill_from_slabs
 *     5. items of other shards and of parked threads: flushed    sy_client_alloc_unloaded
 *        to the slabs, then one item
 *     6. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the loaded magazine, if it has room                     sy_slot_push
 *     2. the previous magazine, if it is empty: exchange         free_second
 *     3. a larger capacity for both, if the bounds allow it      sy_capacity_grow
 *     4. the previous magazine goes to the depot, or, if that    put_away_previous
 *        has enough, to the slabs: the client's flush
 *     5. an empty magazine takes the previous one's place        make_room_in_slot
 *     6. there is none: the loaded magazine is flushed           sy_slot_flush_loaded
 *
 * One full magazine in 4,096 is flushed without these steps  is_inspected
 *
 * If it is the first free of the thread, and the item may lie in a cache line that other threads
 * use, the loaded magazine first gets other items              push_below
 *
 * A thread without a record, or a client without magazines, goes straight to refill and flush.
 *
 * While a thread is in one of these functions, no other thread reaches into its slots (SY_INSIDE).
 * If one has done so before, the function first moves what is left (sy_slot_settle).
 *
 * The kinds `plain`, `seen`, `guarded` and `profiled` (kind.h) take these steps, each with its
 * sy_slot_rule. In the last three the free direction of the slot is shut: each free comes here. In
 * the last two the allocation that is to be sampled comes here too (sample.h, profiled.h).
 * one_way.c has the other kinds.
 *
 * Related files: budget.h decides how much a slot and the depot may hold, reserve.c fills magazines
 * ahead of allocations, drain.c brings items back to the slabs.
 */
#include "magazine/client.h"

#include <string.h>

#include "base/cpu.h"
#include "magazine/budget.h"
#include "magazine/drain.h"
#include "magazine/slot.h"

enum {
    WINDOW = 16,              /* items of another CPU's magazine that are fetched at a time */
    INSPECTED_ONE_IN = 4096,  /* full magazines */
    LINE = 64,                /* bytes of a cache line */
    SHARING_BYTES = 4 * LINE, /* of smaller items: few others lie beside a larger one */
};

/* ---- the thread's own magazines ---- */

/*
 * The objects of a magazine that another CPU filled are in that CPU's cache. The slow path
 * prefetches them a window at a time, one window ahead of use. It sets `base` in the middle of the
 * magazine, so that the fast path comes here when it has given out a window, and costs no more.
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

/* Whether items lie below those that may be popped. A slot that was shut (profiled.c) has a `base`
 * above all items, and may have none. */
static inline bool has_window(const sy_slot *slot) {
    const uintptr_t *items = slot->loaded->items;
    return slot->base > items && slot->top > items;
}

/* The previous magazine, if it has items, takes the place of the loaded one, which is empty. */
SY_STEP bool exchange_for_full(sy_slot_rule rule, sy_slot *slot) {
    sy_magazine *empty = slot->loaded, *full = slot->previous;
    if (!full || !sy_magazine_count(full)) return false;
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(rule, slot, full, empty);
    return true;
}

/*
 * Whether the full loaded magazine is flushed, although it could be exchanged. Only a flush notices
 * a free of an address where no object begins, and most second frees, and a program with a steady
 * number of objects would never flush. (One in 1,024 costs 1 % if objects are freed at random.) The
 * hash chooses any place of a sequence of exchanges that repeats.
 */
static inline bool is_inspected(const sy_slot *slot) {
    uint32_t hash = (slot->exchanges + 1) * UINT32_C(2654435769);
    return hash < UINT32_MAX / INSPECTED_ONE_IN;
}

SY_STEP bool alloc_second(sy_slot_rule rule, sy_client *client, uintptr_t *item) {
    sy_slot *slot = sy_slot_steady(client);
    if (!slot) return false;
    SY_INSIDE(sy_thread_own);
    sy_slot_settle(slot);
    if (rule.profiles && sy_profiled_is_due(slot)) return false;
    if (has_window(slot)) {
        next_window(slot);
    } else if (slot->top <= slot->base) {
        if (!exchange_for_full(rule, slot)) return false;
        slot->exchanges++;
    }
    *item = sy_slot_pop(rule, slot);
    return true;
}

SY_STEP sy_freed free_second(sy_slot_rule rule, sy_client *client, uintptr_t item) {
    if (rule.profiles) sy_profile_forget((const void *)item);
    sy_slot *slot = sy_slot_steady(client);
    if (!slot) return sy_client_freed_last(client, item) ? SY_FREED_BEFORE : SY_FREED_NOT;
    SY_INSIDE(sy_thread_own);
    sy_slot_settle(slot);
    if (SY_UNLIKELY(sy_slot_has_last(slot, item))) return SY_FREED_BEFORE;
    sy_magazine *empty = slot->previous;
    if (!sy_slot_has_room(rule, slot)) {
        if (slot->capacity < client->config.magazine_items) return SY_FREED_NOT;
        if (!empty || sy_magazine_count(empty) || is_inspected(slot)) return SY_FREED_NOT;
        sy_slot_exchange(rule, slot, empty, sy_slot_unload(slot));
    }
    sy_slot_push(rule, slot, item);
    return SY_FREED;
}

bool sy_client_freed_last(const sy_client *client, uintptr_t item) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    if (!slot->loaded) return false;
    SY_INSIDE(sy_thread_own);
    sy_slot_settle(slot);
    return sy_slot_has_last(slot, item);
}

/* ---- allocation ---- */

/* Exchanges the thread's magazines, which have no items, for `full`, which is from the depot. */
SY_STEP void load_from_depot(sy_slot_rule rule, sy_thread *thread, sy_slot *slot,
                             sy_magazine *full) {
    sy_magazine *empty = slot->loaded, *spare = slot->previous;
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(rule, slot, full, spare ? spare : empty);
    /* Not before it is unloaded: the child of a fork would find it in two places. */
    if (spare) sy_thread_put_empty(thread, empty);
}

/* Fills the loaded magazine, which is empty, from the slabs, and lets the capacity grow. */
SY_STEP bool fill_from_slabs(sy_slot_rule rule, sy_client *client, sy_thread *thread,
                             sy_slot *slot) {
    sy_magazine *empty = slot->loaded;
    size_t count = client->config.refill(client->config.owner, empty->items, slot->capacity);
    sy_capacity_grow(client, thread, slot);
    return sy_slot_load_filled(rule, slot, empty, count);
}

/* Gets items into the loaded magazine, which is empty; false with errno when there are none. */
SY_STEP bool fill_loaded(sy_slot_rule rule, sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    bool remote;
    sy_magazine *full = sy_budget_get(client, &remote);
    if (!full) return fill_from_slabs(rule, client, thread, slot);
    load_from_depot(rule, thread, slot, full);
    if (!rule.shuts_frees && remote && client->config.prefetches) first_window(slot);
    return true;
}

/* The thread's magazines may have items now: sy_slot_owner brings them back to a thread that was
 * parked, and sy_slot_ready may call functions of the program. */
SY_STEP bool has_items(sy_slot_rule rule, sy_slot *slot) {
    if (slot->top == slot->loaded->items) return exchange_for_full(rule, slot);
    if (slot->top == slot->base) next_window(slot);
    return true;
}

SY_STEP bool alloc_rest(sy_slot_rule rule, sy_client *client, uintptr_t *item) {
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    if (SY_LIKELY(slot && (has_items(rule, slot) || fill_loaded(rule, client, thread, slot)))) {
        *item = sy_slot_pop(rule, slot);
        return true;
    }
    return sy_client_alloc_unloaded(client, slot, false, item);
}

SY_STEP size_t alloc_loaded(sy_slot_rule rule, sy_client *client, uintptr_t *items, size_t count) {
    sy_thread *thread = count ? sy_slot_owner(client) : NULL;
    SY_INSIDE(thread);
    sy_slot *slot = sy_slot_ready(client, thread);
    if (!slot) return 0;
    size_t got = sy_slot_pop_some(slot, items, count);
    if (got < count && exchange_for_full(rule, slot))
        got += sy_slot_pop_some(slot, items + got, count - got);
    return got;
}

/* ---- free ---- */

/* Takes the magazine with items out of `previous` and puts it into the depot. If the depot has
 * enough, flushes the magazine and keeps it as a spare. */
static void put_away_previous(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *older = slot->previous;
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    if (sy_budget_try_put(client, older)) return;
    sy_magazine_flush(client, older);
    sy_thread_put_empty(thread, older);
    sy_magazine_flush_chain(client, sy_budget_take_along(client));
}

/* The loaded magazine is full: makes room in the slot. The caller checks again, since functions
 * that flush calls (destructors, the handler of faults) may have filled this slot meanwhile. */
SY_STEP void make_room_in_slot(sy_slot_rule rule, sy_client *client, sy_thread *thread,
                               sy_slot *slot) {
    bool inspected = is_inspected(slot);
    slot->exchanges++;
    slot->reserved = 0;
    if (SY_UNLIKELY(inspected)) {
        sy_slot_flush_loaded(client, slot);
        return;
    }
    if (sy_capacity_grow(client, thread, slot)) {
        sy_slot_load(rule, slot, sy_slot_unload(slot));
        /* A magazine of another thread may hold more than this one's may, even after growing. */
        if (sy_slot_has_room(rule, slot)) return;
    }
    if (slot->previous && sy_magazine_count(slot->previous)) {
        put_away_previous(client, thread, slot);
        if (sy_slot_has_room(rule, slot) || slot->previous) return;
    }
    sy_magazine *empty = slot->previous ? slot->previous : sy_thread_take_empty(thread);
    if (!empty) { /* no empty magazine: flush the full one */
        sy_slot_flush_loaded(client, slot);
        return;
    }
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(rule, slot, empty, sy_slot_unload(slot));
}

/*
 * Whether this is the thread's first use of the client, and the item is so small that other items
 * lie in its cache lines. The item was another thread's, and further threads may use the items
 * beside it. If this thread got it again for each allocation, these threads would write to the same
 * lines: passive false sharing (Berger and others, "Hoard", 2000, section 2). Only for clients that
 * have `place_matters`, the heap's classes: their refill calls no function of the program.
 */
static bool may_share_lines(const sy_client *client) {
    size_t bytes = client->config.item_bytes;
    bool may = client->config.place_matters && bytes < SHARING_BYTES && bytes % LINE != 0;
    const sy_slot *slot = (const sy_slot *)sy_abi_1 + client->number;
    return may && !slot->loaded;
}

/* Gives the slot, which is empty, items that no other thread uses, and puts `item` below them. */
static SY_COLD bool push_below(sy_client *client, sy_slot *slot, uintptr_t item) {
    sy_magazine *empty = slot->loaded;
    if (slot->top != empty->items || slot->capacity == 1) return false;
    size_t count = client->config.refill(client->config.owner, empty->items, slot->capacity - 1u);
    if (count == 0) return false;
    memmove(empty->items + 1, empty->items, count * sizeof *empty->items);
    empty->items[0] = item;
    sy_magazine_set_count(empty, count + 1);
    sy_client_kind_of(client)->load(slot, empty);
    return true;
}

SY_STEP void free_item(sy_slot_rule rule, sy_client *client, uintptr_t item) {
    bool first = may_share_lines(client);
    sy_thread *thread = sy_slot_owner(client);
    SY_INSIDE(thread);
    sy_slot *slot;
    while ((slot = sy_slot_ready(client, thread)) != NULL && !sy_slot_has_room(rule, slot))
        make_room_in_slot(rule, client, thread, slot);
    if (SY_UNLIKELY(slot && first) && push_below(client, slot, item)) return;
    if (SY_LIKELY(slot))
        sy_slot_push(rule, slot, item);
    else
        client->config.flush(client->config.owner, &item, 1, NULL);
}

/* ---- the kinds ---- */

/* The kind sy_client_NAME: the functions above with a constant rule. */
#define TWO_WAY_KIND(NAME, SHUTS_FREES, COUNTS, PROFILES)                                  \
    static const sy_slot_rule NAME##_rule = {                                              \
        .shuts_frees = (SHUTS_FREES), .counts = (COUNTS), .profiles = (PROFILES)};         \
    static bool NAME##_alloc_second(sy_client *client, uintptr_t *item) {                  \
        return alloc_second(NAME##_rule, client, item);                                    \
    }                                                                                      \
    static bool NAME##_alloc_rest(sy_client *client, uintptr_t *item) {                    \
        return alloc_rest(NAME##_rule, client, item);                                      \
    }                                                                                      \
    static size_t NAME##_alloc_loaded(sy_client *client, uintptr_t *items, size_t count) { \
        return alloc_loaded(NAME##_rule, client, items, count);                            \
    }                                                                                      \
    static sy_freed NAME##_free_second(sy_client *client, uintptr_t item) {                \
        return free_second(NAME##_rule, client, item);                                     \
    }                                                                                      \
    static void NAME##_free(sy_client *client, uintptr_t item) {                           \
        free_item(NAME##_rule, client, item);                                              \
    }                                                                                      \
    static void NAME##_load(sy_slot *slot, sy_magazine *magazine) {                        \
        sy_slot_load(NAME##_rule, slot, magazine);                                         \
    }                                                                                      \
    static void NAME##_count(sy_slot *slot) { sy_slot_count(NAME##_rule, slot); }          \
    const sy_client_kind sy_client_##NAME = {                                              \
        .alloc_second = NAME##_alloc_second,                                               \
        .alloc_rest = NAME##_alloc_rest,                                                   \
        .alloc_loaded = NAME##_alloc_loaded,                                               \
        .free_second = NAME##_free_second,                                                 \
        .free = NAME##_free,                                                               \
        .reserve = sy_slot_reserve_both,                                                   \
        .load = NAME##_load,                                                               \
        .count = NAME##_count,                                                             \
    }

TWO_WAY_KIND(plain, false, false, false);
TWO_WAY_KIND(seen, true, false, false);
TWO_WAY_KIND(guarded, true, true, false);
TWO_WAY_KIND(profiled, true, false, true);
