#include "keep/start.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cache/cache.h"
#include "cache/limit.h"
#include "chunk/chunk.h"
#include "keep/reclaim.h"
#include "magazine/client.h"
#include "os/lock.h"
#include "os/os.h"
#include "vmem/arena.h"

enum { NOT_STARTED, STARTING, STARTED };

static _Atomic uint32_t state;
/* What has started, should the start as a whole have failed before. */
static bool memory_ready, magazines_ready, fork_ready;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_START);

void sy_start_lock(void) { sy_lock_acquire(&lock); }

void sy_start_unlock(void) { sy_lock_release(&lock); }

/* All locks in their order, so that the child finds every structure whole. */
static void before_fork(void) {
    sy_start_lock();
    sy_epochs_lock_for_fork();
    sy_magazine_lock_for_fork();
    sy_caches_lock_for_fork();
    sy_vmem_lock_for_fork();
    sy_memory_lock_for_fork();
    sy_store_lock_for_fork();
}

static void after_fork(void) {
    sy_store_unlock_after_fork();
    sy_memory_unlock_after_fork();
    sy_vmem_unlock_after_fork();
    sy_caches_unlock_after_fork();
    sy_magazine_unlock_after_fork();
    sy_epochs_unlock_after_fork();
    sy_start_unlock();
}

static void after_fork_in_child(void) {
    after_fork();
    sy_memory_recover();
    sy_magazine_orphan_others();
    sy_caches_recover();
    sy_epochs_recover();
    sy_reclaim_recover();
    sy_maintenance_recover();
    sy_limits_recover();
}

static int start_layers(void) {
    if (!memory_ready && sy_memory_start() != 0) return -1;
    memory_ready = true;
    if (!magazines_ready && sy_magazine_start() != 0) return -1;
    magazines_ready = true;
    if (!fork_ready && sy_os_at_fork(before_fork, after_fork, after_fork_in_child) != 0) return -1;
    fork_ready = true;
    return 0;
}

int sy_start(void) {
    for (;;) {
        uint32_t seen = NOT_STARTED;
        if (atomic_load_explicit(&state, memory_order_acquire) == STARTED) return 0;
        if (atomic_compare_exchange_strong(&state, &seen, STARTING)) break;
        if (seen == STARTING) sy_os_wait(&state, STARTING);
    }
    int result = start_layers();
    if (result != 0) errno = ENOMEM;
    atomic_store_explicit(&state, result == 0 ? STARTED : NOT_STARTED, memory_order_release);
    sy_os_wake(&state, 1 << 20);
    return result;
}
