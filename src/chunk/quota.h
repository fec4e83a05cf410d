/*
 * quota.h: bytes of slabs and spans, counted for an owner, and their limit.
 *
 *     cache -> its heap's quota -> the process's
 *     cache, span of sy_malloc --> the process's
 *
 * A run is charged to every quota on its way before it is taken and uncharged after it was given,
 * so used is never less than what is held:
 *
 *     used == bytes of runs held + of those being taken or given at this moment
 *
 * This file only counts, without locks. cache/limit.h acts on a refusal and calls the callback of
 * the soft mark. Below: chunk.h. Above: cache/.
 */
#ifndef SY_CHUNK_QUOTA_H
#define SY_CHUNK_QUOTA_H

#include <slabyard/limit.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "chunk/chunk.h"

typedef struct sy_quota {
    struct sy_quota *parent;    /* never changes; NULL: none */
    _Atomic size_t hard, soft;  /* SIZE_MAX: none */
    sy_limit_callback callback; /* guarded by the start's lock, with its argument */
    void *arg;
    _Atomic bool crossed;  /* the soft mark was reached, and the callback is still to be called */
    _Atomic bool armed;    /* the next time that the soft mark is reached sets `crossed` */
    _Atomic size_t used;   /* bytes */
    _Atomic uint64_t hits; /* allocations refused */
} sy_quota;

extern SY_HIDDEN sy_quota sy_quota_process;

/* Whether a limit can be set: the callback has a mark, the mark a limit above it. */
bool sy_limit_valid(const sy_limit *limit);

/* Sets the limit of a quota; `used` stays. The start's lock is held, or no other thread knows the
 * quota yet. */
void sy_quota_set(sy_quota *quota, const sy_limit *limit);

/* Charges `bytes` to the quota (NULL: to none) and its parents. NULL, or the quota that refused,
 * and nothing is charged. */
sy_quota *sy_quota_charge(sy_quota *quota, size_t bytes);
void sy_quota_uncharge(sy_quota *quota, size_t bytes);

/* Bytes that this thread is about to charge, or has charged and does not hold yet, or not any more:
 * in the child of its fork they count besides what is held. */
extern SY_HIDDEN SY_TLS size_t sy_quota_in_hand;

/* Notes where the soft mark is reached: after a charge that came to something. */
void sy_quota_note(sy_quota *quota);

/* sy_run_take and sy_run_give, charged to the quota; *refused: the quota for which it gave NULL, or
 * NULL. */
sy_slab *sy_quota_take_run(sy_quota *quota, sy_memory *memory, size_t bytes, size_t align,
                           size_t room, bool *clean, sy_quota **refused);
void sy_quota_give_run(sy_quota *quota, sy_slab *run);

/* Whether the callback of the quota or of a parent is still to be called. */
static inline bool sy_quota_crossed(const sy_quota *quota) {
    for (; quota; quota = quota->parent)
        if (SY_UNLIKELY(atomic_load_explicit(&quota->crossed, memory_order_relaxed))) return true;
    return false;
}

#endif
