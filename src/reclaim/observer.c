/*
 * observer.c: reads the facts that change often at intervals, and at once when an allocation has
 * asked for it; all other facts once.
 */
#include "reclaim/observer.h"

#include "base/flag.h"
#include "chunk/pressure.h"
#include "debug/options.h"
#include "os/background.h"
#include "os/facts.h"
#include "os/os.h"

_Atomic unsigned sy_observer_saw;

static const uint64_t CALM_NS = 1000000000, CLOSE_NS = 20000000; /* between two readings */
enum { CLOSE_ALL = 3 }; /* one in so many close readings is of all that changes, not of the stall */

static _Atomic bool ends;
static sy_flag is_close;
static uintptr_t reader; /* used by the maintenance thread only */

void sy_observer_watch(bool closely) {
    if (!atomic_exchange_explicit(&is_close, closely, memory_order_relaxed) && closely)
        sy_facts_ask();
}

/* The options may forbid to read files while the observer runs. */
static void observe_once(void (*read)(void), bool asked) {
    if (!atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed)) return;
    read();
    bool near = read != sy_facts_read_stall && sy_pressure_take_reading(asked);
    unsigned saw = near ? SY_OBSERVER_LIMIT : 0;
    if (sy_pressure_stalled(sy_os_now())) saw |= SY_OBSERVER_STALL;
    if (!saw) return;
    atomic_fetch_or_explicit(&sy_observer_saw, saw, memory_order_release);
    sy_background_call();
}

static void observe(void) {
    atomic_store(&sy_facts_now.observed, true);
    observe_once(sy_facts_read, false);
    unsigned stalls = 0; /* readings of the stall alone since the last one of all */
    for (;;) {
        bool closely = atomic_load_explicit(&is_close, memory_order_relaxed);
        sy_os_wait_for(&sy_facts_asked, 0, closely ? CLOSE_NS : CALM_NS);
        bool asked = atomic_exchange_explicit(&sy_facts_asked, 0, memory_order_acquire);
        if (atomic_load_explicit(&ends, memory_order_acquire)) break;
        bool all = asked || !closely || ++stalls >= CLOSE_ALL;
        if (all) stalls = 0;
        observe_once(all ? sy_facts_read_memory : sy_facts_read_stall, asked);
    }
    atomic_store(&sy_facts_now.observed, false);
}

/* The observer calls no function of the program, and few of the library. */
static const sy_os_background plan = {
    .body = observe, .name = "slabyard-facts", .stack = 32 << 10, .hidden = true};

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
