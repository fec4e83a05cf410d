/*
 * client.h: the interface of the magazine layer.
 *
 * A client (a cache, for example) gives out words and takes them back. A word may be an address of
 * an object or an id; every value is allowed, 0 too. The client's `refill` gets words from the
 * layer below, its `flush` puts words back. In between this layer keeps words in magazines, so that
 * refill and flush are called once for each magazine, not for each word. The layer never looks at
 * the memory behind a word.
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
 * The inline fast path (slabyard/loaded.h) works on `top, base, limit` of the loaded slot. It calls
 * this layer when a magazine has run empty or full, on first use, and whenever a direction is shut.
 *
 * Invariants: a loaded slot is written only by its own thread or, while that thread is parked or
 * has ended, by the thread that holds the lock of the thread list. No callback runs under a lock of
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

#include "debug/callback.h"
#include "magazine/kind.h"
#include "os/platform.h"
#include "os/start.h"

enum {
    /* Numbers of clients. Each costs 64 bytes of address space a thread, and 64 in each shard of
     * the depots. */
    SY_CLIENTS_MAX = SY_OS_SERVICES & SY_OS_FREE_ADDRESSES ? 16384 : 4096,
    /*
     * No client has a number below this: the loaded slots of these numbers stay shut. A fast path
     * that reads the client's number from a table (sy_free) finds 0 where there is no client.
     */
    SY_CLIENT_FIRST = 1,
    /* Numbers below this are given out on demand only (the heap's classes), to fit in a byte. */
    SY_CLIENT_DEMANDED = 128,
    /* Numbers that size classes of separate heaps may have together: the others are left for
     * caches and arenas, however many heaps there are. */
    SY_CLIENTS_OF_HEAPS = SY_CLIENTS_MAX / 4 * 3,
};

typedef struct sy_client_config {
    const sy_client_kind *kind; /* NULL: plain */
    /* Writes up to `count` words to `items`. The last one is given out first. Returns their number;
     * 0 with errno when there are none. */
    size_t (*refill)(void *owner, uintptr_t *items, size_t count);
    /*
     * Takes `count` words back. *held is how many of them sy_client_held still counts. The owner
     * lowers it under the lock under which it takes the words. So a thread that holds that lock and
     * the lock of the clients counts each word exactly once. NULL: they are no longer counted.
     */
    void (*flush)(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held);
    void *owner;
    size_t item_bytes;     /* bytes of memory that one waiting item occupies: for the bounds */
    size_t magazine_items; /* most items in a magazine; 0: no magazines at all, the fast path is
                              shut */
    size_t loaded_items;   /* most items in the magazines of all threads together; 0: no such bound.
                          * With a bound, only items of ended threads wait in the depot */
    /* Whether the magazines of all threads together may hold `items` items; NULL: any number.
     * Called before a thread without magazines gets its first; false: it gets none for now. */
    bool (*admits)(void *owner, size_t items);
    bool prefetches;    /* items are addresses of memory that is written next: worth prefetching */
    bool place_matters; /* where small items lie matters more than the time of a free: scattered
                         * ones go to the slabs, not to the depot (budget.h) */
    bool calls_back;    /* flush may call the program's functions, so idle slots are not flushed in
                         * a turn, where the program does not expect such a call */
    bool returns;       /* nothing is allocated: freed items are flushed, and wait in the depot only
                         * if a parked thread had them. The flush calls no function of the program,
                         * and the client is never closed */
    bool flushes_many;  /* magazines that the depot refuses are flushed many at a time, so that few
                         * frees take long */
    unsigned number;    /* SY_CLIENT_FIRST up to SY_CLIENT_DEMANDED - 1, or 0: any */
    bool of_heap;       /* a size class of a separate heap */
    bool profiled;      /* items are addresses of objects, which a profile may sample: while one is
                         * taken, the kind is `profiled`. For the kinds `plain` and `seen` */
} sy_client_config;

typedef struct sy_magazine sy_magazine;

/* Only rare slow paths write this struct; the counters of exchanges are in the depot's shards. */
typedef struct sy_client {
    sy_client_config config;
    _Atomic(const sy_client_kind *) kind; /* config.kind, or `profiled` (profiled.h) */
    unsigned number;
    _Atomic uint32_t generation; /* a thread that sees it changed flushes its magazines */
    _Atomic uint32_t pins;       /* changed under the lock of the thread list; close waits for 0 */
    bool suspended;              /* guarded by the same: it cannot be pinned */
    bool closing;                /* guarded by the same: its end has begun */
    bool awaited;                /* guarded by the same: a thread waits until `pins` is 0 */
    _Atomic uint32_t holders;    /* threads whose slot may hold items of it (capacity not 0) */
    _Atomic uint64_t allowed;    /* of loaded_items: what threads may hold at present */
    void (*end)(void *arg);      /* guarded by the same: not NULL if its end was put off; the */
    void *end_arg;               /* thread that drops the last pin calls end(end_arg) */
    struct sy_client
        *next_held;        /* next client that the thread pins until it has left its slow paths */
    struct sy_move *moves; /* under way; guarded by the lock of the thread list */
} sy_client;

/* Magazines that a thread has taken from slots or from the depot to flush them. */
typedef struct sy_move {
    sy_magazine *chain;   /* magazines not flushed yet */
    const void *thread;   /* identifies the thread that makes the move */
    struct sy_move *next; /* next move of the client */
} sy_move;

typedef struct sy_client_counts {
    uint64_t depot_hits, depot_misses; /* a thread wanted a full magazine and got one, or not */
    uint64_t depot_steals;             /* hits in another CPU's shard */
} sy_client_counts;

static inline const sy_client_kind *sy_client_kind_of(const sy_client *client) {
    return atomic_load_explicit(&client->kind, memory_order_relaxed);
}

/* Opens a client. 0, or -1 with ENOSPC (no number free) or EBUSY (that number is taken). */
int sy_client_open(sy_client *client, const sy_client_config *config);

/*
 * Closes the client: flushes every word in its magazines. No thread may use the client any more.
 * Waits for trims that have pinned it. The client keeps its number until sy_client_give_number.
 */
void sy_client_close(sy_client *client);

/* In the child of a fork: undoes the opening of a client that no thread has used. */
void sy_client_forget(const sy_client *client);

/* Lets another client have the number of a closed one: no table refers to the number any more. */
void sy_client_give_number(const sy_client *client);

/*
 * Keeps trims and flushes of other threads away from a client that no thread uses, and waits for
 * those that are at work on it. Afterwards sy_client_held is exact. Then close the client or resume
 * it.
 *
 * False: this thread is in a function of the program that the layers above have called, and would
 * wait for itself or for a thread that waits for it. Then the last thread that leaves the client
 * calls `end(arg)`, unless `end` is NULL, with no lock held. If the client's end has begun already,
 * nothing is done.
 */
bool sy_client_suspend(sy_client *client, void (*end)(void *arg), void *arg);
void sy_client_resume(sy_client *client);

/*
 * Marks a slow path of the client that may call functions of the program. The client does not end
 * before the thread has left the slow path. Slow paths nest.
 *
 * SY_SLOW_PATH(client) begins a slow path that ends with the scope. sy_turn comes after the scope
 * and carries out the ends that were put off. If a constructor throws, sy_turn is not reached. So a
 * slow path that constructs is SY_CONSTRUCTING_PATH(path, client), and sets `path.done = true`
 * before it returns. If it is unwound instead, its cleanup carries out these ends.
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

/* At the end of a slow path: leaves the clients whose end this thread put off within it. Returns
 * whether others are left, of slow paths further up this thread's stack. */
bool sy_clients_leave(void);

/*
 * The thread's second record, with slots of its own for all clients. While the thread runs with it,
 * other threads may take what its first one holds, as from an idle thread.
 *
 * Slots of the clients in `placed` (a bit for each number) get no magazines in the second record:
 * each of their slow paths finds the slot shut. The layer above may point `top` and `base` of such
 * a slot to words of its own, which the inline code then gives out; the magazine layer leaves them
 * alone. `limit` stays NULL, so that no freed word comes to them.
 *
 * sy_second_begin makes this thread run with the second record; 0, or -1: with EBUSY in a function
 * of the program that this layer calls, with ENOMEM if there is no record. When the thread ends,
 * `end` is called first, in which it may still allocate and free. sy_second_end makes it run with
 * the first one again; false: it is in a function of the program, as above.
 */
int sy_second_begin(const uint64_t placed[2], void (*end)(void));
bool sy_second_end(void);

/* Ends sy_thread_idle of a thread that runs with its second record. */
void sy_second_resume(void);

/* Flushes what this thread holds of the client, in either record. */
void sy_client_flush_own(sy_client *client);

/* Bytes from sy_abi_1 to a thread's loaded slot for the client. */
size_t sy_client_offset(const sy_client *client);

/*
 * An allocation for which the loaded magazine has no word, in two parts:
 *
 *     sy_client_alloc_second   the next window of the loaded magazine, or the thread's other
 *                              magazine. False if they have no word. errno is unchanged.
 *     sy_client_alloc_rest     only after a call that found no word in the thread's magazines: the
 *                              one above, or sy_client_alloc_loaded. A word from the depot or from
 *                              refill. False with errno when there is none.
 */
static inline bool sy_client_alloc_second(sy_client *client, uintptr_t *item) {
    return sy_client_kind_of(client)->alloc_second(client, item);
}
static inline bool sy_client_alloc_rest(sy_client *client, uintptr_t *item) {
    return sy_client_kind_of(client)->alloc_rest(client, item);
}

/* Both parts. */
static inline bool sy_client_alloc(sy_client *client, uintptr_t *item) {
    return sy_client_alloc_second(client, item) || sy_client_alloc_rest(client, item);
}

/* A free for which the loaded magazine has no room. Keeps errno unless flush changes it. */
static inline void sy_client_free(sy_client *client, uintptr_t item) {
    sy_client_kind_of(client)->free(client, item);
}

/* The most frequent case of sy_client_free, to be tried first: the thread's second magazine has
 * room. errno is unchanged. */
static inline sy_freed sy_client_free_second(sy_client *client, uintptr_t item) {
    return sy_client_kind_of(client)->free_second(client, item);
}

/* Whether this thread freed `item` last and still has it: then freeing it now is a double free, as
 * sy_client_free_second says too. */
bool sy_client_freed_last(const sy_client *client, uintptr_t item);

/*
 * For guarded clients, called before the other functions: whether this allocation is the one in
 * `guard_every` (debug/guard.h) that is to be guarded. sample.h says how allocations are counted.
 */
bool sy_client_due(sy_client *client);

/* Whether a profile may sample what is allocated from the client at present, or threads count. */
static inline bool sy_client_is_profiled(const sy_client *client) {
    return sy_client_kind_of(client) == &sy_client_profiled;
}

/* For profiled clients, called after an item was allocated for which the loaded magazine was shut:
 * whether the profile samples it, and by which chance. profiled.h says how allocations are
 * counted. */
bool sy_client_samples(sy_client *client, double *chance);

/* Called when a profile or a count has begun or ended (sy_profile_watches): from now on the clients
 * with `profiled` are of the kind `profiled`, or not. */
void sy_clients_profile(void);

/* Flushes this thread's loaded items of one-way clients: the next word comes from refill. */
void sy_thread_put_back(void);

/* Takes up to `count` items from this thread's magazines, and none from elsewhere; returns how
 * many. */
static inline size_t sy_client_alloc_loaded(sy_client *client, uintptr_t *items, size_t count) {
    return sy_client_kind_of(client)->alloc_loaded(client, items, count);
}

/* Makes this thread's record and its loaded slot for the client ready, as far as memory allows. */
void sy_client_prepare(sy_client *client);

/* Fills this thread's magazines until they hold `count` items, which stay there whatever their age.
 * Returns how many they hold; 0 if `count` exceeds two magazines (one, for a one-way client). */
static inline size_t sy_client_reserve(sy_client *client, size_t count) {
    return sy_client_kind_of(client)->reserve(client, count);
}

/* Flushes this thread's magazines, those of parked threads, and the depot (where those of ended
 * threads are). Asks running threads to flush theirs at their next slow path. */
void sy_client_drain(sy_client *client);

/*
 * A thread that drains clients calls sy_drained_begin before. sy_drained_still says that there is
 * nothing new to be drained: no thread has put items into the depot or the slabs since then, or has
 * become idle, and this thread has opened no slot. `watch` 0: that is not known.
 */
uint32_t sy_drained_begin(void);
bool sy_drained_still(uint32_t watch);

/* Odd while a thread watches. Each such event calls sy_drained_end, which makes it even. */
extern SY_HIDDEN _Atomic uint32_t sy_drained_watch;
void sy_drained_end_slow(void);

static inline void sy_drained_end(void) {
    if (SY_UNLIKELY(atomic_load_explicit(&sy_drained_watch, memory_order_relaxed) & 1))
        sy_drained_end_slow();
}

/* After an allocation that was refused, for a client that this thread has drained: takes the
 * magazines of this thread's slot, if they have no items, so that the slot does not count as
 * opened. */
void sy_client_close_slot(sy_client *client);

/* Drains a client as sy_client_drain does, in steps of bounded time; `first` for the first step.
 * False: nothing was left to do. */
bool sy_client_drain_step(sy_client *client, bool first);

/*
 * Flushes, in steps too, the items in the depot that the client has not used since the last first
 * step and, if `idle`, the items in the slots of parked threads.
 */
bool sy_client_reap_step(sy_client *client, bool first, bool idle);

/* Flushes slots of this thread that hold at least `least` bytes of items, and have had no exchange
 * since it last looked at them, a few clients in one step; false: it has looked at all of them. */
bool sy_thread_reap_step(size_t least);

/* Counts the items in the depot, with those on their way from there to the owner, and the items in
 * loaded slots. Exact while no thread allocates or frees, even if passes and trims run meanwhile.
 * The lock of the clients is held. */
void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded);

/* Events since the client was opened. */
sy_client_counts sy_client_count(const sy_client *client);

/* Whether `item` is in a magazine of the client: exact while no magazine of it changes hands. The
 * lock of the clients is held. */
bool sy_client_holds(sy_client *client, uintptr_t item);

/* The thread list's lock. While it is held, no thread's record is taken or given back, and no
 * client is opened or closed. */
void sy_clients_lock(void);
void sy_clients_unlock(void);

/* The next client after number `after`, pinned: it is not closed before sy_client_unpin. NULL:
 * none. */
sy_client *sy_client_pin_next(unsigned after);
/* Pins one that is open; false: it is suspended. */
bool sy_client_pin(sy_client *client);
void sy_client_unpin(sy_client *client);
/* The next client, not pinned, for a caller that holds the thread list's lock (around fork). */
sy_client *sy_client_next_locked(unsigned after);

/* Threads that have loaded slots at present. */
unsigned sy_thread_count(void);

/* Gives the layer's own unused memory back; returns bytes. */
size_t sy_magazine_trim(void);
/* Gives unused memory back in steps, from *at on (0 first); false: all is done. `aged`: only memory
 * that has been unused since the last such step looked at it. */
bool sy_magazine_trim_step(unsigned *at, bool aged, size_t *bytes);
/* Bytes of magazines and thread records that hold memory. */
size_t sy_magazine_bytes(void);

/* The start of the layer, before any other call, and its outermost lock, the thread list's. In the
 * child of a fork it moves the other threads' loaded items to the depot. */
extern SY_HIDDEN const sy_part sy_threads_part;
/* Around a fork: whether the thread list's lock was acquired. If not, do not walk the clients. */
bool sy_threads_are_held(void);
/* The layer's innermost lock, the store's. */
extern SY_HIDDEN const sy_part sy_store_part;

#endif
