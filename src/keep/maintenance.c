/*
 * maintenance.c: the thread that does passes by age, where a program wants one.
 *
 *     OFF --start--> RUNS --stop--> ENDING --the thread--> OFF
 */
#include <stddef.h>

#include "keep/reclaim.h"
#include "keep/start.h"
#include "os/os.h"

enum { OFF, RUNS, ENDING };

static const uint64_t LOOK_NS = 1000000000; /* from one look at the decay to the next, at most */

static _Atomic uint32_t state;
static SY_TLS bool is_it; /* this thread is the one */

bool sy_maintenance_runs(void) {
    return atomic_load_explicit(&state, memory_order_relaxed) == RUNS;
}

/* Whoever stops it, or starts it again, waits for that. */
static void become_off(void) {
    atomic_store_explicit(&state, OFF, memory_order_release);
    sy_os_wake(&state, 1 << 20);
}

/* Sleeps until the next pass is due, by the decay of then; false: it was stopped. */
static bool wait_until_due(void) {
    uint64_t began = sy_os_now();
    while (atomic_load_explicit(&state, memory_order_acquire) == RUNS) {
        uint64_t interval = sy_reclaim_interval(), past = sy_os_now() - began;
        if (interval && past >= interval) return true;
        uint64_t left = interval ? interval - past : LOOK_NS;
        sy_os_wait_for(&state, RUNS, left < LOOK_NS ? left : LOOK_NS);
    }
    return false;
}

static void *run(void *unused) {
    is_it = true;
    while (wait_until_due()) sy_reclaim_by_age();
    become_off();
    return unused;
}

int sy_maintenance_start(void) {
    if (sy_start() != 0) return -1; /* a fork is noticed from then on */
    for (;;) {
        uint32_t seen = OFF;
        if (atomic_compare_exchange_strong(&state, &seen, RUNS)) break;
        if (seen == RUNS) return 0;
        if (is_it && atomic_compare_exchange_strong(&state, &seen, RUNS)) return 0; /* it goes on */
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

void sy_maintenance_recover(void) { atomic_store(&state, OFF); }
