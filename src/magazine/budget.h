/*
 * budget.h: how many items may wait, in the magazines of a thread and in the depot.
 *
 * All numbers that decide this are in budget.c: both answers spend the same memory, and a number of
 * one of them is judged beside those of the other. (How many items are fetched ahead and how much
 * one step of a drain flushes bounds time, not memory: client.c and drain.c.)
 *
 * A thread's slot has a *capacity*: the items that each of its two magazines may hold. It begins
 * small, so that a client that is seldom used holds little, and doubles at exchanges. The bounds:
 *
 *     of a client      magazine_items; loaded_items in all threads' slots together; what `admits`
 *                      says, for each thread that begins to hold items
 *     of a thread      4 MiB of items in all its slots, beyond the first capacity of each
 *
 * Each shard of the depot has a *budget* of items, 256 KiB of them at first, or a magazine-full if
 * that is more. A magazine beyond it is turned away, to be flushed. When then a magazine is missed
 * that was turned away, the budget grows by as much: after one round a depot holds what the next
 * one wants. A share of the process's memory bounds it.
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

/* Raises the slot's capacity, at an exchange, if the bounds allow it. */
bool sy_capacity_grow(sy_client *client, sy_thread *thread, sy_slot *slot);

/* Halves the slot's capacity, which is more than the thread makes use of. Not of a client with a
 * bound of loaded items: its outbox may hold what was granted. */
void sy_capacity_halve(const sy_client *client, sy_thread *thread, sy_slot *slot);

/* The slot may hold nothing any more: other slots may hold as much more. */
void sy_capacity_give_up(sy_client *client, sy_thread *thread, sy_slot *slot);

/* ---- of the depot ---- */

/* 0, or -1 with ENOMEM. Once, before all else. */
int sy_budget_start(void);

/* Puts a magazine with items into this CPU's shard, whatever the budget, and one without into the
 * store. `surplus`: to be reaped. */
void sy_budget_put(const sy_client *client, sy_magazine *magazine, bool surplus);

/* Puts a magazine of items into this CPU's shard; false if that holds enough already. If other CPUs
 * take them from there, items are turned round, so that they are given out in the order in which
 * they were freed: the oldest first, whose lines this CPU has done with. */
bool sy_budget_deposit(sy_client *client, sy_magazine *magazine);

/* Of a client that flushes in bursts: what is flushed along with a magazine that was turned away, a
 * chain. */
sy_magazine *sy_budget_burst(sy_client *client);

/* A magazine of items: from this CPU's shard, else from any other; NULL if there is none. *remote
 * tells whether another CPU filled it. */
sy_magazine *sy_budget_withdraw(sy_client *client, bool *remote);

/* All magazines of the client, a chain. */
sy_magazine *sy_budget_take_all(sy_client *client);

/* The same, but `most` magazines at most. */
sy_magazine *sy_budget_take(sy_client *client, unsigned most);

/*
 * What was in a shard all the time since this was last called is more than the client works with:
 * it is to be reaped (the working set of Bonwick and Adams, "Magazines and Vmem", section 3.6),
 * which sy_budget_reap does, a chain of `most` magazines at most; fewer: there is no more. Budgets
 * shrink by as much. `forget`: what was turned away until now is not regretted any more.
 */
void sy_budget_begin_reap(sy_client *client, bool forget);
sy_magazine *sy_budget_reap(sy_client *client, unsigned most);

/* Forgets budgets and counts, for the next client with the number. */
void sy_budget_reset(const sy_client *client);

#endif
