/*
 * client.h: the doors of the magazine layer.
 *
 * A client has words to give and to take (addresses of objects, ids: any word, 0 included) and says
 * how: `refill` gets some from below, `flush` puts some back. The layer keeps words in magazines in
 * between, so that refill and flush happen once for a magazine-full. It knows words, not memory.
 *
 *        alloc                        free
 *          |                           ^            a thread's loaded slot for the client:
 *     [ loaded ][ previous ]     [ loaded ][ previous ]   two magazines; previous is full or empty
 *          ^         ^                 |         |        (Bonwick and Adams, "Magazines and Vmem",
 *          |         |                 v         v         USENIX 2001, section 3.1)
 *        depot: a stack of magazines a shard, lock-free
 *          ^                                     |
 *        refill  (client)                      flush  (client)
 *
 * The inline fast path (slabyard/loaded.h) works on `top, base, limit` of the
 * loaded slot and comes here when a magazine has run empty or full, on first use, and whenever a
 * direction is shut.
 *
 * What always holds: a loaded slot is written by its own thread only, or, while that thread is
 * parked or gone, by whoever holds the lock of the thread list. No callback runs under a lock of
 * this layer.
 *
 * Above: cache/, vmem's quantum caches. Below: os/.
 */
#ifndef SY_MAGAZINE_CLIENT_H
#define SY_MAGAZINE_CLIENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"
#include "watch/callback.h"

enum {
    /* Numbers of clients. Each costs 64 bytes of address space a thread. */
    SY_CLIENTS_MAX = 16384,
    /*
     * Numbers below this are never a client's: their loaded slots are shut for ever. A fast path
     * that finds its client's number in a table (sy_free) has 0 there wherever there is no client.
     */
    SY_CLIENT_FIRST = 1,
    /* Numbers below this are given out on demand only (the heap's classes), to fit in a byte. */
    SY_CLIENT_DEMANDED = 128,
};

typedef struct sy_client_config {
    /* Gets up to `count` words into `items`, the one to be given out first at the end; returns how
     * many, 0 with errno when there are none. */
    size_t (*refill)(void *owner, uintptr_t *items, size_t count);
    /*
     * Takes `count` words back. *held is how many of them sy_client_held still counts: the owner
     * lowers it under the lock under which it takes the words, so that whoever holds that lock and
     * the clients' finds each word here or there. NULL: they are not counted any more.
     */
    void (*flush)(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held);
    void *owner;
    size_t item_bytes;     /* what one waiting item holds up: for the bounds below */
    size_t magazine_items; /* most items in a magazine; 0: no magazines at all, the fast path is
                              shut */
    size_t loaded_items; /* most items in the magazines of all threads together, and then none wait
                          * in the depot but those of ended threads; 0: no such bound */
    /* Whether the magazines of all threads together may hold so many items; NULL: any number. Asked
     * when a thread that holds none is about to; false: it goes without, for now. */
    bool (*admits)(void *owner, size_t items);
    bool addresses;  /* items are addresses of memory that is written next: worth prefetching */
    bool calls_back; /* flush may call functions of the program's: not where it does not expect that
                      */
    bool one_way; /* what is freed is flushed, not given out again: refill may give one thread items
                   * of another kind than another, or than before sy_thread_put_back */
    bool bursts;  /* what the depot turns away is flushed many magazines at a time: then few frees
                  * take long */
    bool sees_frees; /* each free is a call, while allocations are inline as ever, */
    bool guarded;    /* but for those that are to be guarded: then sy_client_due. Sees frees too */
    unsigned number; /* SY_CLIENT_FIRST up to SY_CLIENT_DEMANDED - 1, or 0: any */
} sy_client_config;

typedef struct sy_magazine sy_magazine;

/* Written by slow paths that are rare; the counters of exchanges are in the shards. */
typedef struct sy_client {
    sy_client_config config;
    unsigned number;
    _Atomic uint32_t generation; /* threads that see it changed flush their magazines */
    _Atomic uint32_t pins;       /* changed under the lock of the thread list; close waits for 0 */
    bool suspended;              /* guarded by the same: not to be pinned */
    bool closing;                /* guarded by the same: its end has begun */
    bool awaited;                /* guarded by the same: somebody waits for the pins to go */
    _Atomic uint32_t holders;    /* threads that have magazines of it, or may */
    _Atomic uint64_t granted;    /* of loaded_items: what threads may hold at present */
    void (*end)(void *arg);      /* guarded by the same: its end was put off; who unpins it last */
    void *end_arg;               /* calls this */
    struct sy_client
        *next_held;        /* of those that a thread has pinned until it has left their doors */
    struct sy_move *moves; /* under way; guarded by the lock of the thread list */
} sy_client;

/* Magazines that a thread has taken from slots or from the depot to flush them. */
typedef struct sy_move {
    sy_magazine *chain;   /* those not flushed yet */
    const void *thread;   /* whose move it is */
    struct sy_move *next; /* of the client's */
} sy_move;

typedef struct sy_client_counts {
    uint64_t depot_hits, depot_misses; /* a full magazine was wanted and found, or not */
    uint64_t depot_steals;             /* of the hits: in another CPU's shard */
} sy_client_counts;

/* Opens a client. 0, or -1 with ENOMEM (no number free) or EBUSY (that number is taken). */
int sy_client_open(sy_client *client, const sy_client_config *config);

/*
 * Closes it: every word in its magazines is flushed. Nobody uses the client or will; trims that
 * have pinned it are waited for. Its number stays until the next.
 */
void sy_client_close(sy_client *client);

/* The number of a closed client may be given to another: nothing is known by it any more. */
void sy_client_give_number(const sy_client *client);

/*
 * Nobody uses the client: from now on trims and flushes of other threads pass it by, and those that
 * were at it have finished, so that what it holds is exact. Then close it or resume.
 *
 * False: this thread would wait for itself, or for a thread that may wait for it, since it is in a
 * function of the program's that the layers above have called. Then `end(arg)` is called, unless it
 * is NULL, by whichever thread is the last to leave the client, with no lock held; or nothing is
 * done, if the client's end has begun already.
 */
bool sy_client_suspend(sy_client *client, void (*end)(void *arg), void *arg);
void sy_client_resume(sy_client *client);

/*
 * A slow path of the client that may call functions of the program's. The client does not end until
 * the slow path has been left. Slow paths nest.
 *
 * SY_SLOW_PATH(client) begins one that ends with the scope. sy_turn comes after the scope,
 * and carries out the ends that were put off. A constructor that throws leaves no turn to come. So
 * a slow path that constructs is SY_CONSTRUCTING_PATH(path, client), with `path.done = true` before
 * it returns. If it is unwound, its cleanup carries out these ends.
 */
typedef struct sy_slow_path {
    unsigned outer; /* slow paths that this thread was in already */
    bool done;
} sy_slow_path;

#define SY_SLOW_PATH(client) \
    sy_slow_path slow_path SY_CLEANUP(sy_slow_path_end) = {sy_slow_path_begin(client), true}
#define SY_CONSTRUCTING_PATH(path, client) \
    sy_slow_path path SY_CLEANUP(sy_slow_path_end) = {sy_slow_path_begin(client), false}
unsigned sy_slow_path_begin(sy_client *client);
void sy_slow_path_end(const sy_slow_path *path);

/* At the end of a slow path: leaves the clients whose end this thread put off within it. Whether
 * there are others, of doors further up. */
bool sy_clients_leave(void);

/* Bytes from sy_abi_1 to a thread's loaded slot for the client. */
size_t sy_client_offset(const sy_client *client);

/* What the fast path calls when it has no word to give: one from a magazine, the depot or refill.
 * False with errno when there is none. */
bool sy_client_alloc(sy_client *client, uintptr_t *item);

/* What the fast path calls when it has no room for a word. errno is kept unless flush changes it.
 */
void sy_client_free(sy_client *client, uintptr_t item);

/*
 * The commonest parts of these two, to be tried first: the next window, or the other of the two
 * magazines, if that has a word or has room. False if it takes more. errno is untouched.
 */
bool sy_client_alloc_second(sy_client *client, uintptr_t *item);
bool sy_client_free_second(sy_client *client, uintptr_t item);

/* Whether `item` is what this thread freed last and still has: a free of it now is its second. */
bool sy_client_freed_last(const sy_client *client, uintptr_t item);

/*
 * Of guarded clients, before the others: whether the allocation that came here is the one in
 * `guard_every` (watch/guard.h) that is to be guarded. sample.h says how allocations are counted.
 */
bool sy_client_due(sy_client *client);

/* Flushes what this thread has loaded of one-way clients: the next word comes from refill. */
void sy_thread_put_back(void);

/* Takes what this thread has loaded, up to `count`, without going further; returns how many. */
size_t sy_client_alloc_loaded(sy_client *client, uintptr_t *items, size_t count);

/* Brings what this thread needs of this layer to allocate from the client, as far as it can be had.
 */
void sy_client_prepare(sy_client *client);

/* Gets items into this thread's magazines until there are `count`, which stay there whatever their
 * age; how many there are. More than two magazines hold, or one if nothing comes back: 0. */
size_t sy_client_reserve(sy_client *client, size_t count);

/* Flushes what can be reached: this thread's magazines, those of parked and ended threads, the
 * depot. Asks running threads to flush theirs at their next exchange. */
void sy_client_drain(sy_client *client);

/* The same in steps that are bounded in time, the first one said to be so; false: nothing was left
 * to do. */
bool sy_client_drain_step(sy_client *client, bool first);

/*
 * Flushes what the client has not worked with since this was begun last, in steps likewise: in the
 * depot and, if `idle`, in the slots of threads that are parked.
 */
bool sy_client_reap_step(sy_client *client, bool first, bool idle);

/* Flushes slots of this thread that have had no exchange since it looked before, those of a few
 * clients a step; false: it has looked at all. */
bool sy_thread_reap_step(void);

/* Items in the depot, those on their way from there to the owner included, and in loaded slots:
 * exact while no thread allocates or frees, whatever passes and trims do meanwhile. The lock of the
 * clients is held. */
void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded);

/* Events since the client was opened. */
sy_client_counts sy_client_count(const sy_client *client);

/* Whether `item` is in a magazine of the client: exact while no magazine of it changes hands. The
 * lock of the clients is held. */
bool sy_client_holds(sy_client *client, uintptr_t item);

/* The thread list's lock: no thread begins or ends, and no client is opened or closed. */
void sy_clients_lock(void);
void sy_clients_unlock(void);

/* The next client after number `after`, pinned: it is not closed before sy_client_unpin. NULL:
 * none. */
sy_client *sy_client_pin_next(unsigned after);
/* Pins one that is open; false: it is suspended. */
bool sy_client_pin(sy_client *client);
void sy_client_unpin(sy_client *client);
/* The same for the caller that holds the thread list's lock, around fork: not pinned. */
sy_client *sy_client_next_locked(unsigned after);

/* Threads that have loaded slots at present. */
unsigned sy_thread_count(void);

/* Gives the layer's own unused memory back; returns bytes. */
size_t sy_magazine_trim(void);
/* The same in steps: from *at on, 0 first; false: all is done. `aged`: what was unused since such a
 * step looked before. */
bool sy_magazine_trim_step(unsigned *at, bool aged, size_t *bytes);
/* Bytes of magazines and thread records that hold memory. */
size_t sy_magazine_bytes(void);

/* The start of the layer, before any other call, and its outermost lock, that of the thread list.
 * In the child of a fork what other threads had loaded is kept. */
extern SY_HIDDEN const sy_part sy_threads_part;
/* Around a fork, whether that lock was had: else the clients may not be walked. */
bool sy_threads_are_held(void);
/* The innermost lock. */
extern SY_HIDDEN const sy_part sy_store_part;

#endif
