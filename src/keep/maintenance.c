/*
 * maintenance.c: the maintenance thread. It does the passes by age, and a pass at once if the tasks
 * of the control group wait for memory. A program or an option starts it.
 *
 *     OFF --start--> RUNS --stop--> ENDING --the thread ends--> OFF
 */
#include "keep/reclaim.h"

#include <errno.h>
#include <slabyard/limit.h>
#include <stddef.h>

#include "chunk/chunk.h"
#include "chunk/pressure.h"
#include "chunk/quota.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/start.h"
#include "watch/fail.h"
#include "watch/options.h"

enum { OFF, RUNS, ENDING };

static const uint64_t LOOK_NS = 1000000000; /* the longest sleep between two looks at the decay
                                             * time */
static const uint64_t WATCH_NS = 50000000;  /* the same while there is free memory to release */
static const size_t WATCHED_BYTES = 1 << 20;

static _Atomic uint32_t state;
static SY_TLS bool is_it; /* this thread is the maintenance thread */

bool sy_maintenance_runs(void) {
    return atomic_load_explicit(&state, memory_order_relaxed) == RUNS;
}

/* Sets the state OFF, and wakes the threads that wait for it in start and stop. */
static void become_off(void) {
    atomic_store_explicit(&state, OFF, memory_order_release);
    sy_os_wake(&state, 1 << 20);
}

/* Whether the process has free memory that could be released: only then is it worth waking up to
 * look for pressure. */
static bool has_free_memory(void) {
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(&sy_memory_main, &chunks);
    size_t dirty = (chunks.units_free - chunks.units_clean) * SY_UNIT_BYTES;
    return dirty + chunks.large_kept >= WATCHED_BYTES;
}

/* After so many passes that returned nothing, passes are a quarter as frequent: a process that is
 * idle is seldom woken. */
enum { QUIET_PASSES = 8, QUIET_SHIFT = 2 };

static uint64_t next_interval(unsigned quiet) {
    return sy_reclaim_interval() << (quiet >= QUIET_PASSES ? QUIET_SHIFT : 0);
}

/* Sleeps until the next pass by age is due, `quiet` passes after the last one that returned memory.
 * Follows changes of the decay time, and looks for pressure meanwhile. False: the thread was
 * stopped. */
static bool wait_until_due(unsigned quiet) {
    uint64_t began = sy_os_now(), now = began, look = began, longest = LOOK_NS;
    while (atomic_load_explicit(&state, memory_order_acquire) == RUNS) {
        uint64_t interval = next_interval(quiet), past = now - began;
        if (interval && past >= interval) return true;
        if (now >= look) {
            longest = has_free_memory() ? WATCH_NS : LOOK_NS;
            look = now + LOOK_NS;
        }
        uint64_t left = interval ? interval - past : LOOK_NS;
        sy_os_wait_for(&state, RUNS, left < longest ? left : longest);
        now = sy_os_now();
        if (sy_pressure_stalled(now)) sy_reclaim_at_once();
    }
    return false;
}

static void *run(void *unused) {
    is_it = true;
    unsigned quiet = 0;
    while (wait_until_due(quiet)) {
        uint64_t before = sy_reclaim_returned();
        sy_reclaim_by_age();
        quiet = sy_reclaim_returned() > before ? 0 : quiet + 1;
    }
    become_off();
    return unused;
}

int sy_maintenance_start(void) {
    if (sy_start() != 0) return -1; /* so that the hooks of fork are registered */
    for (;;) {
        uint32_t seen = OFF;
        if (atomic_compare_exchange_strong(&state, &seen, RUNS)) break;
        if (seen == RUNS) return 0;
        if (is_it && atomic_compare_exchange_strong(&state, &seen, RUNS)) return 0; /* go on */
        if (!is_it) sy_os_wait(&state, seen);
    }
    if (sy_os_start_thread(run, NULL) == 0) return 0;
    become_off();
    return -1;
}

void sy_maintenance_stop(void) {
    uint32_t seen = RUNS;
    if (atomic_compare_exchange_strong(&state, &seen, ENDING)) {
        sy_os_wake(&state, 1 << 20);
        seen = ENDING;
    }
    while (seen == ENDING && !is_it) {
        sy_os_wait(&state, ENDING);
        seen = atomic_load_explicit(&state, memory_order_acquire);
    }
}

static void forget_thread(void) { atomic_store(&state, OFF); }

/* ---- started by the library ---- */

/* A process that uses less memory does not need the thread. */
static const size_t GROWN_BYTES = (size_t)16 << 20;
static const uint64_t RETRY_NS = UINT64_C(10000000000);

static _Atomic bool waits_for_growth; /* the option is `auto` */
static _Atomic uint64_t next_try;     /* time of the next attempt after a failed one */

/* A child of vfork shares the parent's memory and must not start a thread for it. In a hook of fork
 * no thread can be started. */
static bool may_start(void) { return sy_os_is_own_thread() && !sy_lock_is_forking(); }

/* A thread is not started in a free: when glibc frees the data of ended threads, it holds a lock
 * that pthread_create needs. */
bool sy_maintenance_look(uint64_t now, bool allocates) {
    if (!atomic_load_explicit(&waits_for_growth, memory_order_relaxed)) return false;
    if (atomic_load_explicit(&state, memory_order_relaxed) != OFF) return false;
    if (atomic_load_explicit(&sy_quota_process.used, memory_order_relaxed) < GROWN_BYTES)
        return false;
    if (now < atomic_load_explicit(&next_try, memory_order_relaxed) || !may_start()) return false;
    if (!allocates) return true;
    if (sy_maintenance_start() != 0)
        atomic_store_explicit(&next_try, now + RETRY_NS, memory_order_relaxed);
    return false;
}

/* ---- options ---- */

static void tell_no_thread(void) {
    static const char line[] = "slabyard: the thread that the option \"maintenance\" asks for "
                               "cannot be started\n";
    sy_os_write(sy_os_stderr(), line, sizeof line - 1);
}

/* Carries out the options that were set since the last call. */
static void apply_options(void) {
    int error = errno;
    uint64_t value;
    sy_fail_apply_option();
    if (sy_options_take(SY_LATE_DECAY, &value)) sy_set_decay(value);
    if (sy_options_take(SY_LATE_LIMIT, &value)) sy_set_limit(&(sy_limit){.hard = (size_t)value});
    if (sy_options_take(SY_LATE_MAINTENANCE, &value)) {
        atomic_store(&waits_for_growth, value == SY_MAINTENANCE_AUTO);
        if (value == SY_MAINTENANCE_NO) sy_maintenance_stop();
        if (value == SY_MAINTENANCE_YES && sy_maintenance_start() != 0) tell_no_thread();
    }
    errno = error;
}

static int obey_options(void) {
    sy_options_on_change(apply_options);
    apply_options();
    return 0;
}

const sy_part sy_maintenance_part = {.finish = obey_options, .recover = forget_thread};
