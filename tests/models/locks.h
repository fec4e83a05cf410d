/*
 * locks.h: locks for the models of other parts: the inline functions of os/lock.h. Where these
 * call the system to wait, the models have a wait that the checker understands.
 */
#ifndef MODEL_LOCKS_H
#define MODEL_LOCKS_H

#include "system.h"

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

#endif
