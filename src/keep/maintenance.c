/*
 * maintenance.c: the thread that does passes by age, where a program wants one.
 *
 *     OFF --start--> RUNS --stop--> ENDING --the thread--> OFF
 */
#include <stddef.h>

#include "keep/reclaim.h"
#include "os/os.h"

enum { OFF, RUNS, ENDING };

static const uint64_t IDLE_NS = 1000000000; /* between looks whether there is a decay again */

static _Atomic uint32_t state;

bool sy_maintenance_runs(void) {
    return atomic_load_explicit(&state, memory_order_relaxed) == RUNS;
}

static void *run(void *unused) {
    while (atomic_load_explicit(&state, memory_order_acquire) == RUNS) {
        uint64_t interval = sy_reclaim_interval();
        sy_os_wait_for(&state, RUNS, interval ? interval : IDLE_NS);
        if (interval && sy_maintenance_runs()) sy_reclaim_by_age();
    }
    atomic_store_explicit(&state, OFF, memory_order_release);
    sy_os_wake(&state, 1 << 20);
    return unused;
}

int sy_maintenance_start(void) {
    for (;;) {
        uint32_t seen = OFF;
        if (atomic_compare_exchange_strong(&state, &seen, RUNS)) break;
        if (seen == RUNS) return 0;
        sy_os_wait(&state, seen);
    }
    if (sy_os_start_thread(run, NULL) == 0) return 0;
    atomic_store_explicit(&state, OFF, memory_order_release);
    return -1;
}

void sy_maintenance_stop(void) {
    uint32_t seen = RUNS;
    if (atomic_compare_exchange_strong(&state, &seen, ENDING)) {
        sy_os_wake(&state, 1 << 20);
        seen = ENDING;
    }
    while (seen == ENDING) {
        sy_os_wait(&state, ENDING);
        seen = atomic_load_explicit(&state, memory_order_acquire);
    }
}

void sy_maintenance_recover(void) { atomic_store(&state, OFF); }
