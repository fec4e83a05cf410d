/*
 * lock.h: the library's only kind of lock, with a rank, and the rules for locks at a fork.
 *
 * A thread takes locks in rising rank only (several of one rank only around fork, in a fixed
 * order); a debug build aborts on the first acquisition that breaks this. No system call that can
 * block on the kernel's memory management, and no callback of the user, runs while a lock is held.
 * The report lock is the exception: it is held while the report is written. (Page faults do happen
 * under locks: store.c with_header, chunk.c memset.)
 *
 * The word of a lock (Drepper, "Futexes Are Tricky", 2011, section 6, with the holder's number in
 * place of 1):
 *
 *       31       30    26 25            0
 *     | waited |  level  |    holder    |      0: free
 *
 *     holder   the number of the thread that holds it (sy_os_thread)
 *     waited   a thread may be asleep on the lock: a release has to wake one
 *     level    0: held for a piece of work. 1 and up: held for a fork, the second level for a fork
 *              in a handler of a signal that came within the first, and so on. INHERITED: the
 *              thread held it for a piece of work when it forked, and this is the child
 *
 * Around a fork the forking thread holds all locks (os/start.c), so that the child finds every
 * structure whole. Three things are different then:
 *   - The thread may acquire and release again the locks that it holds for the fork. Hooks of fork
 *     that run meanwhile can therefore allocate and free.
 *   - A handler of a signal may fork while its thread holds locks for the work that the signal has
 *     interrupted. These stay as they are: in the child the same thread goes on with that work.
 *   - Such a thread is burdened. It takes the other locks out of order: another thread may hold one
 *     of them and wait for a lock that this one holds. So it waits a limited time for a lock that
 *     is held for work, and then goes on without the lock. If an unburdened thread that forks has
 *     to wait, it gives way to a burdened one: it releases all its locks for the fork and begins
 *     again.
 */
#ifndef SY_OS_LOCK_H
#define SY_OS_LOCK_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/invariant.h"
#include "os/race.h"

/* The lock order of the whole library, outermost first. */
typedef enum sy_rank {
    SY_RANK_REPORT = 1, /* the report that is being written (report/) */
    SY_RANK_START,      /* one-time initialisation, and the heap's */
    SY_RANK_EPOCHS,     /* the list of epochs, and their views of caches (cache/) */
    SY_RANK_THREADS,    /* thread records, client numbers (magazine/) */
    SY_RANK_CACHE,      /* one cache's slabs and counts (cache/) */
    SY_RANK_MIXED,      /* mixed units (cache/) */
    SY_RANK_ARENAS,     /* the list of arenas (vmem/) */
    SY_RANK_ARENA,      /* one arena's segments (vmem/) */
    SY_RANK_MEMORIES,   /* the list of engine instances (chunk/) */
    SY_RANK_CHUNK,      /* one instance's chunks and their free units (chunk/) */
    SY_RANK_LARGE,      /* its large spans (chunk/) */
    SY_RANK_SIDE,       /* pools of descriptors and side bitmaps (chunk/) */
    SY_RANK_PASSED,     /* the table of objects that are blocks of the C library's (cache/) */
    SY_RANK_STORE,      /* unused magazines (magazine/) */
    SY_RANK_POOLS,      /* the list of pools that check (pool/) */
    SY_RANK_GUARD,      /* the slots of guarded objects (debug/) */
    SY_RANK_PROFILE,    /* sampled objects (debug/) */
    SY_RANK_FAILURES,   /* what is made to fail (debug/) */
    SY_RANK_OPTIONS,    /* what the options say (debug/) */
    SY_RANK_TAGS,       /* names of tags (debug/) */
    SY_RANK_TOOLS,      /* around a tool's own lock (debug/) */
    SY_RANK_LAST = SY_RANK_TOOLS,
} sy_rank;

typedef struct sy_lock {
    _Atomic uint32_t word;
    uint32_t rank;
} sy_lock;

#define SY_LOCK_INIT(rank_) \
    { 0, rank_ }

/* Each thread has one. */
typedef struct sy_lock_holder {
    uint32_t number; /* 0: not known yet */
    uint32_t held;   /* locks that it holds for work, is about to take, or has just released */
} sy_lock_holder;

extern SY_HIDDEN SY_TLS sy_lock_holder sy_lock_self;

void sy_lock_acquire_slow(sy_lock *lock);
void sy_lock_release_slow(sy_lock *lock);
/* Debug builds: abort if `lock` may not be taken now; note that it is held, or no longer. */
void sy_lock_note_acquire(const sy_lock *lock);
void sy_lock_note_release(const sy_lock *lock);

static inline void sy_lock_init(sy_lock *lock, sy_rank rank) {
    atomic_init(&lock->word, 0);
    lock->rank = rank;
}

static inline void sy_lock_acquire(sy_lock *lock) {
#ifdef SY_DEBUG
    sy_lock_note_acquire(lock);
#endif
    sy_lock_holder *self = &sy_lock_self;
    uint32_t unheld = 0;
    self->held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* counted first, for a handler that forks */
    if (SY_UNLIKELY(!self->number) ||
        !atomic_compare_exchange_strong_explicit(&lock->word, &unheld, self->number,
                                                 memory_order_acquire, memory_order_relaxed))
        sy_lock_acquire_slow(lock);
    sy_race_after(lock);
}

static inline void sy_lock_release(sy_lock *lock) {
#ifdef SY_DEBUG
    sy_lock_note_release(lock);
#endif
    sy_race_before(lock);
    sy_lock_holder *self = &sy_lock_self;
    uint32_t held = self->number;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &held, 0, memory_order_release,
                                                 memory_order_relaxed))
        sy_lock_release_slow(lock);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->held--;
}

/* Whether this thread holds the lock for work. If so, it must not acquire it: it would wait for
 * itself. */
bool sy_lock_is_mine(const sy_lock *lock);

/* ---- around a fork, or another copy of the process (sy_os_ask_copy) ---- */

/* How long a burdened thread waits for all locks together. Only tests change it. */
extern SY_HIDDEN uint64_t sy_lock_patience_ns;

/* Begins a fork: this thread is about to hold all locks. May be nested, by handlers of signals. */
void sy_lock_begin_fork(void);

/* Takes a lock for the fork. False: another thread holds it, and this thread is burdened and has
 * waited long enough, or it has to give way. A thread that gives way goes on without each later
 * lock that another thread holds. */
bool sy_lock_hold(sy_lock *lock);

/* sy_lock_gave_way is called when all locks were tried. True: the thread has to drop them, end the
 * fork, call sy_lock_wait_for_way, and begin again. */
bool sy_lock_gave_way(void);
void sy_lock_wait_for_way(void);

/* Whether this thread has the lock, so that it may walk the data that the lock guards. */
bool sy_lock_has(const sy_lock *lock);

/* Releases a lock that was taken for the fork. True only in the child, if the forking thread did
 * not have the lock: another thread, which the child lacks, may have been changing the data that
 * the lock guards. */
bool sy_lock_drop(sy_lock *lock);

/* sy_lock_end_fork is called after the fork in the parent. In the child sy_lock_begin_child is
 * called before the first lock is dropped, and sy_lock_end_child after the last. `recover` is
 * called as soon as this thread no longer holds a lock for work that it had begun before the fork:
 * usually at once. */
void sy_lock_end_fork(void);
void sy_lock_begin_child(void);
void sy_lock_end_child(void (*recover)(void));

/*
 * Says in the first line of a function which lock its caller holds, for work or for a fork:
 *
 *     SY_HOLDS(&cache->lock);
 *
 * Debug builds abort if it does not. In the child of a fork, until the other threads' state is
 * recovered, there is no other thread, and a lock may be missing.
 */
#define SY_HOLDS(lock) SY_INVARIANT(sy_lock_guards(lock))
bool sy_lock_guards(const sy_lock *lock);

/* Whether this thread is in a fork: between sy_lock_begin_fork and its end. */
bool sy_lock_is_forking(void);

#endif
