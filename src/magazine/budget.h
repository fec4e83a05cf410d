/*
 * budget.h: decides how many items may wait in the magazines of a thread and in the depot.
 *
 * All numbers that decide this are in budget.c, since magazines and depot share the same memory.
 * (The numbers in client.c and drain.c, of items fetched ahead and of magazines flushed in one
 * step, bound time, not memory.)
 *
 * A thread's slot has a *capacity*: the number of items that each of its two magazines may hold. It
 * begins small, so that a seldom used client holds little, and doubles at exchanges. Its bounds:
 *
 *     of a client      magazine_items; loaded_items in all threads' slots together; what `admits`
 *                      says, for each thread that begins to hold items
 *     of a thread      4 MiB of items in all its slots, beyond the first capacity of each
 *
 * Each shard of the depot has a *budget* of items: 256 KiB of them at first, or the items of one
 * magazine if these are more. The shard refuses a magazine beyond the budget; the thread flushes
 * it. If a thread later finds no magazine, the budget grows by the items that were refused, so that
 * after one round the depot holds the items that the next round needs. A share of the process's
 * memory limit bounds the budget.
 *
 * Below: depot.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_BUDGET_H
#define SY_MAGAZINE_BUDGET_H

#include <stdbool.h>

#include "magazine/client.h"
#include "magazine/depot.h"
#include "magazine/thread.h"

/* ---- of a thread ---- */

/* Lets each magazine of the slot hold `want` items; false: a bound of the client is reached. The
 * slot's `limit` stays where it is. */
bool sy_capacity_widen(sy_client *client, sy_thread *thread, sy_slot *slot, uint32_t want);

/* Whether threads may have magazines of the client's items. A large object of the general heap that
 * waits in a magazine, and the slab that it keeps from being empty, are much for a small program:
 * there it goes to its slab at once, and the slab's units can serve other sizes. */
bool sy_capacity_may_begin(const sy_client *client);

/* Raises the slot's capacity, at an exchange, if the bounds allow it. */
bool sy_capacity_grow(sy_client *client, sy_thread *thread, sy_slot *slot);

/* Halves the slot's capacity, because the thread uses little of it. Not for a client with
 * `loaded_items`: its outbox may hold as many items as were allowed. */
void sy_capacity_halve(const sy_client *client, sy_thread *thread, sy_slot *slot);

/* Sets the slot's capacity to 0, and lets other slots have what it was allowed. */
void sy_capacity_give_up(sy_client *client, sy_thread *thread, sy_slot *slot);

/* ---- of the depot ---- */

/* 0, or -1 with ENOMEM. Once, before all else. */
int sy_budget_start(void);

/* Puts a magazine with items into this CPU's shard, whatever the budget, and an empty one into the
 * store. `surplus`: the items are to be reaped. */
void sy_budget_put(const sy_client *client, sy_magazine *magazine, bool surplus);

/*
 * Tells how much memory the slabs of all clients take. If it is more than a processor's nearer
 * caches have (4 MiB), the place of an item of fewer than 512 bytes matters more than the time of a
 * flush: then sy_budget_try_put refuses magazines whose items are scattered. Whether large items
 * wait in magazines, and what shards keep while caches grow, depend on it too.
 */
void sy_budget_note_memory(size_t bytes);

/* Puts a magazine of items into this CPU's shard; false if the shard would exceed its budget, or if
 * the items are scattered, see above. If other CPUs take magazines from this shard, reverses the
 * items, so that the one freed first is given out first: this CPU is the least likely to still use
 * its cache lines. */
bool sy_budget_try_put(sy_client *client, sy_magazine *magazine);

/* For a client that flushes many magazines at a time: takes those that are flushed along with a
 * refused one; a chain. NULL for other clients. */
sy_magazine *sy_budget_take_along(sy_client *client);

/* A magazine of items: from this CPU's shard, else from any other; NULL if there is none. *remote
 * tells whether another CPU filled it. */
sy_magazine *sy_budget_get(sy_client *client, bool *remote);

/* All magazines of the client, a chain. */
sy_magazine *sy_budget_take_all(sy_client *client);

/* Up to `most` magazines of the client, a chain. */
sy_magazine *sy_budget_take(sy_client *client, unsigned most);

/*
 * Reaping (the working set of Bonwick and Adams, "Magazines and Vmem", section 3.6). The fewest
 * items that a shard held since the last sy_budget_begin_reap are more than the client works with.
 * sy_budget_begin_reap notes this number as the shard's surplus. If there is a surplus, or `forget`
 * is true, it also forgets refused items, so that they no longer raise the budget. sy_budget_reap
 * takes magazines of the surplus, a chain of at most `most`; fewer: there are no more. Budgets
 * shrink by the items taken.
 *
 * While caches grow (`forget` is false), other sizes would take memory from the system while items
 * wait here. So what a shard has beyond a 32nd of all slabs, and 64 KiB, is surplus too.
 */
void sy_budget_begin_reap(sy_client *client, bool forget);
sy_magazine *sy_budget_reap(sy_client *client, unsigned most);

/* Forgets budgets and counts, for the next client with the number. */
void sy_budget_reset(const sy_client *client);

#endif
