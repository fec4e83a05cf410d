/*
 * sampled.c: decides in malloc's slow path whether an allocation is guarded, and begins the next
 * interval. See sampled.h.
 */
#include "heap/sampled.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "cache/cache.h"
#include "cache/guarded.h"
#include "debug/fail.h"
#include "debug/interval.h"
#include "debug/options.h"
#include "os/facts.h"
#include "os/os.h"
#include "os/start.h"

enum {
    LOOK_AGAIN = 10000, /* while the option is off, a thread looks at it again after so many */
    RARE = 10000,       /* one allocation in so many or more: samples are apart in time, too */
};
/* A sampled object costs up to 20 microseconds: two system calls, a page, two stacks. So samples
 * take at most half a percent of a processor, however fast the program allocates. */
static const uint64_t APART_NS = 5000000;

SY_TLS int64_t sy_sample_left;

/* The mean of this thread's interval; 0: the interval does not end in a sample. */
static SY_TLS uint32_t interval_mean;
static _Atomic(sy_cache *) sampled; /* made at the first sample, never destroyed */

/* Two threads may make it at once: one cache is destroyed, unused. NULL: no memory. */
static sy_cache *make_sampled_cache(void) {
    size_t page = sy_os_page_size();
    sy_cache *seen = NULL;
    sy_cache *fresh = sy_cache_create(
        &(sy_cache_config){.name = "malloc", .size = page, .align = page, .flags = SY_GUARD});
    if (!fresh || atomic_compare_exchange_strong(&sampled, &seen, fresh)) return fresh;
    sy_cache_destroy(fresh);
    return seen;
}

/* The option as it is now; 0: off, or the library cannot start yet. */
static uint32_t sample_every(void) {
    if (sy_start() != 0) return 0;
    return atomic_load_explicit(&sy_options_now.sample_every, memory_order_relaxed);
}

static void begin_sample_interval(void) {
    interval_mean = sample_every();
    sy_sample_left = interval_mean ? sy_interval_next(interval_mean) - 1 : LOOK_AGAIN;
}

/* Whether this allocation ends an interval in a sample. Begins the next interval. The first one of
 * a thread begins with this allocation, and ends with it too if it is one allocation long. */
static bool ends_interval(void) {
    bool ends = interval_mean;
    begin_sample_interval();
    if (!interval_mean) return false;
    bool at_once = !ends && !sy_sample_left;
    if (at_once) begin_sample_interval();
    return ends || at_once;
}

/* Whether the last sample of the process is long enough ago. Then this one counts as the last. */
static bool is_apart(void) {
    static _Atomic uint64_t next;
    if (interval_mean < RARE) return true;
    uint64_t now = sy_os_now(), when = atomic_load_explicit(&next, memory_order_relaxed);
    return now >= when && atomic_compare_exchange_strong(&next, &when, now + APART_NS);
}

/* Injected failures are counted by the size classes, which would miss a sampled allocation. */
static bool can_sample(size_t size, size_t align) {
    return size <= sy_os_page_size() && align <= sy_os_page_size() &&
           !atomic_load_explicit(&sy_fail_armed, memory_order_relaxed);
}

/* NULL where address space is limited: the 260 MiB of guarded objects and their stacks would be
 * missing elsewhere. */
static sy_cache *sampled_cache(void) {
    sy_cache *cache = atomic_load_explicit(&sampled, memory_order_acquire);
    if (cache || atomic_load_explicit(&sy_facts_now.space_is_limited, memory_order_relaxed))
        return cache;
    return make_sampled_cache();
}

/* Options such as `lock` and `tools=malloc` say where objects have to lie. Then the cache guards
 * none. */
SY_COLD void *sy_malloc_sampled(size_t size, size_t align) {
    sy_cpu_keep_frame();
    int error = errno;
    bool due = ends_interval() && can_sample(size, align) && is_apart();
    sy_cache *cache = due ? sampled_cache() : NULL;
    errno = error;
    return cache && sy_cache_guards(cache) ? sy_guarded_make(cache, size, align) : NULL;
}

bool sy_sampled_owns(const void *cache) {
    return cache && cache == atomic_load_explicit(&sampled, memory_order_acquire);
}
