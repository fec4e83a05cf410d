/*
 * tags.c: see tags.h. Names are added under the lock and never change, so a thread that has a tag's
 * number reads its name without the lock. The threads that allocate and free change the counters:
 *
 *     live == allocations - frees        live_bytes <= peak_bytes
 *
 * An allocation is counted before the object reaches the program, so its free cannot be counted
 * earlier.
 */
#include "debug/tags.h"

#include <errno.h>
#include <string.h>

#include "debug/callback.h"
#include "os/lock.h"

static sy_lock lock = SY_LOCK_INIT(SY_RANK_TAGS);
sy_tag_table sy_tags;
static SY_TLS sy_tag current;

/* ---- names ---- */

static sy_tag find_tag(const char *name, sy_tag end) {
    sy_tag tag = 0;
    while (tag < end && strncmp(sy_tags.names[tag], name, SY_TAG_NAME_MAX) != 0) tag++;
    return tag;
}

/* Finds the tag or adds it. The lock is held. */
static sy_tag add_tag(const char *name) {
    SY_HOLDS(&lock);
    sy_tag end = atomic_load_explicit(&sy_tags.last, memory_order_relaxed) + 1;
    sy_tag tag = find_tag(name, end);
    if (tag < end || tag == SY_TAGS) return tag;
    /* strncpy fills the rest with zeros: a thread that a fork lost may have written there. */
    strncpy(sy_tags.names[tag], name, SY_TAG_NAME_MAX);
    atomic_store_explicit(&sy_tags.last, tag, memory_order_release);
    return tag;
}

sy_tag sy_tag_open(const char *name) {
    sy_lock_acquire(&lock);
    sy_tag tag = add_tag(name);
    sy_lock_release(&lock);
    if (tag < SY_TAGS) return tag;
    errno = ENOMEM;
    return 0;
}

sy_tag sy_tag_set(sy_tag tag) {
    sy_tag before = current;
    current = tag <= atomic_load_explicit(&sy_tags.last, memory_order_acquire) ? tag : 0;
    return before;
}

sy_tag sy_tag_of_thread(void) { return current; }

static void hold_names(void) { sy_lock_hold(&lock); }

static void drop_names(void) { sy_lock_drop(&lock); }

const sy_part sy_tags_part = {.hold = hold_names, .drop = drop_names};

/* ---- counts ---- */

static void raise_peak(_Atomic size_t *peak, size_t bytes) {
    size_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < bytes && !atomic_compare_exchange_weak_explicit(
                               peak, &seen, bytes, memory_order_relaxed, memory_order_relaxed)) {}
}

sy_tag sy_tag_count_allocation(size_t size) {
    sy_tag_counts *of = &sy_tags.counts[current];
    atomic_fetch_add_explicit(&of->allocations, 1, memory_order_relaxed);
    size_t before = atomic_fetch_add_explicit(&of->live_bytes, size, memory_order_relaxed);
    raise_peak(&of->peak_bytes, before + size);
    return current;
}

/* Release: a thread that sees this free also sees the allocation. */
void sy_tag_count_free(sy_tag tag, size_t size) {
    atomic_fetch_sub_explicit(&sy_tags.counts[tag].live_bytes, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&sy_tags.counts[tag].frees, 1, memory_order_release);
}

static sy_tag_stats stats_of(sy_tag tag) {
    sy_tag_counts *of = &sy_tags.counts[tag];
    sy_tag_stats stats = {.tag = tag};
    memcpy(stats.name, sy_tags.names[tag], sizeof stats.name);
    stats.frees = atomic_load_explicit(&of->frees, memory_order_acquire);
    stats.allocations = atomic_load_explicit(&of->allocations, memory_order_relaxed);
    stats.live = (size_t)(stats.allocations - stats.frees);
    stats.live_bytes = atomic_load_explicit(&of->live_bytes, memory_order_relaxed);
    stats.peak_bytes = atomic_load_explicit(&of->peak_bytes, memory_order_relaxed);
    if (stats.peak_bytes < stats.live_bytes)
        stats.peak_bytes = stats.live_bytes; /* not yet raised */
    return stats;
}

int sy_tag_each(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg) {
    sy_tag last = atomic_load_explicit(&sy_tags.last, memory_order_acquire);
    int result = 0;
    for (sy_tag tag = 0; tag <= last && result == 0; tag++) {
        sy_tag_stats stats = stats_of(tag);
        SY_CALLBACK(call, .function = "visitor of sy_tag_each");
        result = visit(arg, &stats);
        call.returned = true;
    }
    return result;
}
