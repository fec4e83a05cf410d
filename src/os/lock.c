/*
 * lock.c: the slow path of a lock, and what happens to locks when a thread forks while it or
 * others hold some.
 */
#include "os/lock.h"

#ifdef SY_DEBUG
#    include <string.h>
#endif

#include "base/cpu.h"
#include "os/os.h"

enum {
    SPINS = 100, /* about the time of one refill, so that a holder on another CPU is waited out */
    LEVEL_SHIFT = 26,
    LEVELS = 30, /* of nested forks: in handlers of signals that came within forks */
    WAYS = 20,   /* a thread that gave way so often in a row goes on as if it were burdened */
};

static const uint32_t WAITED = UINT32_C(1) << 31, HOLDER = (UINT32_C(1) << LEVEL_SHIFT) - 1;
static const uint32_t INHERITED = 31; /* a level: held for work when this process was forked */

uint64_t sy_lock_patience_ns = 50000000; /* longer than work holds any lock */
static const uint64_t LOOK_NS = 1000000; /* between two attempts of a fork to take a lock */

SY_TLS sy_lock_holder sy_lock_self;

/* The fork that this thread is in. */
static SY_TLS struct {
    uint32_t level;    /* of nesting; 0: no fork */
    uint32_t burdened; /* the level from which on the thread is burdened; 0: it is not */
    uint64_t until;    /* if burdened: until then it waits for locks that others hold for work */
    bool gave_way;     /* it is not burdened, and has met a thread that is */
    uint32_t ways;     /* how many times in a row it gave way */
    bool child;        /* the thread runs in the child */
    uint32_t before;   /* in the child: the thread's number in the parent */
} fork_at;

/* The number of burdened threads. */
static _Atomic uint32_t burdened;

/* In the child of a fork: the number of locks that the thread has inherited, and the function to
 * call when it has released them all. */
static SY_TLS uint32_t inherited;
static SY_TLS void (*recover_then)(void);

static uint32_t level_of(uint32_t word) { return (word & ~WAITED) >> LEVEL_SHIFT; }

static uint32_t number(void) {
    if (!sy_lock_self.number) sy_lock_self.number = sy_os_thread() & HOLDER;
    return sy_lock_self.number;
}

static uint32_t load_word(const sy_lock *lock) {
    return atomic_load_explicit(&lock->word, memory_order_relaxed);
}

/* Returns the lock's word if this thread holds the lock, else 0. A handler of a signal may fork
 * between the two loads: the child has another number, and another word in the locks that it holds.
 * So both are read again. */
static uint32_t load_mine(const sy_lock *lock) {
    for (;;) {
        uint32_t self = number(), word = load_word(lock);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (self == number()) return (word & HOLDER) == self ? word : 0;
    }
}

/* Whether the word is that of a lock held for a fork: then to acquire or release it changes
 * nothing. */
static bool is_for_fork(uint32_t word) {
    return level_of(word) != 0 && level_of(word) != INHERITED;
}

static bool try_lock(sy_lock *lock, uint32_t word) {
    uint32_t unheld = 0;
    return load_word(lock) == 0 &&
           atomic_compare_exchange_strong_explicit(&lock->word, &unheld, word, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Marks the lock as waited for, so that its holder wakes a thread at the release. Returns the
 * marked word, or 0 if the lock is free. */
static uint32_t mark_waited(sy_lock *lock) {
    uint32_t word = load_word(lock);
    while (word && !(word & WAITED))
        if (atomic_compare_exchange_weak_explicit(&lock->word, &word, word | WAITED,
                                                  memory_order_relaxed, memory_order_relaxed))
            return word | WAITED;
    return word;
}

/* After a sleep the thread takes the lock with WAITED set, since other threads may still be asleep
 * on it. */
static void wait_for(sy_lock *lock, uint32_t word) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (try_lock(lock, word)) return;
        sy_cpu_relax();
    }
    while (!try_lock(lock, word | WAITED)) {
        uint32_t seen = mark_waited(lock);
        if (seen) sy_os_wait(&lock->word, seen);
    }
}

void sy_lock_acquire_slow(sy_lock *lock) {
    uint32_t self = number();
    if (!is_for_fork(load_mine(lock))) wait_for(lock, self);
}

/* Returns what the word was. */
static uint32_t set_free(sy_lock *lock) {
    uint32_t word = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
    if (word & WAITED) sy_os_wake(&lock->word, 1);
    return word;
}

/* ---- the order, in debug builds ---- */

#ifdef SY_DEBUG
static SY_TLS uint32_t held_of_rank[SY_RANK_LAST + 1];

void sy_lock_note_acquire(const sy_lock *lock) {
    for (unsigned rank = lock->rank + 1; rank <= SY_RANK_LAST; rank++)
        if (held_of_rank[rank]) sy_os_abort("slabyard: a lock was taken out of order\n");
    held_of_rank[lock->rank]++;
}

void sy_lock_note_release(const sy_lock *lock) {
    if (held_of_rank[lock->rank]-- == 0) sy_os_abort("slabyard: a lock was released unheld\n");
}

/* The thread may have been interrupted by a signal when it had noted a lock and not yet taken it.
 * So the notes are put aside while `recover` runs. */
static void run_recovery(void (*recover)(void)) {
    uint32_t noted[SY_RANK_LAST + 1];
    memcpy(noted, held_of_rank, sizeof noted);
    memset(held_of_rank, 0, sizeof held_of_rank);
    recover();
    memcpy(held_of_rank, noted, sizeof noted);
}

#else

static void run_recovery(void (*recover)(void)) { recover(); }

#endif

/* ---- acquire and release ---- */

static SY_TLS bool recovers; /* this thread recovers the state of the threads that a child lacks */

static void recover_now(void (*recover)(void)) {
    recovers = true;
    run_recovery(recover);
    recovers = false;
}

/* The thread has released one of its inherited locks. After the last one it runs the recovery. */
static void shed(void) {
    if (--inherited > 0) return;
    void (*recover)(void) = recover_then;
    recover_then = NULL;
    if (recover) recover_now(recover);
}

void sy_lock_release_slow(sy_lock *lock) {
    if (is_for_fork(load_mine(lock))) return;
    if (level_of(set_free(lock)) == INHERITED) shed();
}

bool sy_lock_is_mine(const sy_lock *lock) {
    uint32_t word = load_mine(lock);
    return word && !is_for_fork(word);
}

/* ---- around a fork ---- */

static uint32_t word_for_fork(void) {
    uint32_t level = fork_at.level < LEVELS ? fork_at.level : LEVELS;
    return level << LEVEL_SHIFT | number();
}

/* A fork that is nested in another counts as burdened: its thread was interrupted. */
void sy_lock_begin_fork(void) {
    fork_at.child = fork_at.gave_way = false;
    bool outermost = fork_at.level++ == 0;
    bool unburdened = outermost && sy_lock_self.held == 0 && fork_at.ways < WAYS;
    if (fork_at.burdened || unburdened) return;
    fork_at.burdened = fork_at.level;
    fork_at.until = sy_os_now() + sy_lock_patience_ns;
    atomic_fetch_add_explicit(&burdened, 1, memory_order_relaxed);
}

/* Whether to go on without a lock that another thread holds. A burdened thread waits for locks that
 * are held for a fork as long as it takes: the other thread gives way, or goes on without the locks
 * of this one. */
static bool is_hopeless(uint32_t word) {
    bool for_work = level_of(word) == 0 || level_of(word) == INHERITED;
    if (fork_at.burdened) return for_work && sy_os_now() >= fork_at.until;
    if (atomic_load_explicit(&burdened, memory_order_relaxed)) fork_at.gave_way = true;
    return fork_at.gave_way;
}

bool sy_lock_hold(sy_lock *lock) {
    if (load_mine(lock)) return true;
    for (uint32_t word = word_for_fork(); !try_lock(lock, word); word |= WAITED) {
        uint32_t seen = mark_waited(lock);
        if (seen && is_hopeless(seen)) return false;
        if (seen) sy_os_wait_for(&lock->word, seen, LOOK_NS);
    }
    return true;
}

bool sy_lock_gave_way(void) { return fork_at.gave_way; }

/* `burdened` may be too large, since a handler that forks may have interrupted its counting. So the
 * wait has an end. */
void sy_lock_wait_for_way(void) {
    uint32_t seen = atomic_load_explicit(&burdened, memory_order_relaxed);
    fork_at.ways++;
    if (seen) sy_os_wait_for(&burdened, seen, sy_lock_patience_ns);
}

/* A fork may interrupt an acquisition that has read the thread's number and not stored it: then the
 * child stores the number that the thread had in the parent. So in a child any number will do. */
bool sy_lock_guards(const sy_lock *lock) {
    return recovers || (fork_at.before && load_word(lock)) || sy_lock_has(lock);
}

bool sy_lock_has(const sy_lock *lock) { return fork_at.child || load_mine(lock); }

/* In the child, a lock that the thread held for work stays held, as INHERITED. A lock that it held
 * for an outer fork stays held for that fork. All others become free. */
static bool drop_in_child(sy_lock *lock) {
    uint32_t word = load_word(lock), level = level_of(word), kept = 0;
    bool mine = word && (word & HOLDER) == fork_at.before;
    bool for_work = level == 0 || level == INHERITED;
    if (mine && for_work) {
        kept = INHERITED << LEVEL_SHIFT | number();
        inherited++;
    } else if (mine && level < level_of(word_for_fork())) {
        kept = level << LEVEL_SHIFT | number();
    }
    atomic_store_explicit(&lock->word, kept, memory_order_relaxed);
    return !mine;
}

bool sy_lock_drop(sy_lock *lock) {
    if (fork_at.child) return drop_in_child(lock);
    if ((load_word(lock) & ~WAITED) == word_for_fork()) set_free(lock);
    return false;
}

static void uncount_burdened(void) {
    uint32_t seen = atomic_load_explicit(&burdened, memory_order_relaxed);
    while (seen && !atomic_compare_exchange_weak_explicit(
                       &burdened, &seen, seen - 1, memory_order_relaxed, memory_order_relaxed)) {}
    sy_os_wake(&burdened, 1 << 20);
}

void sy_lock_end_fork(void) {
    if (!fork_at.gave_way) fork_at.ways = 0;
    if (fork_at.level == fork_at.burdened) {
        fork_at.burdened = 0;
        uncount_burdened();
    }
    fork_at.level--;
}

void sy_lock_begin_child(void) {
    fork_at.child = true;
    fork_at.before = sy_lock_self.number;
    sy_lock_self.number = 0;
    inherited = 0;
    atomic_store_explicit(&burdened, fork_at.burdened != 0, memory_order_relaxed);
}

void sy_lock_end_child(void (*recover)(void)) {
    fork_at.child = false;
    sy_lock_end_fork();
    if (inherited > 0)
        recover_then = recover;
    else
        recover_now(recover);
}

bool sy_lock_is_forking(void) { return fork_at.level > 0; }
