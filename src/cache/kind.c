/*
 * kind.c: chooses the kind of a cache by its flags, when the cache is opened.
 */
#include "cache/kind.h"

#include "debug/watch.h"

/* SY_CHECKED comes before SY_ZERO: the kind `checked` overwrites freed objects itself. */
static const sy_kind *basic_kind(unsigned flags) {
    if (flags & SY_PASSED) return &sy_kind_passed;
    if (flags & SY_CHECKED) return &sy_kind_checked;
    return flags & SY_ZERO ? &sy_kind_zeroed : &sy_kind_plain;
}

/* Few larger objects share a page, and to copy one takes longer than a step may (compact.c). */
enum { MOVED_MOST = 8 << 10 };

/* Reports of checked objects name addresses, and records belong to slots. */
static bool may_move(const sy_cache *cache) {
    return !(cache->flags & SY_WATCH_FLAGS & ~(unsigned)SY_ZERO) &&
           cache->layout.slot <= MOVED_MOST;
}

void sy_kind_choose(sy_cache *cache) {
    cache->kind = cache->basic = basic_kind(cache->flags);
    if (cache->flags & SY_PASSED)
        return; /* the C library guards its blocks; they have no handles */
    if (cache->flags & SY_GUARD) cache->kind = &sy_kind_guarded;
    if (cache->flags & SY_HANDLES) cache->kind = &sy_kind_named;
    if (cache->flags & SY_MOVABLE && may_move(cache)) cache->kind = &sy_kind_movable;
    if (cache->kind != &sy_kind_movable) cache->flags &= ~(unsigned)SY_MOVABLE;
}
