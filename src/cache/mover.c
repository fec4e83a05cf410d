/*
 * mover.c: one thread at a time moves objects or folds blocks of ordinals, and forks wait for it.
 */
#include "cache/mover.h"

#include "base/fork.h"
#include "magazine/readers.h"
#include "os/os.h"

static SY_TLS char own_mark;        /* its address stands for this thread */
static _Atomic(const char *) mover; /* the thread that is in a step; NULL: none is */
static _Atomic uint32_t steps;      /* have ended; others wait for the next one */
static _Atomic uint32_t waiting;    /* threads that wait to begin a step */
static _Atomic uint32_t forks;      /* under way: no step begins */
static sy_moves at_work;            /* of the mover; on a stack it would be a large frame */

static bool is_mover(void) { return atomic_load(&mover) == &own_mark; }

static bool become_mover(void) {
    const char *none = NULL;
    return atomic_compare_exchange_strong(&mover, &none, &own_mark);
}

static bool await_turn(uint64_t wait_ns) {
    uint64_t now = sy_os_now(), end = now + wait_ns;
    bool begun = false;
    atomic_fetch_add(&waiting, 1);
    for (; !begun && now < end; now = sy_os_now()) {
        uint32_t ended = atomic_load(&steps);
        begun = become_mover();
        if (!begun) sy_os_wait_for(&steps, ended, end - now);
    }
    if (atomic_load(&waiting)) atomic_fetch_sub(&waiting, 1); /* 0 in a child of this thread's */
    return begun;
}

sy_moves *sy_mover_begin(sy_cache *cache, uint64_t wait_ns) {
    if (sy_readers_has_own() || is_mover()) return NULL;
    bool may_begin = wait_ns || !atomic_load_explicit(&waiting, memory_order_relaxed);
    if (!(may_begin && become_mover()) && !(wait_ns && await_turn(wait_ns))) return NULL;
    at_work.cache = cache;
    if (!atomic_load(&forks)) return &at_work;
    sy_mover_end();
    return NULL;
}

void sy_mover_end(void) {
    at_work.chosen = 0;
    sy_fork_order();
    atomic_store(&mover, NULL);
    atomic_fetch_add(&steps, 1);
    if (atomic_load(&forks) || atomic_load(&waiting)) sy_os_wake(&steps, 1 << 20);
}

/* ---- fork ---- */

static SY_TLS uint32_t own_forks; /* nested, by handlers of signals */

static bool another_moves(void) { return atomic_load(&mover) && !is_mover(); }

/* The mover may wait for a lock that this thread holds, if it forks in a handler of a signal; or
 * `relocate` takes long. Then the child begins in the middle of a step. */
static void await_mover(void) {
    uint64_t now = sy_os_now(), end = now + sy_lock_patience_ns;
    own_forks++;
    atomic_fetch_add(&forks, 1);
    for (; now < end; now = sy_os_now()) {
        uint32_t ended = atomic_load(&steps);
        if (!another_moves()) return;
        sy_os_wait_for(&steps, ended, end - now);
    }
}

static void admit_movers(void) {
    own_forks--;
    atomic_fetch_sub(&forks, 1);
}

/* The slots that another thread's step had taken are lost, as retired ones; not if a flush may have
 * been at work on them, and counts are made anew. */
static void abandon_step(void) {
    sy_cache *cache = at_work.cache;
    for (size_t i = 0; i < at_work.chosen; i++)
        sy_moving_abandon(&cache->names, &at_work.objects[i]);
    if (at_work.chosen) {
        uint32_t lost = atomic_exchange(&cache->moving, 0);
        if (!cache->torn) atomic_fetch_add(&cache->retired, lost);
    }
    sy_mover_end();
}

static void forget_mover(void) {
    atomic_store(&forks, own_forks);
    atomic_store(&waiting, 0);
    sy_readers_forget_others();
    if (another_moves()) abandon_step();
}

const sy_part sy_mover_part = {
    .settle = await_mover, .drop = admit_movers, .inherit = forget_mover};
