/*
 * readers.c: read guards, and waiting for them. A guard is the number of an era in the record of
 * its thread. A mover announces in an object's word that it is about to move the object, begins a
 * new era, and waits until no thread is in a guard of an earlier one:
 *
 *     reader                                  mover
 *     thread->reading = era                   word = announced
 *     [order]                                 era += 2
 *     loads word: live, or announced          [order]
 *     ...                                     waits while a thread's `reading` is an earlier era
 *     thread->reading = what it was           word: announced -> being copied, if still announced
 *
 * [order] keeps each thread's load behind its store. So the reader sees the announcement, and calls
 * the move off (cache/moving.c), or the mover sees the guard. The reader must not pay for it. So
 * the mover makes all threads run a barrier (sy_os_barrier_threads), and readers have a barrier of
 * the compiler only. Where the system has no such call, both run a fence.
 *
 * A thread without a record (it is ending, or there was no memory) counts in `unrecorded`. Movers
 * wait until that is 0.
 *
 * tests/models/moving.c has the models.
 */
#include "magazine/readers.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "debug/options.h"
#include "magazine/thread.h"
#include "os/os.h"

#ifndef SY_READERS_LOOKS
#    define SY_READERS_LOOKS 200 /* at guards that last, with a pause of the processor each */
#endif

enum {
    ERA_FIRST = 2,
    ERA_STEP = 2,   /* eras are even, so that no guard is equal to UNRECORDED */
    UNRECORDED = 1, /* the guard of a thread without a record */
};

typedef enum order_by { UNKNOWN, BARRIERS, FENCES } order_by;

static _Atomic uint32_t order;
static _Atomic uint64_t era = ERA_FIRST;
static _Atomic uint32_t unrecorded;    /* guards of threads without records, */
static SY_TLS uint32_t own_unrecorded; /* and of these, this thread's */

/* A program with the option `system-files=no` may run under a filter that permits few system
 * calls. */
void sy_readers_start(void) {
    uint32_t unknown = UNKNOWN;
    if (atomic_load_explicit(&order, memory_order_relaxed) != UNKNOWN) return;
    int error = errno;
    bool asks = atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed);
    uint32_t found = asks && sy_os_barrier_threads() == 0 ? BARRIERS : FENCES;
    atomic_compare_exchange_strong_explicit(&order, &unknown, found, memory_order_relaxed,
                                            memory_order_relaxed);
    errno = error;
}

/* ---- readers ---- */

static SY_COLD sy_thread *make_record(void) {
    int error = errno;
    sy_thread *thread = sy_thread_self();
    errno = error;
    return thread;
}

static SY_COLD uint64_t enter_without_record(void) {
    own_unrecorded++;
    atomic_fetch_add_explicit(&unrecorded, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return UNRECORDED;
}

uint64_t sy_readers_enter(void) {
    sy_thread *thread = sy_thread_known();
    if (SY_UNLIKELY(!thread) && !(thread = make_record())) return enter_without_record();
    thread = thread->first;
    uint64_t outer = atomic_load_explicit(&thread->reading, memory_order_relaxed);
    if (outer) return outer;
    uint64_t now = atomic_load_explicit(&era, memory_order_acquire);
    atomic_store_explicit(&thread->reading, now, memory_order_release); /* see is_earlier */
    if (SY_LIKELY(atomic_load_explicit(&order, memory_order_relaxed) == BARRIERS))
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    else
        atomic_thread_fence(memory_order_seq_cst);
    return 0;
}

void sy_readers_leave(uint64_t guard) {
    if (SY_UNLIKELY(guard == UNRECORDED)) {
        own_unrecorded--;
        atomic_fetch_sub_explicit(&unrecorded, 1, memory_order_release);
        return;
    }
    sy_thread *thread = sy_thread_known();
    if (thread) atomic_store_explicit(&thread->first->reading, guard, memory_order_release);
}

bool sy_readers_has_own(void) {
    sy_thread *thread = sy_thread_known();
    return (thread && atomic_load_explicit(&thread->first->reading, memory_order_relaxed)) ||
           own_unrecorded;
}

bool sy_readers_lost_any(void) { return sy_threads_lost_guards; }

void sy_readers_forget_others(void) {
    if (atomic_load_explicit(&unrecorded, memory_order_relaxed) != own_unrecorded)
        sy_threads_lost_guards = true;
    atomic_store_explicit(&unrecorded, own_unrecorded, memory_order_relaxed);
}

/* ---- movers ---- */

/* What the caller stored before is seen by guards of the era `since` and later ones. */
static bool begin_era(uint64_t *since) {
    *since = atomic_fetch_add_explicit(&era, ERA_STEP, memory_order_release) + ERA_STEP;
    if (atomic_load_explicit(&order, memory_order_relaxed) == BARRIERS)
        return sy_os_barrier_threads() == 0;
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static bool is_earlier(const sy_thread *thread, uint64_t since) {
    uint64_t reading = atomic_load_explicit(&thread->reading, memory_order_acquire);
    return reading && reading < since;
}

bool sy_readers_await(void) {
    uint64_t since;
    unsigned looks = SY_READERS_LOOKS;
    if (!begin_era(&since)) return false;
    sy_threads_lock();
    const sy_thread *thread = sy_threads_first();
    sy_threads_unlock();
    while (thread) {
        if (!is_earlier(thread, since)) {
            thread = thread->next;
        } else {
            if (looks-- == 0) return false;
            sy_cpu_relax();
        }
    }
    return atomic_load_explicit(&unrecorded, memory_order_acquire) == 0;
}
