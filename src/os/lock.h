/*
 * lock.h: the one kind of lock, ranked.
 *
 * A thread takes locks in rising rank only (several of one rank only around fork, in a fixed
 * order); a debug build aborts on the first acquisition that breaks this. No system call that can
 * block on the kernel's memory management, and no callback of the user, runs while a lock is held,
 * but that of reports, which is for that.
 *
 * The word: 0 free, 1 held, 2 held and somebody may be asleep on it (Drepper, "Futexes Are Tricky",
 * 2011, section 6, mutex 2).
 */
#ifndef SY_OS_LOCK_H
#define SY_OS_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The lock order of the whole library, outermost first. */
typedef enum sy_rank {
    SY_RANK_REPORT = 1, /* what a person is being told (watch/) */
    SY_RANK_START,      /* one-time initialisation, and the heap's */
    SY_RANK_EPOCHS,     /* the list of epochs, and their views of caches (cache/) */
    SY_RANK_THREADS,    /* thread records, client numbers (magazine/) */
    SY_RANK_CACHE,      /* one cache's slabs and counts (cache/) */
    SY_RANK_ARENAS,     /* the list of arenas (vmem/) */
    SY_RANK_ARENA,      /* one arena's segments (vmem/) */
    SY_RANK_MEMORIES,   /* the list of engine instances (chunk/) */
    SY_RANK_CHUNK,      /* one instance's chunks and their free units (chunk/) */
    SY_RANK_LARGE,      /* its large spans (chunk/) */
    SY_RANK_SIDE,       /* pools of descriptors and side bitmaps (chunk/) */
    SY_RANK_PASSED,     /* the table of objects that are blocks of the C library's (cache/) */
    SY_RANK_STORE,      /* magazines that nobody uses (magazine/) */
    SY_RANK_GUARD,      /* the slots of guarded objects (watch/) */
    SY_RANK_OPTIONS,    /* what the options say (watch/) */
    SY_RANK_FAILURES,   /* what is made to fail (watch/) */
    SY_RANK_TAGS,       /* names of tags (watch/) */
    SY_RANK_TOOLS,      /* around a tool's own lock (watch/) */
    SY_RANK_LAST = SY_RANK_TOOLS,
} sy_rank;

typedef struct sy_lock {
    _Atomic uint32_t word;
    uint32_t rank;
} sy_lock;

#define SY_LOCK_INIT(rank_) \
    { 0, rank_ }

void sy_lock_acquire_contended(sy_lock *lock);
void sy_lock_release_contended(sy_lock *lock);
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
    uint32_t unheld = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &unheld, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        sy_lock_acquire_contended(lock);
}

static inline void sy_lock_release(sy_lock *lock) {
#ifdef SY_DEBUG
    sy_lock_note_release(lock);
#endif
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        sy_lock_release_contended(lock);
}

#endif
