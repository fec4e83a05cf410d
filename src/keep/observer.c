/*
 * observer.c: reads the facts that change often at intervals, and at once when an allocation has
 * asked for it; all other facts once.
 */
#include "keep/observer.h"

#include "chunk/pressure.h"
#include "os/background.h"
#include "os/facts.h"
#include "os/os.h"
#include "watch/options.h"

_Atomic unsigned sy_observer_saw;

static _Atomic bool ends;
static _Atomic uint64_t interval = 1000000000;
static uintptr_t reader; /* used by the maintenance thread only */

void sy_observer_set_interval(uint64_t ns) {
    uint64_t before = atomic_exchange_explicit(&interval, ns, memory_order_relaxed);
    if (ns < before) sy_facts_ask();
}

/* The options may forbid to read files while the observer runs. */
static void observe_once(void (*read)(void)) {
    if (!atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed)) return;
    read();
    unsigned saw = sy_pressure_take_reading() ? SY_OBSERVER_LIMIT : 0;
    if (sy_pressure_stalled(sy_os_now())) saw |= SY_OBSERVER_STALL;
    if (!saw) return;
    atomic_fetch_or_explicit(&sy_observer_saw, saw, memory_order_release);
    sy_background_call();
}

static void observe(void) {
    atomic_store(&sy_facts_now.observed, true);
    observe_once(sy_facts_read);
    while (!atomic_load_explicit(&ends, memory_order_acquire)) {
        sy_os_wait_for(&sy_facts_asked, 0, atomic_load_explicit(&interval, memory_order_relaxed));
        atomic_exchange_explicit(&sy_facts_asked, 0, memory_order_acquire); /* before `ends` */
        observe_once(sy_facts_read_memory);
    }
    atomic_store(&sy_facts_now.observed, false);
}

/* The observer calls no function of the program, and few of the library. */
static const sy_os_background plan = {.body = observe, .name = "slabyard-facts", .stack = 32 << 10};

bool sy_observer_start(void) {
    atomic_store_explicit(&ends, false, memory_order_relaxed);
    atomic_store_explicit(&sy_facts_asked, 0, memory_order_relaxed);
    return sy_os_start_reader(&plan, &reader) == 0;
}

void sy_observer_end(void) {
    atomic_store_explicit(&ends, true, memory_order_release);
    sy_facts_ask();
    sy_os_end_reader(reader);
}
