/*
 * quota.c: charges the bytes of a slab or span to its cache, its heap and the process before it is
 * taken, and uncharges them after it was given back.
 */
#include "chunk/quota.h"

#include <errno.h>

#include "base/bits.h"
#include "os/invariant.h"

enum { REARM_SHARE = 8 }; /* of the soft mark: so far below it the callback is armed again */

sy_quota sy_quota_process = {.hard = SIZE_MAX, .soft = SIZE_MAX};

/* ---- the limit ---- */

bool sy_limit_valid(const sy_limit *limit) {
    bool valid = !limit->hard || limit->soft <= limit->hard;
    if (limit->soft && !limit->callback) valid = false;
    for (size_t i = 0; i < sizeof limit->reserved / sizeof *limit->reserved; i++)
        if (limit->reserved[i]) valid = false;
    return valid;
}

void sy_quota_set(sy_quota *quota, const sy_limit *limit) {
    quota->callback = limit->callback;
    quota->arg = limit->arg;
    atomic_store_explicit(&quota->hard, limit->hard ? limit->hard : SIZE_MAX, memory_order_relaxed);
    atomic_store_explicit(&quota->soft, limit->soft ? limit->soft : SIZE_MAX, memory_order_relaxed);
    atomic_store(&quota->crossed, false);
    atomic_store(&quota->armed, true);
    sy_quota_note(quota);
}

static size_t or_none(size_t bytes) { return bytes == SIZE_MAX ? 0 : bytes; }

sy_limit sy_quota_limit(const sy_quota *quota) {
    return (sy_limit){.hard = or_none(atomic_load_explicit(&quota->hard, memory_order_relaxed)),
                      .soft = or_none(atomic_load_explicit(&quota->soft, memory_order_relaxed)),
                      .callback = quota->callback,
                      .arg = quota->arg};
}

/* ---- the account ---- */

/* Whether this process is the child of a fork and has found less than an account had. If the fork
 * interrupted this thread while it made or released a slab, the account lacks this slab. */
static bool counted_less;

void sy_quota_recount(sy_quota *quota) {
    if (quota->found < atomic_exchange(&quota->used, quota->found)) counted_less = true;
}

static size_t load_bytes(const _Atomic size_t *bytes) {
    return atomic_load_explicit(bytes, memory_order_relaxed);
}

static bool charge_one(sy_quota *quota, size_t bytes) {
    size_t used = load_bytes(&quota->used);
    do {
        size_t hard = load_bytes(&quota->hard);
        if (used > hard || bytes > hard - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(&quota->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void uncharge_one(sy_quota *quota, size_t bytes) {
    size_t before = load_bytes(&quota->used), used;
    do {
        SY_INVARIANT(before >= bytes || counted_less);
        used = before > bytes ? before - bytes : 0;
    } while (!atomic_compare_exchange_weak_explicit(&quota->used, &before, used,
                                                    memory_order_relaxed, memory_order_relaxed));
    size_t soft = load_bytes(&quota->soft);
    if (used < soft - soft / REARM_SHARE &&
        !atomic_load_explicit(&quota->armed, memory_order_relaxed))
        atomic_store(&quota->armed, true);
}

sy_quota *sy_quota_charge(sy_quota *quota, size_t bytes) {
    for (sy_quota *next = quota; next; next = next->parent) {
        if (charge_one(next, bytes)) continue;
        for (; quota != next; quota = quota->parent) uncharge_one(quota, bytes);
        return next;
    }
    return NULL;
}

void sy_quota_uncharge(sy_quota *quota, size_t bytes) {
    for (; quota; quota = quota->parent) uncharge_one(quota, bytes);
}

void sy_quota_note(sy_quota *quota) {
    for (; quota; quota = quota->parent)
        if (load_bytes(&quota->used) >= load_bytes(&quota->soft) &&
            atomic_exchange(&quota->armed, false))
            atomic_store(&quota->crossed, true);
}

/* ---- runs ---- */

SY_TLS size_t sy_quota_in_hand;

/* A large span that was kept for reuse may be longer than wanted. The rest is charged too; if a
 * quota refuses it, the span is cut. Returns the quota that refused, if the span cannot be cut
 * either. */
static sy_quota *charge_rest(sy_quota *quota, sy_slab *run, size_t charged) {
    if (run->bytes <= charged) return NULL;
    sy_quota *refused = sy_quota_charge(quota, run->bytes - charged);
    bool cut = refused && sy_run_resize(run, charged) && run->bytes == charged;
    return cut ? NULL : refused;
}

/* `charged`: `bytes`, rounded up to units. */
static sy_slab *take_and_charge(sy_quota *quota, sy_memory *memory, size_t bytes, size_t charged,
                                size_t align, size_t room, bool *clean, sy_quota **refused) {
    *refused = sy_quota_charge(quota, charged);
    if (*refused) return NULL;
    sy_slab *run = sy_run_take(memory, bytes, align, room, clean);
    if (run) *refused = charge_rest(quota, run, charged);
    if (run && !*refused) return run;
    if (run) sy_run_give(run);
    sy_quota_uncharge(quota, charged);
    return NULL;
}

sy_slab *sy_quota_take_run(sy_quota *quota, sy_memory *memory, size_t bytes, size_t align,
                           size_t room, bool *clean, sy_quota **refused) {
    bool possible = bytes <= SY_RUN_BYTES_MAX; /* else it would seem that a limit refused it */
    size_t charged = possible ? sy_round_up(bytes, SY_UNIT_BYTES) : 0;
    *refused = NULL;
    sy_quota_in_hand += charged;
    sy_slab *run = NULL;
    if (possible) run = take_and_charge(quota, memory, bytes, charged, align, room, clean, refused);
    sy_quota_in_hand -= charged;
    if (run)
        sy_quota_note(quota);
    else
        errno = ENOMEM;
    return run;
}

void sy_quota_give_run(sy_quota *quota, sy_slab *run) {
    size_t bytes = run->bytes;
    sy_quota_in_hand += bytes;
    sy_run_give(run);
    sy_quota_uncharge(quota, bytes);
    sy_quota_in_hand -= bytes;
}
