/*
 * thread.c: the record of each thread. It is made at the thread's first slow path, parked while
 * the thread is idle, and reused by another thread after its end.
 */
#include "magazine/thread.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/shape.h"
#include "os/background.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/race.h"

enum {
    GROUP_MAX = 16, /* records made at a time */
    SLOTS_BYTES = SY_CLIENTS_MAX * sizeof(sy_slot),
};

/* What sy_abi_1 points to while a thread has no loaded slots: all zero, so both directions are
 * shut. Never written; reading it costs the system's zero page. */
static sy_loaded_slot shut_slots[SY_CLIENTS_MAX];

SY_API_THREAD SY_TLS sy_loaded_slot *sy_abi_1 = shut_slots;

SY_TLS sy_thread *sy_thread_own;        /* NULL before the first slow path, and after the end */
static SY_TLS sy_thread *in_hand;       /* taken but not yet sy_thread_own, or no longer that */
static SY_TLS bool ended;               /* this thread's exit hook has run */
static SY_TLS sy_thread *second;        /* this thread's second record, or NULL */
static SY_TLS void (*before_end)(void); /* called before the second record is given back */

static sy_lock lock = SY_LOCK_INIT(SY_RANK_THREADS);
static sy_thread *all_records;  /* guarded by lock */
static sy_thread *free_records; /* guarded by lock */
bool sy_threads_lost_guards;
static unsigned record_count; /* guarded by lock */
static _Atomic bool park;     /* a thread has been parked; never false again */
static void (*empty_slots)(sy_thread *thread);
static void (*flush_at_end)(sy_thread *thread);

void sy_threads_lock(void) { sy_lock_acquire(&lock); }

void sy_threads_unlock(void) { sy_lock_release(&lock); }

void sy_threads_hold(void) { sy_lock_hold(&lock); }

bool sy_threads_are_guarded(void) { return sy_lock_guards(&lock); }

bool sy_threads_are_held(void) { return sy_lock_has(&lock); }

void sy_threads_drop(void) { sy_lock_drop(&lock); }

sy_thread *sy_threads_first(void) { return all_records; }

unsigned sy_thread_count(void) {
    unsigned count = 0;
    sy_lock_acquire(&lock);
    for (const sy_thread *thread = all_records; thread; thread = thread->next)
        count += thread->first == thread &&
                 atomic_load_explicit(&thread->state, memory_order_relaxed) != SY_THREAD_FREE;
    sy_lock_release(&lock);
    return count;
}

/* The lock is held. */
static void set_thread_state(sy_thread *thread, sy_thread_state state) {
    SY_HOLDS(&lock);
    atomic_store_explicit(&thread->state, state, memory_order_relaxed);
}

/* ---- parking ---- */

/*
 * A thread parks its record with a store and takes it back with a compare-exchange; it takes no
 * lock. Others claim a parked record with a compare-exchange too, so either the thread or the
 * claimer has it. What the thread wrote to its slots happens before the claim (release, acquire),
 * and what the claimer wrote happens before the thread's return (the same, or the lock).
 */

static bool change_state(sy_thread *thread, sy_thread_state from, sy_thread_state to) {
    uint32_t expected = from;
    bool changed = atomic_compare_exchange_strong_explicit(
        &thread->state, &expected, to, memory_order_acquire, memory_order_relaxed);
    if (changed) sy_race_after(thread);
    return changed;
}

bool sy_threads_park(void) { return atomic_load_explicit(&park, memory_order_relaxed); }

bool sy_thread_claim(sy_thread *thread) {
    return change_state(thread, SY_THREAD_PARKED, SY_THREAD_CLAIMED);
}

void sy_thread_unclaim(sy_thread *thread) {
    sy_race_before(thread);
    atomic_store_explicit(&thread->state, SY_THREAD_PARKED, memory_order_release);
}

/* ---- holding ---- */

/*
 * A thread that begins a scope of SY_INSIDE stores `inside`, then loads `held`. A thread that holds
 * the record stores `held`, then loads `inside`. One of the two has to see the other's store. That
 * takes a full barrier between store and load in both. The slow path, which is frequent, has none:
 * sy_os_barrier_threads makes its thread run one, wherever this thread is at the moment.
 *
 *     it is before its store of `inside`    it will see `held`, and waits
 *     it is behind it                       the store of `inside` is seen here
 *
 * A scope that has ended before the load here has stored `inside` last (release, acquire): all that
 * it wrote to slots is seen.
 */

enum { NOT_HELD, HELD, AWAITED };

bool sy_thread_hold(sy_thread *thread) {
    atomic_store_explicit(&thread->held, HELD, memory_order_relaxed);
    if (sy_os_barrier_threads() == 0 &&
        !atomic_load_explicit(&thread->inside, memory_order_acquire))
        return true;
    sy_thread_let_go(thread);
    return false;
}

/* What the holder wrote to slots is seen by the thread's next scope (release, acquire). */
void sy_thread_let_go(sy_thread *thread) {
    if (atomic_exchange_explicit(&thread->held, NOT_HELD, memory_order_release) == AWAITED)
        sy_os_wake(&thread->held, 1);
}

SY_COLD void sy_thread_await(sy_thread *thread) {
    uint32_t held;
    while ((held = atomic_load_explicit(&thread->held, memory_order_acquire)) != NOT_HELD) {
        if (held == AWAITED ||
            atomic_compare_exchange_strong_explicit(&thread->held, &held, AWAITED,
                                                    memory_order_relaxed, memory_order_relaxed))
            sy_os_wait(&thread->held, AWAITED);
    }
}

/* ---- records ---- */

static size_t headers_bytes(unsigned count) {
    return sy_round_up(count * sizeof(sy_thread), sy_os_page_size());
}

static size_t group_bytes(unsigned count) {
    return headers_bytes(count) + count * (size_t)SLOTS_BYTES;
}

/* The lock is held. */
static void add_records(char *group, unsigned count) {
    SY_HOLDS(&lock);
    sy_thread *records = (sy_thread *)group;
    for (unsigned i = count; i-- > 0;) {
        records[i].slots = (sy_slot *)(group + headers_bytes(count) + i * (size_t)SLOTS_BYTES);
        records[i].first = &records[i];
        records[i].next = all_records;
        all_records = &records[i];
        records[i].next_free = free_records;
        free_records = &records[i];
    }
    record_count += count;
}

/* Adds as many free records as there are, or fewer where address space is short, unless another
 * thread has added some since there were `seen`. 0, or -1 with ENOMEM. */
static int add_group(unsigned seen) {
    unsigned count = seen < 1 ? 1 : seen < GROUP_MAX ? seen : GROUP_MAX;
    char *group;
    while (!(group = sy_pages_take(group_bytes(count), sy_os_page_size(), "slabyard threads")))
        if ((count /= 2) == 0) return -1;
    sy_lock_acquire(&lock);
    bool mine = record_count == seen;
    if (mine) add_records(group, count);
    sy_lock_release(&lock);
    if (!mine) sy_pages_give(group, group_bytes(count));
    return 0;
}

static sy_thread *take_thread(void) {
    for (;;) {
        sy_lock_acquire(&lock);
        sy_thread *thread = free_records;
        unsigned seen = record_count;
        if (thread) {
            free_records = thread->next_free;
            set_thread_state(thread, SY_THREAD_RUNNING);
            in_hand = thread;
        }
        sy_lock_release(&lock);
        if (thread) return thread;
        if (add_group(seen) != 0) return NULL;
    }
}

/* Resets the state of work under way. In the child of a fork, the record's thread may have been
 * stopped in the middle of it. */
static void forget(sy_thread *thread) {
    thread->first = thread;
    thread->placed[0] = thread->placed[1] = 0;
    thread->one_way_count = 0;
    thread->next_idle = SY_CLIENT_FIRST;
    atomic_store_explicit(&thread->inside, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->held, NOT_HELD, memory_order_relaxed);
    atomic_store_explicit(&thread->reading, 0, memory_order_release);
}

static void give_record(sy_thread *thread) {
    sy_lock_acquire(&lock);
    empty_slots(thread);
    while (thread->empties > 0) sy_store_put(thread->empty[--thread->empties]);
    forget(thread);
    set_thread_state(thread, SY_THREAD_FREE);
    thread->next_free = free_records;
    free_records = thread;
    in_hand = NULL;
    sy_lock_release(&lock);
}

static void run(sy_thread *thread) {
    sy_thread_own = thread;
    in_hand = NULL;
    sy_abi_1 = (sy_loaded_slot *)thread->slots;
}

static void stop(void) {
    sy_abi_1 = shut_slots;
    in_hand = sy_thread_own;
    sy_thread_own = NULL;
}

static void end_second_record(void);

/* The thread's exit hook. Allocations and frees of destructors that run later use no magazines. */
static void end_thread(void *record) {
    if (second) end_second_record();
    flush_at_end(record);
    stop();
    ended = true;
    give_record(record);
    sy_background_thread_ends();
}

/* Registering the hook may call this allocator. So the record is the thread's own before that. */
static SY_COLD sy_thread *attach(void) {
    if (ended) return NULL;
    sy_thread *thread = take_thread();
    if (!thread) return NULL;
    thread->number = sy_os_thread();
    run(thread);
    if (sy_os_at_thread_exit(end_thread, thread) == 0) return thread;
    stop();
    give_record(thread);
    return NULL;
}

/* The thread that claimed the record holds the lock until the record is parked again. So acquiring
 * the lock waits for it. */
static SY_COLD void resume_claimed(sy_thread *thread) {
    sy_lock_acquire(&lock);
    set_thread_state(thread, SY_THREAD_RUNNING);
    sy_lock_release(&lock);
}

static sy_thread *resume(sy_thread *thread) {
    if (!change_state(thread, SY_THREAD_PARKED, SY_THREAD_RUNNING)) resume_claimed(thread);
    run(thread);
    return thread;
}

sy_thread *sy_thread_self(void) {
    sy_thread *thread = sy_thread_own;
    if (SY_UNLIKELY(!thread)) return attach();
    if (SY_UNLIKELY(sy_abi_1 == shut_slots)) return resume(thread);
    return thread;
}

/* A placed slot has no magazine. */
sy_loaded_slot *sy_countdown_slot(unsigned number) {
    return sy_abi_1[number].top ? &sy_abi_1[number] : NULL;
}

sy_thread *sy_thread_running(void) { return sy_abi_1 == shut_slots ? NULL : sy_thread_own; }

static void park_record(sy_thread *thread) {
    if (!sy_threads_park()) atomic_store_explicit(&park, true, memory_order_relaxed);
    sy_race_before(thread);
    atomic_store_explicit(&thread->state, SY_THREAD_PARKED, memory_order_release);
    sy_drained_end();
}

void sy_thread_idle(void) {
    sy_thread *thread = sy_thread_running();
    if (!thread) return;
    sy_abi_1 = shut_slots;
    park_record(thread);
}

/* ---- the second record ---- */

/* The records are changed in such an order that the thread has both for a moment, and that the
 * child of a fork by a handler of a signal finds it with one of them. */
static void run_instead(sy_thread *from, sy_thread *to) {
    sy_thread_put_back();
    resume(to);
    park_record(from);
}

static sy_thread *make_second(sy_thread *first, const uint64_t placed[2]) {
    sy_thread *thread = take_thread();
    if (!thread) return NULL;
    thread->number = first->number;
    sy_lock_acquire(&lock); /* sy_thread_count reads it */
    thread->first = first;
    sy_lock_release(&lock);
    memcpy(thread->placed, placed, sizeof thread->placed);
    second = thread;
    in_hand = NULL;
    park_record(thread);
    return thread;
}

int sy_second_begin(const uint64_t placed[2], void (*end)(void)) {
    sy_thread *thread = sy_thread_self();
    if (thread && sy_thread_is_inside(thread)) {
        errno = EBUSY;
        return -1;
    }
    if (!thread || (!second && !make_second(thread, placed))) {
        errno = ENOMEM;
        return -1;
    }
    before_end = end;
    if (thread != second) run_instead(thread, second);
    return 0;
}

bool sy_second_end(void) {
    sy_thread *thread = sy_thread_self();
    if (sy_thread_is_inside(thread)) return false;
    if (thread == second) run_instead(thread, thread->first);
    return true;
}

bool sy_second_exchange(void) {
    sy_thread *thread = sy_thread_self();
    if (!second || !thread || sy_thread_is_inside(thread)) return false;
    run_instead(thread, thread == second ? thread->first : second);
    return true;
}

void sy_second_resume(void) { (void)sy_thread_self(); }

/* The thread ends. What the second record holds goes where that of the first one will go. */
static SY_COLD void end_second_record(void) {
    sy_thread *first = second->first;
    before_end();
    if (sy_thread_self() != second) run_instead(sy_thread_own, second);
    flush_at_end(second);
    run_instead(second, first);
    in_hand = second;
    second = NULL;
    give_record(in_hand);
}

sy_magazine *sy_thread_take_empty(sy_thread *thread) {
    if (thread->empties == 0) return sy_store_take();
    sy_magazine *magazine = thread->empty[--thread->empties];
    __atomic_signal_fence(__ATOMIC_RELEASE); /* a fork must not see it here and elsewhere */
    return magazine;
}

void sy_thread_put_empty(sy_thread *thread, sy_magazine *magazine) {
    if (thread->empties == SY_EMPTIES)
        while (thread->empties > SY_EMPTIES / 2) sy_store_put(thread->empty[--thread->empties]);
    thread->empty[thread->empties] = magazine;
    __atomic_signal_fence(__ATOMIC_RELEASE); /* the entry is valid before a fork counts it */
    thread->empties++;
}

/* The library's zeroed variables lie together and take more than 2 MiB, of which few pages are
 * used. Where the system's setting is `always`, one write could back 2 MiB of them with a huge
 * page. The shut slots are half of them. Without these, the rest is too short for that. */
static void keep_variables_small(void) {
    const size_t page = sy_os_page_size();
    uintptr_t start = sy_round_up((uintptr_t)shut_slots, page);
    uintptr_t end = sy_round_down((uintptr_t)(shut_slots + SY_CLIENTS_MAX), page);
    int error = errno;
    (void)sy_os_huge((void *)start, end - start, false);
    errno = error;
}

void sy_threads_start(void (*empty)(sy_thread *thread), void (*flush)(sy_thread *thread)) {
    empty_slots = empty;
    flush_at_end = flush;
    keep_variables_small();
}

size_t sy_threads_bytes(void) {
    size_t bytes = 0;
    sy_lock_acquire(&lock);
    for (const sy_thread *thread = all_records; thread; thread = thread->next)
        bytes += sizeof *thread + thread->slots_end * sizeof(sy_slot);
    sy_lock_release(&lock);
    return bytes;
}

/* Takes a free record whose slots may hold memory off the list, or gives NULL. */
static sy_thread *claim_dirty_free_record(void) {
    sy_lock_acquire(&lock);
    sy_thread **link = &free_records;
    while (*link && (*link)->slots_end == 0) link = &(*link)->next_free;
    sy_thread *thread = *link;
    if (thread) *link = thread->next_free;
    sy_lock_release(&lock);
    return thread;
}

/* If the record still has its memory, it goes to the end of the list, so that a trim tries the
 * others first. */
static void return_record(sy_thread *thread) {
    sy_lock_acquire(&lock);
    sy_thread **link = &free_records;
    while (thread->slots_end && *link) link = &(*link)->next_free;
    thread->next_free = *link;
    *link = thread;
    sy_lock_release(&lock);
}

size_t sy_threads_trim_one(void) {
    sy_thread *thread = claim_dirty_free_record();
    if (!thread) return 0;
    size_t used = sy_round_up(thread->slots_end * sizeof(sy_slot), sy_os_page_size());
    bool gone = sy_os_discard(thread->slots, used) == 0;
    if (gone) thread->slots_end = 0;
    return_record(thread);
    return gone ? used : 0;
}

size_t sy_threads_trim(void) {
    size_t bytes = 0, more;
    while ((more = sy_threads_trim_one()) != 0) bytes += more;
    return bytes;
}

void sy_threads_orphan_others(void) {
    if (sy_thread_own) sy_thread_own->first->number = sy_os_thread();
    if (second) second->number = sy_os_thread();
    for (sy_thread *thread = all_records; thread; thread = thread->next) {
        if (thread == in_hand || sy_thread_is_own(thread)) continue;
        if (atomic_load(&thread->state) == SY_THREAD_FREE) continue;
        empty_slots(thread);
        if (thread->reading) sy_threads_lost_guards = true;
        forget(thread);
        set_thread_state(thread, SY_THREAD_FREE);
        thread->next_free = free_records;
        free_records = thread;
    }
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define THREAD_VARIABLES(row) row(sy_threads, all_records)

static const sy_shape_row thread_shape_rows[] = {SY_SHAPE_FIELD(sy_thread, sy_thread, slots),
                                                 SY_SHAPE_FIELD(sy_thread, sy_thread, next),
                                                 SY_SHAPE_FIELD(sy_thread, sy_thread, state),
                                                 SY_SHAPE_FIELD(sy_thread, sy_thread, slots_end),
                                                 SY_SHAPE_FIELD(sy_thread, sy_thread, number),
                                                 SY_SHAPE_TYPE(sy_thread, sy_thread),
                                                 SY_SHAPE_FIELD(sy_slot, sy_slot, loaded),
                                                 SY_SHAPE_FIELD(sy_slot, sy_slot, previous),
                                                 SY_SHAPE_FIELD(sy_slot, sy_slot, top),
                                                 SY_SHAPE_FIELD(sy_slot, sy_slot, gone),
                                                 SY_SHAPE_TYPE(sy_slot, sy_slot),
                                                 {"sy_slots_bytes", SLOTS_BYTES, 0},
                                                 SY_SHAPE_CONSTANT(SY_THREAD_FREE),
                                                 THREAD_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const thread_shape_addresses[] = {THREAD_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_thread_shape = SY_SHAPE_PART(thread_shape_rows, thread_shape_addresses);
