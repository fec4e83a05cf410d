/*
 * limit.h: what slow paths do when a limit in bytes is reached: memory is freed, the callback of
 * the limit is called, and the reason of a failure is kept for sy_last_refusal.
 *
 *     sy_cache_take_item -> refill -> sy_cache_add_slab -> quota: refuses, or notes that the
 *        <------------ the reason is noted on the way out ------|  soft mark is reached
 *     sy_limit_make_room frees memory (drains, releases empty slabs), calls the callback;
 *     sy_cache_take_item tries once more
 *     at its end: sy_limit_tell calls the callbacks of quotas whose soft mark was reached
 *
 * A refill works on half-filled magazines and runs constructors, so it calls no callback of a
 * limit. The slow path calls callbacks after its refill. A slow path that runs inside a constructor
 * or a callback calls none. Then the quota stays marked until another slow path of the same owner
 * ends.
 *
 * Used by the slow paths of cache/ and heap/. Below: quota.h, magazine/.
 */
#ifndef SY_CACHE_LIMIT_H
#define SY_CACHE_LIMIT_H

#include "cache/cache.h"
#include "debug/fail.h"
#include "os/start.h"

/* Notes why a refill got nothing, for the allocation that will fail for this reason. */
void sy_refuse(sy_refusal reason);

/* Notes the reason after a run was not taken. `refused`: the quota that refused it, NULL: the
 * system. */
void sy_refuse_run(const sy_quota *refused);

/* After a refill of the cache got nothing: makes room, as far as the last reason allows. Whether a
 * second try may succeed. */
bool sy_limit_make_room(const sy_cache *cache);

/* Counts an allocation of the cache that is refused, and keeps the last reason. */
void sy_limit_count_refusal(sy_cache *cache);

/* After each refill that got nothing: closes this thread's slot of the cache, if it would let the
 * next drain seem worth while. */
void sy_limit_end_miss(sy_cache *cache);

/* Takes a span of the process's heap. The heap calls this in place of sy_run_take. NULL with
 * ENOMEM, and the reason is kept. */
sy_slab *sy_limit_take_span(size_t bytes, size_t align, size_t room, bool *clean);

/* Resizes such a span, in place of sy_run_resize; false: it cannot be. */
bool sy_limit_resize_span(sy_slab *span, size_t bytes);

/* Keeps the reason of an allocation that fails without a run or a refill having noted one. */
void sy_limit_refuse(sy_refusal reason);

/* Whether an injected failure is due at this allocation. Then it is refused as if the system had no
 * memory. */
static inline bool sy_limit_fail_due(const char *name, size_t size) {
    if (SY_LIKELY(!sy_fail_due(name, size))) return false;
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    return true;
}

/* Calls the callbacks of the quota and its parents whose soft mark was reached, unless this thread
 * is in a refill, a constructor or a callback. No lock is held; errno is kept. */
void sy_limit_tell(sy_quota *quota);

/* In the child of a fork, counts the bytes of all quotas anew: other threads of the parent may have
 * been taking or giving memory at the fork. */
extern SY_HIDDEN const sy_part sy_limits_part;

#endif
