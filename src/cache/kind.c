/*
 * kind.c: from the flags of a cache to its kind, when the cache is opened.
 */
#include "cache/kind.h"

#include "watch/watch.h"

/* The kind of a cache that has neither handles nor guarded objects. Where objects are checked, the
 * check overwrites what is freed. */
static const sy_kind *basic_kind(unsigned flags) {
    if (flags & SY_PASSED) return &sy_kind_passed;
    if (flags & SY_CHECKED) return &sy_kind_checked;
    return flags & SY_ZERO ? &sy_kind_zeroed : &sy_kind_plain;
}

const sy_kind *sy_kind_for(unsigned flags) {
    static const sy_kind *const over[] = {
        &sy_kind_guarded, &sy_kind_guarded_zeroed, &sy_kind_guarded_checked,
        &sy_kind_named,   &sy_kind_named_zeroed,   &sy_kind_named_checked,
    };
    const sy_kind *basic = basic_kind(flags);
    if (!(flags & (SY_HANDLES | SY_GUARD))) return basic;
    size_t first = flags & SY_HANDLES ? 3 : 0;
    for (size_t i = first; i < first + 3; i++)
        if (over[i]->under == basic) return over[i];
    return basic; /* passed: the C library guards its blocks, and they have no handles */
}
