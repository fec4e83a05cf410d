/*
 * quota.h: counts the bytes of slabs and spans that an owner holds, and keeps them below a limit.
 *
 *     cache -> its heap's quota -> the process's
 *     cache, span of sy_malloc --> the process's
 *
 * A run is charged to each quota along these arrows before it is taken, and uncharged after it was
 * given back. So `used` is never less than the bytes held:
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

#include "base/flag.h"
#include "chunk/chunk.h"

typedef struct sy_quota {
    struct sy_quota *parent;    /* never changes; NULL: none */
    _Atomic size_t hard, soft;  /* SIZE_MAX: none */
    sy_limit_callback callback; /* guarded by the start's lock, as is `arg` */
    void *arg;
    sy_flag crossed;     /* the soft mark was reached, and the callback is still to be called */
    sy_flag armed;       /* the next time that the soft mark is reached sets `crossed` */
    _Atomic size_t used; /* bytes */
    _Atomic(struct sy_cache *) caches; /* of a heap: linked by of_quota, the newest first */
    size_t found;                      /* bytes that the child of a fork has found so far */
    _Atomic uint64_t hits;             /* allocations refused */
} sy_quota;

extern SY_HIDDEN sy_quota sy_quota_process;

/* Whether the limit is valid: a soft mark is not above the hard limit, and has a callback. */
bool sy_limit_valid(const sy_limit *limit);

/* Sets the limit of a quota and keeps `used`. The caller holds the start's lock, or no other thread
 * knows the quota yet. */
void sy_quota_set(sy_quota *quota, const sy_limit *limit);

/* The limit that was set last. The same locks. */
sy_limit sy_quota_limit(const sy_quota *quota);

/* Charges `bytes` to the quota (NULL: to none) and its parents. Returns NULL, or the quota that
 * refused; then nothing is charged. */
sy_quota *sy_quota_charge(sy_quota *quota, size_t bytes);
void sy_quota_uncharge(sy_quota *quota, size_t bytes);

/* In the child of a fork: sets `used` to `found`. If this is less, an uncharge of more than an
 * account has sets it to 0 from then on. */
void sy_quota_recount(sy_quota *quota);

/* Bytes of runs that this thread is taking or giving back at this moment. If it forks meanwhile,
 * the child counts them in addition to the runs that are held. */
extern SY_HIDDEN SY_TLS size_t sy_quota_in_hand;

/* Called after a run was charged and taken: notes each quota whose soft mark is reached. */
void sy_quota_note(sy_quota *quota);

/* sy_run_take and sy_run_give, which also charge and uncharge the quota. If a quota refused, the
 * result is NULL and *refused is that quota; else *refused is NULL. */
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
