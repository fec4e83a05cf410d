/*
 * gauge.c: samples the gauge of the span that is watched.
 */
#include "chunk/gauge.h"

#include "os/os.h"

enum {
    /* A gauge counts as written if 10 of 16 sampled pages have memory: up to a unit at the end of
     * the span, four samples of the smallest gauge, may lie beyond the object. */
    PAGES = 16,
    WRITTEN = 10,
};

/* Looks at a word in each quarter of a page that was never written before: a program may write some
 * zeros. */
static bool page_is_written(const char *start) {
    const size_t quarter = sy_os_page_size() / 4;
    for (size_t i = 0; i < 4; i++)
        if (sy_os_is_written(start + i * quarter + i * sizeof(uint32_t))) return true;
    return false;
}

static uint32_t mix(uint32_t number) { return number * UINT32_C(2654435769) >> 16; }

/* Looks at a place in each part that depends on no distance: a program may write each 16th page. It
 * ends when no other page can change the answer. */
static bool gauge_is_written(uintptr_t gauge, size_t bytes) {
    size_t written = 0;
    const size_t part = bytes / PAGES, page = sy_os_page_size();
    for (uint32_t i = 0; i < PAGES && written < WRITTEN && written + PAGES - i >= WRITTEN; i++) {
        const size_t at = part > page ? mix(i) % (part / page) * page : 0;
        written += page_is_written((char *)gauge + part * i + at);
    }
    return written >= WRITTEN;
}

bool sy_gauge_look(sy_memory *memory, const sy_slab *ended) {
    sy_lock_acquire(&memory->large_lock);
    const sy_slab *watched = memory->watched;
    uintptr_t gauge = memory->gauge;
    size_t bytes = memory->gauge_bytes;
    bool dense = memory->dense;
    sy_lock_release(&memory->large_lock);
    if (!watched || (ended && watched != ended)) return dense;
    dense = gauge_is_written(gauge, bytes);
    if (!dense && !ended) return false;
    sy_lock_acquire(&memory->large_lock);
    if (memory->watched == watched) {
        memory->dense = dense;
        memory->watched = NULL;
    }
    sy_lock_release(&memory->large_lock);
    return dense;
}

bool sy_gauge_set(sy_memory *memory, const sy_slab *span, size_t from, size_t to) {
    sy_lock_acquire(&memory->large_lock);
    bool can = !memory->watched || !memory->watched_huge;
    if (can) {
        memory->gauge = span->start + from;
        memory->gauge_bytes = to - from;
        memory->watched_huge = from > 0;
        memory->watched = span;
    }
    sy_lock_release(&memory->large_lock);
    return can;
}

void sy_gauge_without_huge(sy_memory *memory, const sy_slab *span) {
    sy_lock_acquire(&memory->large_lock);
    if (memory->watched == span) memory->watched_huge = false;
    sy_lock_release(&memory->large_lock);
}
