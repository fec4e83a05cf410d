/*
 * quota.c: models of a quota's account: it is never above its limit, and exact at rest. One thread
 * calls the callback of the soft mark.
 */
#include "locks.h"

#include "chunk/quota.c"

static sy_quota parent, quota = {.parent = &parent};

sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    (void)memory, (void)bytes, (void)align, (void)room, (void)clean;
    return NULL;
}

static size_t used(const sy_quota *of) { return load_bytes(&of->used); }

static void set(sy_quota *of, size_t soft, size_t hard) {
    atomic_store_explicit(&of->soft, soft, memory_order_relaxed);
    atomic_store_explicit(&of->hard, hard, memory_order_relaxed);
    atomic_store_explicit(&of->armed, true, memory_order_relaxed);
}

enum { FIRST = 3, SECOND = 5 };

static bool charged[2];

static void charge(size_t bytes, bool *done) {
    *done = !sy_quota_charge(&quota, bytes);
    assert(used(&quota) <= load_bytes(&quota.hard) && used(&parent) <= load_bytes(&parent.hard));
}

static void charge_first(void *arg) { charge(FIRST, arg); }

/* Two threads charge more than the limit. */
static void two_charge(size_t hard, size_t parents_hard) {
    model_thread other;
    set(&quota, SIZE_MAX, hard);
    set(&parent, SIZE_MAX, parents_hard);
    model_start(&other, 1, charge_first, &charged[0]);
    charge(SECOND, &charged[1]);
    model_join(&other);
    size_t sum = (charged[0] ? FIRST : 0) + (charged[1] ? SECOND : 0);
    assert(used(&quota) == sum && used(&parent) == sum);
    assert(sum <= 7);
}

MODEL(two_are_not_charged_beyond_the_limit) {
    two_charge(7, SIZE_MAX);
    assert(charged[0] || charged[1]);
}

/* A charge that the parent refuses is not charged to the quota either. */
MODEL(what_the_parent_refuses_is_charged_nowhere) { two_charge(SIZE_MAX, 7); }

static void charge_and_uncharge(void *arg) {
    (void)arg;
    if (sy_quota_charge(&quota, FIRST)) return;
    sy_quota_uncharge(&quota, FIRST);
}

MODEL(what_is_given_back_is_uncharged) {
    model_thread first, second;
    set(&quota, SIZE_MAX, 7);
    set(&parent, SIZE_MAX, SIZE_MAX);
    model_start(&first, 1, charge_and_uncharge, NULL);
    model_start(&second, 2, charge_and_uncharge, NULL);
    bool refused = sy_quota_charge(&quota, SECOND);
    model_join(&first);
    model_join(&second);
    size_t sum = refused ? 0 : SECOND;
    assert(used(&quota) == sum && used(&parent) == sum);
}

static bool told[2];

/* The steps of limit.c. */
static void charge_and_look(void *arg) {
    bool *is_told = arg;
    sy_quota_charge(&quota, FIRST);
    sy_quota_note(&quota);
    *is_told = sy_quota_crossed(&quota) && atomic_exchange(&quota.crossed, false);
}

/* The second of two charges reaches the mark, or the first one does: one thread calls back, once.
 */
static void two_reach(size_t soft) {
    model_thread other;
    set(&quota, soft, SIZE_MAX);
    set(&parent, SIZE_MAX, SIZE_MAX);
    model_start(&other, 1, charge_and_look, &told[0]);
    charge_and_look(&told[1]);
    model_join(&other);
    assert(told[0] != told[1]);
    assert(!sy_quota_crossed(&quota));
    sy_quota_uncharge(&quota, 2 * FIRST);
    bool again;
    charge_and_look(&again);
    assert(again == (soft == FIRST));
}

MODEL(one_of_two_is_told_of_the_mark) { two_reach(2 * FIRST); }

MODEL(one_of_two_is_told_of_a_mark_that_each_passes) { two_reach(FIRST); }
