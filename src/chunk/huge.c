/*
 * huge.c: backs ranges with huge pages, and measures how long the system takes for each.
 */
#include "chunk/huge.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "debug/options.h"
#include "os/facts.h"
#include "os/os.h"

/* 512 small pages were measured at 650 to 800 microseconds, a huge page at 90 to 250. If it takes
 * longer than this, the system had to find or make it: that was measured at 4 to 12 ms. */
static const uint64_t SLOW_NS = 500000;

/* The same, with the time that the thread waited. Shorter waits are often other threads' turns on
 * the processor. */
static const uint64_t LATE_NS = 20000000;

/* After a slow one there are none for so many times the time that it took. So at most a 64th of the
 * time goes into slow ones. */
static const uint64_t PAUSE_TIMES = 64;

static _Atomic uint64_t next; /* time before which there is none */

/* Where all programs get huge pages, the administrator prefers time to memory. */
enum { USUAL_PART = 8 };

size_t sy_huge_least(size_t least) {
    bool usual = atomic_load_explicit(&sy_facts_now.huge_is_usual, memory_order_relaxed);
    return usual ? least / USUAL_PART : least;
}

bool sy_huge_is_allowed(size_t units_used) {
    size_t least = atomic_load_explicit(&sy_options_now.huge, memory_order_relaxed) / SY_UNIT_BYTES;
    return least && units_used >= sy_huge_least(least);
}

static bool is_ready(uint64_t now) {
    return now >= atomic_load_explicit(&next, memory_order_relaxed);
}

bool sy_huge_is_ready(void) { return is_ready(sy_os_now()); }

static void note_time(bool done, uint64_t now, uint64_t worked) {
    uint64_t passed = sy_os_now() - now;
    if (done && worked < SLOW_NS && passed < LATE_NS) return;
    uint64_t took = passed > SLOW_NS ? passed : SLOW_NS;
    atomic_store_explicit(&next, now + PAUSE_TIMES * took, memory_order_relaxed);
}

bool sy_huge_back(void *start) {
    uint64_t now = sy_os_now();
    if (!is_ready(now)) return false;
    int error = errno;
    uint64_t before = sy_os_thread_time();
    bool done = sy_os_make_huge(start, SY_HUGE_BYTES) == 0;
    note_time(done, now, sy_os_thread_time() - before);
    errno = error;
    return done;
}
