/*
 * park.c: models of a thread's record: its slots belong to the thread or to a claimer, and each
 * sees what the other wrote.
 */
#include "locks.h"

#include "magazine/thread.c"

static alignas(65536) char group[65536 + SLOTS_BYTES];

void *sy_pages_take(size_t bytes, size_t align, const char *name) {
    (void)name;
    assert(bytes <= sizeof group && align <= 65536);
    return group;
}

/* No thread watches for what is new to be drained. */
_Atomic uint32_t sy_drained_watch;
unsigned sy_os_thread(void) { return model_number + 1; }

void sy_drained_end_slow(void) { assert(false); }

int sy_os_at_thread_exit(void (*hook)(void *arg), void *arg) { return (void)hook, (void)arg, 0; }

/* The thread that may touch the slots writes to them without atomic accesses. */
static void touch(sy_thread *thread) { sy_thread_slot(thread, SY_CLIENT_FIRST)->reserved++; }

static void take_and_touch(void) { touch(sy_thread_self()); }

static void claim_and_touch(void *arg) {
    (void)arg;
    sy_threads_lock();
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next) {
        if (!sy_thread_claim(thread)) continue;
        touch(thread);
        sy_thread_unclaim(thread);
    }
    sy_threads_unlock();
}

/* The model's first thread parks this many times, and returns each time. */
static void park_beside_claims(unsigned times, uint32_t claimers) {
    model_thread others[2];
    sy_abi_1 = shut_slots;
    take_and_touch();
    for (uint32_t i = 0; i < claimers; i++) model_start(&others[i], i + 1, claim_and_touch, NULL);
    for (; times > 0; times--) {
        sy_thread_idle();
        take_and_touch();
    }
    for (uint32_t i = 0; i < claimers; i++) model_join(&others[i]);
    assert(atomic_load(&sy_threads_first()->state) == SY_THREAD_RUNNING);
}

MODEL(a_thread_that_parks_twice_excludes_a_claimer) { park_beside_claims(2, 1); }

MODEL(a_thread_that_parks_excludes_two_claimers) { park_beside_claims(1, 2); }
