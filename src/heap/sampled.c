/*
 * sampled.c: decides which allocations are sampled, and makes the samples. See sampled.h.
 *
 * Each allocation is sampled by a chance, which is the same for all objects of a class. So each
 * slot can count the allocations of its class up to the next sample (magazine/countdown.h).
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
#include "debug/profile.h"
#include "debug/stack.h"
#include "heap/classes.h"
#include "magazine/countdown.h"
#include "os/facts.h"
#include "os/os.h"
#include "os/start.h"

enum {
    LOOK_AGAIN = 2000, /* allocations of a class after which a thread looks at the options again */
    RARE = 10000,      /* one allocation in so many or more: samples are apart in time, too */
};
/* A guarded object costs up to 20 microseconds: two system calls, a page, two stacks. So samples
 * take at most half a percent of a processor, however fast the program allocates. */
static const uint64_t APART_NS = 5000000;

static _Atomic(sy_cache *) sampled; /* made at the first sample, never destroyed */

static bool is_object(uintptr_t word) { return sy_owner_at(word) || sy_guard_owns(word); }

/* Two threads may make it at once: one cache is destroyed, unused. NULL: no memory. */
static sy_cache *make_sampled_cache(void) {
    size_t page = sy_os_page_size();
    sy_cache *seen = NULL;
    sy_stack_leave_out(is_object);
    sy_cache *fresh = sy_cache_create(
        &(sy_cache_config){.name = "malloc", .size = page, .align = page, .flags = SY_GUARD});
    if (!fresh || atomic_compare_exchange_strong(&sampled, &seen, fresh)) return fresh;
    sy_cache_destroy(fresh);
    return seen;
}

/* ---- which allocations ---- */

/* What the options say now. */
typedef struct sy_sampling {
    uint32_t every; /* one allocation in so many is guarded; 0: none */
    double guard;   /* the chance of an allocation to be guarded, */
    double profile; /* to be in the profile, */
    double chance;  /* and to be at least one of both */
    int32_t tag;    /* differs, most likely, from the tag of other options; 0: nothing is sampled */
} sy_sampling;

/* For objects of so many bytes. */
static sy_sampling sampling_now(size_t bytes) {
    sy_sampling now = {.every = 0};
    if (sy_start() != 0) return now;
    uint64_t mean = sy_profile_mean();
    now.every = atomic_load_explicit(&sy_options_now.sample_every, memory_order_relaxed);
    if (!now.every && !mean) return now;
    now.guard = now.every ? 1.0 / now.every : 0;
    now.profile = sy_profile_chance(bytes, mean);
    now.chance = now.guard + now.profile - now.guard * now.profile;
    now.tag = sy_countdown_tag(now.every + (mean << 32));
    return now;
}

/* Counts an allocation, if it is not counted yet. Returns whether it is sampled. A thread whose
 * slot has no magazine cannot count, and asks chance for each allocation. */
static bool counts_out(unsigned class_number, sy_sampling *now) {
    sy_loaded_slot *slot = sy_countdown_slot(class_number);
    int32_t *word = slot ? sy_countdown_of(slot) : NULL;
    if (word && *word >= 0 && !sy_countdown_ends(slot)) return false;
    *now = sampling_now(sy_class_size(class_number));
    if (word) return sy_countdown_end(word, now->tag, now->chance, LOOK_AGAIN);
    return now->chance > 0 && sy_chance(now->chance);
}

/* Whether the last sample of the process is long enough ago. Then this one counts as the last. */
static bool is_apart(const sy_sampling *now) {
    static _Atomic uint64_t next;
    if (now->every < RARE) return true;
    uint64_t time = sy_os_now(), when = atomic_load_explicit(&next, memory_order_relaxed);
    return time >= when && atomic_compare_exchange_strong(&next, &when, time + APART_NS);
}

/* ---- guarded samples ---- */

/* Injected failures are counted by the size classes, which would miss a sampled allocation. */
static bool can_guard(size_t size, size_t align) {
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
static void *make_guarded_sample(const sy_sampling *now, size_t size, size_t align) {
    sy_cache *cache = can_guard(size, align) && is_apart(now) ? sampled_cache() : NULL;
    return cache && sy_cache_guards(cache) ? sy_guarded_make(cache, size, align) : NULL;
}

/* ---- samples ---- */

/* A sample may be guarded, in the profile, or both. An object that is only in the profile lies in a
 * slab apart: its free is noticed there. */
static SY_COLD void *make_sample(const sy_sampling *now, unsigned class_number, size_t size,
                                 size_t align) {
    bool profiled = now->profile > 0 && sy_chance(now->profile / now->chance);
    bool guarded = now->guard > 0 && (!profiled || sy_chance(now->guard));
    void *object = guarded ? make_guarded_sample(now, size, align) : NULL;
    if (!object && profiled && !atomic_load_explicit(&sy_fail_armed, memory_order_relaxed))
        object = sy_class_alloc_apart(class_number);
    if (object && profiled) sy_profile_note(object, size, now->profile, SY_PROFILE_FREES_SEEN);
    return object;
}

SY_COLD void *sy_sampled_alloc(unsigned class_number, size_t size, size_t align) {
    sy_cpu_keep_frame();
    sy_sampling now;
    int error = errno;
    void *object =
        counts_out(class_number, &now) ? make_sample(&now, class_number, size, align) : NULL;
    errno = error;
    return object;
}

SY_COLD void sy_sampled_span(const void *object, size_t size) {
    sy_cpu_keep_frame();
    double chance = sy_profile_chance(size, sy_profile_mean());
    if (sy_profile_counter) sy_profile_count(object, size);
    if (chance > 0 && sy_chance(chance))
        sy_profile_note(object, size, chance, SY_PROFILE_FREES_SEEN);
}

bool sy_sampled_owns(const void *cache) {
    return cache && cache == atomic_load_explicit(&sampled, memory_order_acquire);
}
