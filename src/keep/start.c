/*
 * start.c: starts the layers on the first call of the process, in order, and takes and releases
 * all locks around a fork.
 */
#include "keep/start.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cache/account.h"
#include "cache/cache.h"
#include "cache/limit.h"
#include "cache/passed.h"
#include "chunk/chunk.h"
#include "keep/leaks.h"
#include "keep/reclaim.h"
#include "magazine/client.h"
#include "os/lock.h"
#include "os/os.h"
#include "pool/checked.h"
#include "vmem/arena.h"
#include "watch/fail.h"
#include "watch/guard.h"
#include "watch/options.h"
#include "watch/report.h"
#include "watch/tags.h"
#include "watch/tools.h"

enum { NOT_STARTED, STARTING, STARTED };

static _Atomic uint32_t state;
static SY_TLS bool starting; /* it is this thread that does */
/* What has started, should the start as a whole have failed before. */
static bool memory_ready, magazines_ready, fork_ready, leaks_ready, account_ready;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_START);

bool sy_start_lock(void) {
    if (sy_lock_is_mine(&lock)) return false;
    sy_lock_acquire(&lock);
    return true;
}

void sy_start_unlock(void) { sy_lock_release(&lock); }

/* ---- fork ---- */

static void hold_all(void) {
    sy_lock_hold(&lock);
    sy_epochs_lock_for_fork();
    sy_magazine_lock_for_fork();
    sy_caches_lock_for_fork();
    sy_vmem_lock_for_fork();
    sy_memory_lock_for_fork();
    sy_passed_lock_for_fork();
    sy_store_lock_for_fork();
    sy_checked_pools_lock_for_fork();
    sy_guard_lock_for_fork();
    sy_options_lock_for_fork();
    sy_fail_lock_for_fork();
    sy_tags_lock_for_fork();
    sy_tool_lock_for_fork();
}

static void drop_all(void) {
    sy_tool_unlock_after_fork();
    sy_tags_unlock_after_fork();
    sy_fail_unlock_after_fork();
    sy_options_unlock_after_fork();
    sy_guard_unlock_after_fork();
    sy_checked_pools_unlock_after_fork();
    sy_store_unlock_after_fork();
    sy_passed_unlock_after_fork();
    sy_memory_unlock_after_fork();
    sy_vmem_unlock_after_fork();
    sy_caches_unlock_after_fork();
    sy_magazine_unlock_after_fork();
    sy_epochs_unlock_after_fork();
    sy_lock_drop(&lock);
}

/* Another thread that starts the library would be missing in the child, the start half done. */
static void wait_for_start(void) {
    while (atomic_load_explicit(&state, memory_order_acquire) == STARTING && !starting &&
           sy_lock_self.held == 0)
        sy_os_wait(&state, STARTING);
}

/* All locks, with those of the C library's that `streams` is for before them. */
static void lock_all(bool streams) {
    int error = errno;
    for (;;) {
        sy_lock_begin_fork();
        if (streams) sy_os_hold_streams();
        hold_all();
        if (!sy_lock_gave_way()) break;
        drop_all();
        if (streams) sy_os_drop_streams(false);
        sy_lock_end_fork();
        sy_lock_wait_for_way();
    }
    errno = error;
}

void sy_start_lock_all(void) { lock_all(false); }

void sy_start_unlock_all(void) {
    drop_all();
    sy_lock_end_fork();
}

static void before_fork(void) {
    wait_for_start();
    lock_all(true);
}

static void after_fork_in_parent(void) {
    sy_start_unlock_all();
    sy_os_drop_streams(false);
}

/* What the other threads had begun ends, or comes back. Of what this one was in the midst of, in a
 * function of the program's or when a signal came whose handler forked, nothing is touched. */
static void recover(void) {
    sy_memory_recover();
    sy_magazine_orphan_others();
    sy_guard_recover();
    sy_caches_recover();
    sy_epochs_recover();
    sy_reclaim_recover();
    sy_maintenance_recover();
    sy_limits_recover();
}

static void after_fork_in_child(void) {
    int error = errno;
    sy_os_thread_forked();
    sy_lock_begin_child();
    drop_all();
    sy_report_recover();
    if (atomic_load(&state) == STARTING && !starting) atomic_store(&state, NOT_STARTED);
    sy_lock_end_child(recover);
    sy_os_drop_streams(true);
    errno = error;
}

static int survive_forks(void) {
    if (fork_ready) return 0;
    if (sy_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) return -1;
    fork_ready = true;
    return 0;
}

/* Hooks that the program registers come later then, so they run before the locks are held and after
 * they are let go; only other libraries' constructors can come before. If this fails, or somebody
 * comes before this, the start does it. 101 is the fake OS's (os/fake.c). */
__attribute__((constructor(102))) static void survive_forks_early(void) {
    int error = errno;
    (void)survive_forks();
    errno = error;
}

/* ---- start ---- */

static void tell_no_maintenance(void) {
    static const char line[] = "slabyard: the thread that the option \"maintenance\" asks for "
                               "cannot be started\n";
    sy_os_write(2, line, sizeof line - 1);
}

static int start_layers(void) {
    if (!memory_ready && sy_memory_start() != 0) return -1;
    memory_ready = true;
    if (!magazines_ready && sy_magazine_start() != 0) return -1;
    magazines_ready = true;
    if (survive_forks() != 0) return -1;
    if (!leaks_ready && sy_leaks_start() != 0) return -1;
    leaks_ready = true;
    if (!account_ready && sy_account_start() != 0) return -1;
    account_ready = true;
    return 0;
}

/* Carries out what was said in options since the last time. */
static void apply_options(void) {
    int error = errno;
    uint64_t value;
    sy_fail_apply_option();
    if (sy_options_take(SY_LATE_DECAY, &value)) sy_set_decay(value);
    if (sy_options_take(SY_LATE_LIMIT, &value)) sy_set_limit(&(sy_limit){.hard = (size_t)value});
    if (sy_options_take(SY_LATE_MAINTENANCE, &value)) {
        if (!value) sy_maintenance_stop();
        if (value && sy_maintenance_start() != 0) tell_no_maintenance();
    }
    errno = error;
}

/* What the system's functions allocate that the start itself calls, where this library is the
 * program's malloc: served as soon as there is what it takes. */
static int start_within(void) {
    if (magazines_ready) return 0;
    errno = ENOMEM;
    return -1;
}

int sy_start(void) {
    for (;;) {
        uint32_t seen = NOT_STARTED;
        if (atomic_load_explicit(&state, memory_order_acquire) == STARTED) return 0;
        if (starting) return start_within();
        if (atomic_compare_exchange_strong(&state, &seen, STARTING)) break;
        if (seen == STARTING) sy_os_wait(&state, STARTING);
    }
    starting = true;
    sy_options_load();
    sy_fail_apply_option();
    int result = start_layers();
    if (result != 0) errno = ENOMEM;
    starting = false;
    atomic_store_explicit(&state, result == 0 ? STARTED : NOT_STARTED, memory_order_release);
    sy_os_wake(&state, 1 << 20);
    if (result == 0) {
        sy_options_on_change(apply_options);
        apply_options();
    }
    return result;
}
