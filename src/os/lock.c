#include "os/lock.h"

#include "base/cpu.h"
#include "os/os.h"

enum {
    SPINS = 100
}; /* about the time of one refill, so that a holder on another CPU is waited out */

void sy_lock_acquire_contended(sy_lock *lock) {
    for (int spin = 0; spin < SPINS; spin++) {
        uint32_t unheld = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->word, &unheld, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
        sy_cpu_relax();
    }
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        sy_os_wait(&lock->word, 2);
}

void sy_lock_release_contended(sy_lock *lock) { sy_os_wake(&lock->word, 1); }

#ifdef SY_DEBUG
#    include <string.h>

static _Thread_local uint32_t held_of_rank[SY_RANK_LAST + 1];

static _Noreturn void out_of_order(const char *message) {
    sy_os_write(2, message, strlen(message));
    sy_os_abort();
}

void sy_lock_note_acquire(const sy_lock *lock) {
    for (unsigned rank = lock->rank + 1; rank <= SY_RANK_LAST; rank++)
        if (held_of_rank[rank]) out_of_order("slabyard: a lock was taken out of order\n");
    held_of_rank[lock->rank]++;
}

void sy_lock_note_release(const sy_lock *lock) {
    if (held_of_rank[lock->rank]-- == 0) out_of_order("slabyard: a lock was released unheld\n");
}
#endif
