/*
 * limit.h: what happens at a limit in bytes: room is made, somebody is told, the reason is kept.
 *
 *     door -> sy_client_alloc -> refill -> sy_cache_add_slab -> quota: refuses, or notes the
 *        <---------- the reason is noted on the way out ----------|    soft mark
 *     door: make room (drain, empty slabs), call back, once more; at its end: tell
 *
 * Refill works on half-filled magazines and runs constructors, so no callback is called from there,
 * but at the end of the doors, and not at all in doors that a constructor or a callback uses: the
 * quota stays marked until another door of the same owner comes to its end.
 *
 * Used by the slow paths of cache/ and heap/. Below: quota.h, magazine/.
 */
#ifndef SY_CACHE_LIMIT_H
#define SY_CACHE_LIMIT_H

#include "cache/cache.h"
#include "os/start.h"
#include "watch/fail.h"

/* Notes why a refill got nothing, for the door that will come back empty-handed. */
void sy_refuse(sy_refusal reason);

/* The same for a run that was not taken; `refused`: the quota in whose way it was, or NULL. */
void sy_refuse_run(const sy_quota *refused);

/* What doors call in place of sy_client_alloc. False with errno, and the reason is kept. */
bool sy_cache_take(sy_cache *cache, uintptr_t *item);

/* A span of the process's heap in place of sy_run_take; NULL with ENOMEM, and the reason is kept.
 */
sy_slab *sy_limit_take_span(size_t bytes, size_t align, size_t room, bool *clean);

/* sy_run_resize of such a span. */
bool sy_limit_resize_span(sy_slab *span, size_t bytes);

/* A door fails for a reason that no run or refill has noted. */
void sy_limit_refuse(sy_refusal reason);

/* Whether this allocation is made to fail; then it is refused as if the system had no memory. */
static inline bool sy_limit_fail_due(const char *name, size_t size) {
    if (SY_LIKELY(!sy_fail_due(name, size))) return false;
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    return true;
}

/* Calls the callbacks of the quota and its parents whose soft mark was reached, if this thread is
 * at liberty. No lock is held; errno is kept. */
void sy_limit_tell(sy_quota *quota);

/* In the child of a fork what other threads were taking or giving at that moment is counted as what
 * it has become. */
extern SY_HIDDEN const sy_part sy_limits_part;

#endif
