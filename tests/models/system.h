/*
 * system.h: what the models have in place of os/: memory that is there from the beginning, and
 * locks whose owners are waited for by the checker.
 */
#ifndef MODEL_SYSTEM_H
#define MODEL_SYSTEM_H

#include <slabyard/base.h>
#include <stddef.h>

#include "model.h"

/* What a thread has of its own is found by its number here: GenMC has thread-local variables of
 * simple types only. This turns the declarations into those of functions. */
#undef SY_TLS
#define SY_TLS
#define sy_lock_self    (*model_lock_self())
#define sy_callback_now (*model_callback_now())
#include "os/lock.h"
#include "watch/callback.h"
#undef SY_TLS
#define SY_TLS __thread

#include "os/os.h"
#include "os/pages.h"

/* ---- locks: the inline functions of os/lock.h, without what they call when they have to wait ----
 */

sy_lock_holder *model_lock_self(void) {
    static sy_lock_holder selves[MODEL_THREADS];
    return &selves[model_number];
}

void sy_lock_acquire_slow(sy_lock *lock) {
    uint32_t unheld = 0, number = model_number + 1;
    sy_lock_self.number = number;
    while (!atomic_compare_exchange_strong_explicit(&lock->word, &unheld, number,
                                                    memory_order_acquire, memory_order_relaxed)) {
        model_wait(&lock->word);
        unheld = 0;
    }
}

void sy_lock_release_slow(sy_lock *lock) {
    (void)lock;
    assert(!"a lock is released by a thread that does not hold it");
}

/* ---- calls of the program's functions ---- */

sy_callback_note *model_callback_now(void) {
    static sy_callback_note now[MODEL_THREADS];
    return &now[model_number];
}

/* ---- memory ---- */

enum { MODEL_PAGE = 4096 };

size_t sy_os_page_size(void) { return MODEL_PAGE; }

int sy_os_populate(void *start, size_t bytes) { return (void)start, (void)bytes, 0; }

#endif
