/*
 * depot.h: where magazines with items wait, in shards.
 *
 * Each client has one stack of magazines a shard (a CPU, more or less). A stack is one 64-bit word,
 * the number of its top magazine and a tag; push and pop are one compare-exchange each (Treiber,
 * "Systems Programming: Coping with Parallelism", 1986, with the tag against reuse of a top).
 *
 *     word:  63                        20 19             0
 *            |           tag             |    number     |      number 0: the stack is empty
 *
 * The tag grows with every push and pop. Suppose that a thread has read the top in order to pop it,
 * and is then stopped for a while. Its exchange is wrong only if the same magazine is on top again
 * with the same tag: after a multiple of 2^44 operations on this one stack. A compare-exchange on a
 * contended line takes at least 5 ns. So this takes at least 24 hours in which threads only
 * exchange on that stack, and the stopped thread must continue within the time of that one
 * operation.
 *
 * Memory order. A pusher writes next and items_down of its magazine, and the items themselves,
 * before its releasing exchange; a popper acquires the word before it reads them. Every exchange is
 * a read-modify-write, so it continues the release sequence of the pushes before it. Therefore a
 * popper also sees what the pusher of each magazine further down wrote. A popper may read next from
 * a magazine that was meanwhile popped and pushed elsewhere. Headers are type-stable, so it reads a
 * wrong number, but its exchange then fails because the tag has changed.
 *
 * A thread that counts (sy_depot_items) may read items_down of a magazine that has gone to another
 * stack. It then reads the word again, which must have changed: items_down is released after the
 * exchange that took the magazine, so a thread that reads the new items_down sees the new word.
 *
 * A thread that looks through a stack without popping (sy_client_holds) may follow next to a
 * magazine of another stack, from which it has acquired nothing. A push therefore releases next, so
 * that such a thread sees the whole header of the magazine below.
 *
 * tests/models/depot.c has models of this. tests/models/mutants weakens each order, and shows which
 * model then fails, or why none does.
 *
 * Below: store.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_DEPOT_H
#define SY_MAGAZINE_DEPOT_H

#include <stdbool.h>

#include "magazine/store.h"

enum { SY_DEPOT_SHARDS_MAX = 16 };

typedef struct sy_depot_shard {
    alignas(64) _Atomic uint64_t top; /* number and tag */
    _Atomic uint64_t budget;          /* items that may wait here; 0: none set yet */
    _Atomic uint64_t refused;         /* items refused that have not yet raised the budget */
    _Atomic uint32_t exported;        /* the last magazine taken went to another CPU */
    _Atomic uint32_t surplus;         /* items that were not needed: to be reaped */
    _Atomic uint64_t low;             /* the fewest items here since reaping began last */
    /* Counted by threads whose shard this is, when they want a full magazine. */
    _Atomic uint64_t hits, misses, steals;
} sy_depot_shard;

enum { SY_DEPOT_TAG_SHIFT = SY_MAGAZINE_NUMBER_BITS };

/* Shards a client has: a power of two; fixed once magazine/ has started. */
extern unsigned sy_depot_shard_count;

/* 0, or -1 with ENOMEM. Called once, by sy_magazine_start. */
int sy_depot_start(unsigned cpus, unsigned clients);

/* The shards of a client: zeroed memory that costs nothing until it is written. */
sy_depot_shard *sy_depot_shards_of(unsigned client);

/* Puts a magazine with items on the stack. */
void sy_depot_push(sy_depot_shard *shard, sy_magazine *magazine);

/* Takes the top magazine, or NULL if there is none. */
sy_magazine *sy_depot_pop(sy_depot_shard *shard);

/* Items in the stack: exact while no thread pushes or pops, else as of a moment ago. */
uint64_t sy_depot_items(sy_depot_shard *shard);

#endif
