/*
 * thread.h: the record of each thread, with the thread's loaded slots.
 *
 *     group:  | record 0 | record 1 | ... | slots of 0: 1 MiB | slots of 1 | ...
 *                                         ^ sy_abi_1 of thread 0 while it runs: 64 bytes a client,
 *                                           lazily touched
 *
 * If a thread has no record yet, is parked, or has ended, its sy_abi_1 points to shut slots that
 * all such threads share. Its next operation takes the slow path, which finds or makes the record
 * (none after the thread's end).
 *
 * A group has as many records as there were before it, from 1 to 16. Groups are never unmapped: a
 * new thread gets the record of an ended one. A trim discards the memory of the slots whose records
 * no thread has.
 *
 * A thread may have a *second* record (sy_second_begin, client.h), and runs with one of the two at
 * a time. The other one is parked.
 *
 * Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_THREAD_H
#define SY_MAGAZINE_THREAD_H

#include <slabyard/loaded.h>

#include "magazine/client.h"
#include "magazine/countdown.h"
#include "magazine/store.h"
#include "os/invariant.h"

/* A loaded slot as this layer sees it: slabyard/loaded.h's sy_loaded_slot. Its words are written by
 * the owner (some by sleepers.c too), and may be read by others (statistics, fork). So other
 * threads access them atomically. */
typedef struct sy_slot {
    sy_magazine *loaded;   /* the magazine that top, base and limit point into, or NULL */
    sy_magazine *previous; /* full or empty (of any count), or NULL */
    uint8_t capacity;      /* items that `loaded` may hold at present */
    uint8_t mark;          /* items that it held when they were last counted (sample.h) */
    uint16_t seen;         /* `exchanges` when the thread last looked for idle slots */
    uint32_t generation;   /* the client's, when last looked at */
    uint32_t exchanges;    /* since first use */
    int32_t countdown;     /* countdown.h; kept when the magazines are taken */
    alignas(32) uintptr_t *top;
    uintptr_t *base, *limit;
    uint32_t reserved; /* not 0: the program reserved its items, so they do not count as idle */
    uint16_t gone; /* of the loaded magazine's places, from the first on: sleepers.c has taken their
                        * items. sy_slot_settle moves the others there */
    uint16_t noted; /* sleepers.c's: where `top` was at the last look */
} sy_slot;

_Static_assert(sizeof(sy_slot) == sizeof(sy_loaded_slot), "one layout");
_Static_assert(offsetof(sy_slot, top) == offsetof(sy_loaded_slot, top), "one layout");
_Static_assert(SY_MAGAZINE_ITEMS <= UINT8_MAX, "capacity and mark count them");
_Static_assert(offsetof(sy_slot, countdown) == SY_COUNTDOWN_AT, "countdown.h finds it");
_Static_assert(offsetof(sy_slot, top) == 32, "hot words where objects do not begin");

enum { SY_ONE_WAY_NOTED = 14 }; /* clients of which a thread knows that it has items of them */
enum { SY_EMPTIES = 6 };        /* empty magazines that a thread keeps, to spare the store's lock */

typedef enum sy_thread_state {
    SY_THREAD_FREE,    /* no thread has it; its slots hold nothing */
    SY_THREAD_RUNNING, /* its thread alone may touch its slots */
    SY_THREAD_PARKED,  /* its thread is idle: a thread with the list's lock may claim its slots */
    SY_THREAD_CLAIMED, /* another thread is taking magazines out of its slots, under that lock */
} sy_thread_state;

typedef struct sy_thread {
    alignas(64) sy_slot *slots;    /* SY_CLIENTS_MAX of them; never changes */
    struct sy_thread *next;        /* all records, newest first; never changes */
    struct sy_thread *next_free;   /* guarded by the list's lock */
    _Atomic uint32_t state;        /* changed under the list's lock, but for the owner's steps
                                    * from RUNNING to PARKED and back */
    _Atomic uint32_t slots_end;    /* slots from here on were never used */
    uint32_t number;               /* sy_os_thread, of the thread that has it, for tools */
    struct sy_thread *first;       /* itself; of a second record, the thread's first one */
    _Atomic uint64_t loaded_bytes; /* item bytes that the capacities of its slots allow; others
                                    * subtract, when they close a client */
    unsigned empties;
    _Atomic uint32_t inside;  /* nested scopes of SY_INSIDE; changed by the owner */
    _Atomic uint32_t held;    /* sy_thread_hold */
    _Atomic uint64_t reading; /* of its read guards (readers.c); 0: it is in none. Of a thread, the
                               * first record has it */
    uint64_t placed[2];     /* a bit for each client below 128 whose slot here gets no magazines */
    unsigned next_idle;     /* slot that it looks at next for being idle */
    unsigned one_way_count; /* one-way clients refilled since the last put-back. SY_ONE_WAY_NOTED +
                             * 1: the list overflowed; treat every one-way client as refilled */
    uint16_t one_way[SY_ONE_WAY_NOTED];
    sy_magazine *empty[SY_EMPTIES];
} sy_thread;

/*
 * Marks the thread as at work on its slots until the end of the scope, however the scope is left.
 * Each slow path that reads or writes a slot of its thread without the list's lock does so in such
 * a scope. Meanwhile the thread does not flush its idle slots, and no other thread reaches into
 * them. NULL: the thread has none.
 */
#define SY_INSIDE(thread) \
    sy_thread *inside SY_CLEANUP(sy_thread_end_inside) = sy_thread_begin_inside(thread)

/* Waits until no other thread holds the record. */
void sy_thread_await(sy_thread *thread);

static inline sy_thread *sy_thread_begin_inside(sy_thread *thread) {
    if (!thread) return NULL;
    uint32_t outer = atomic_load_explicit(&thread->inside, memory_order_relaxed);
    atomic_store_explicit(&thread->inside, outer + 1, memory_order_relaxed);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the store before the load: see sy_thread_hold */
    if (SY_UNLIKELY(!outer && atomic_load_explicit(&thread->held, memory_order_acquire)))
        sy_thread_await(thread);
    return thread;
}

static inline void sy_thread_end_inside(sy_thread *const *thread) {
    if (!*thread) return;
    uint32_t outer = atomic_load_explicit(&(*thread)->inside, memory_order_relaxed) - 1;
    atomic_store_explicit(&(*thread)->inside, outer, memory_order_release);
}

static inline bool sy_thread_is_inside(const sy_thread *thread) {
    return atomic_load_explicit(&thread->inside, memory_order_relaxed) != 0;
}

/*
 * Holds a record that another thread runs with: until sy_thread_let_go its thread begins no scope
 * of SY_INSIDE. False: the thread is in one, or the system has no barrier (sy_os_barrier_threads);
 * then the record is not held. The list's lock is held from before to after.
 */
bool sy_thread_hold(sy_thread *thread);
void sy_thread_let_go(sy_thread *thread);

/* The record of this thread, which is running from now on. NULL if the thread has ended or there is
 * no memory for a record: then it does without magazines. */
sy_thread *sy_thread_self(void);

/* The record of this thread if it is running, else NULL. */
sy_thread *sy_thread_running(void);

/* This thread's record, running or parked; NULL if it has none. If it is parked, other threads may
 * claim its slots. */
extern SY_HIDDEN SY_TLS sy_thread *sy_thread_own;
static inline sy_thread *sy_thread_known(void) { return sy_thread_own; }

/* Whether it is a record of this thread: the one that it runs with, or the other one. */
static inline bool sy_thread_is_own(const sy_thread *thread) {
    return sy_thread_own && thread->first == sy_thread_own->first;
}

/* Whether the record's slot of the client is placed: it gets no magazines, and what its `top` and
 * `base` point to is the matter of the layers above. */
enum { SY_PLACED_END = 128 };
static inline bool sy_thread_places(const sy_thread *thread, unsigned number) {
    return number < SY_PLACED_END && thread->placed[number / 64] >> number % 64 & 1;
}

/* Whether any thread has ever been parked. If not, no drain needs to look for one. */
bool sy_threads_park(void);

/* Claims the slots of a thread that is parked; false: it is not, or has just come back. The list's
 * lock is held until they are unclaimed, and the thread waits for it if it comes back meanwhile. */
bool sy_thread_claim(sy_thread *thread);
void sy_thread_unclaim(sy_thread *thread);

/* Its slot for a client number. */
static inline sy_slot *sy_thread_slot(sy_thread *thread, unsigned number) {
    return &thread->slots[number];
}

/* Slots that this thread has opened since its last sy_drained_begin (client.h). */
extern SY_HIDDEN SY_TLS unsigned sy_slots_opened;

/* If the thread has a second record, and is in no scope of SY_INSIDE, it runs with the other one
 * from now on. */
bool sy_second_exchange(void);

/* The list's lock: guards states, records that do not run, and the clients' numbers. */
void sy_threads_lock(void);
void sy_threads_unlock(void);

/* SY_HOLDS for this lock. */
#define SY_HOLDS_THREADS() SY_INVARIANT(sy_threads_are_guarded())
bool sy_threads_are_guarded(void);

/* Lock and unlock the list around a fork; start.h. */
void sy_threads_hold(void);
void sy_threads_drop(void);
/* The newest record; the lock is held. */
sy_thread *sy_threads_first(void);

/* This process is the child of a fork that ended other threads in their read guards (readers.h). */
extern SY_HIDDEN bool sy_threads_lost_guards;

/* An empty magazine, from the thread's few or the store; NULL with ENOMEM. */
sy_magazine *sy_thread_take_empty(sy_thread *thread);
void sy_thread_put_empty(sy_thread *thread, sy_magazine *magazine);

/* At a thread's end `flush` is called without the lock, and then `empty` with the lock held, to
 * empty its slots. Once, before all else. */
void sy_threads_start(void (*empty)(sy_thread *thread), void (*flush)(sy_thread *thread));

/* Bytes of records and slots that hold memory: what threads have touched. */
size_t sy_threads_bytes(void);

/* Gives the memory of unused records' slots back; returns bytes. Of one: 0 if there is none. */
size_t sy_threads_trim(void);
size_t sy_threads_trim_one(void);

/* In the child of a fork, where only this thread runs: ends the records of the other threads. A
 * magazine that such a thread was moving at the fork, at most one each, is lost to the child. The
 * lock is held. */
void sy_threads_orphan_others(void);

#endif
