/*
 * profiled.c: changes the kinds of clients when a profile begins or ends, and decides which
 * allocations are sampled. See profiled.h.
 */
#include "magazine/profiled.h"

#include "debug/interval.h"
#include "debug/options.h"
#include "magazine/client.h"
#include "magazine/roster.h"
#include "magazine/sleepers.h"
#include "magazine/slot.h"

/* ---- which allocations ---- */

bool sy_client_samples(sy_client *client, double *chance) {
    sy_thread *thread = sy_thread_running();
    SY_INSIDE(thread);
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    bool counts = slot->loaded != NULL;
    if (counts && slot->countdown >= 0) return false;
    uint64_t mean = sy_profile_mean();
    *chance = sy_profile_chance(client->config.item_bytes, mean);
    if (!counts) return *chance > 0 && sy_chance(*chance);
    bool samples =
        sy_countdown_end(&slot->countdown, sy_countdown_tag(mean), *chance, SY_COUNTDOWN_MAX - 1);
    if (sy_client_is_profiled(client)) sy_profiled_arm(slot);
    return samples;
}

void sy_profiled_renew(sy_slot *slot) {
    int32_t tag = sy_countdown_tag(sy_profile_mean());
    if ((slot->countdown & SY_COUNTDOWN_TAG) != tag) slot->countdown = 0;
}

/* ---- beginning and ending ---- */

enum { TRIES = 100 }; /* to find a thread outside of its slow paths, which take microseconds */

static uintptr_t *const above_all = (uintptr_t *)UINTPTR_MAX;

/* Guarded by the lock of the thread list. */
static bool on;
static uint64_t mean_then; /* at the last change */

/* The drop-in malloc samples objects of size classes itself (heap/sampled.h). */
static bool may_profile(const sy_client_config *config) {
    return config->profiled && !(config->number && sy_threads_may_be_reached());
}

const sy_client_kind *sy_profiled_kind(const sy_client_config *config) {
    SY_HOLDS_THREADS();
    return on && may_profile(config) ? &sy_client_profiled : config->kind;
}

/* Changes the kinds. Each thread opens its slots anew, in its next slow path. Returns whether any
 * kind has changed. */
static bool change_kinds(void) {
    SY_HOLDS_THREADS();
    bool any = false;
    unsigned number = 0;
    for (sy_client *client; (client = sy_client_next_locked(number)) != NULL;) {
        number = client->number;
        if (!may_profile(&client->config)) continue;
        atomic_store_explicit(&client->kind, sy_profiled_kind(&client->config),
                              memory_order_relaxed);
        atomic_fetch_add_explicit(&client->generation, 1, memory_order_release);
        any = true;
    }
    return any;
}

/* Makes the next operation of each slot take the slow path. The thread is in none. It may have
 * opened a slot anew already. */
static void shut_slots_of(sy_thread *thread) {
    unsigned end = atomic_load_explicit(&thread->slots_end, memory_order_relaxed);
    bool places = thread->placed[0] | thread->placed[1]; /* their slots may lie behind the others */
    if (places && end < SY_PLACED_END) end = SY_PLACED_END;
    for (unsigned number = SY_CLIENT_FIRST; number < end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        const sy_client *client = sy_roster_at(number);
        if (!client || !sy_client_is_profiled(client) || !(slot->loaded || slot->top)) continue;
        __atomic_store_n(&slot->base, above_all, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->limit, NULL, __ATOMIC_RELAXED);
    }
}

/* A thread that is not found outside of its slow paths, or that cannot be held because the system
 * has no barrier or must not be asked (as in readers.c), opens its slots anew when it next comes to
 * a slow path by itself. */
static SY_COLD void shut_thread(sy_thread *thread) {
    bool may_hold = atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed);
    uint32_t state = atomic_load_explicit(&thread->state, memory_order_relaxed);
    if (thread == sy_thread_running()) {
        if (!sy_thread_is_inside(thread)) shut_slots_of(thread);
    } else if (state == SY_THREAD_PARKED && sy_thread_claim(thread)) {
        shut_slots_of(thread);
        sy_thread_unclaim(thread);
    } else if (state == SY_THREAD_RUNNING || state == SY_THREAD_PARKED) {
        bool held = false;
        for (int i = 0; may_hold && i < TRIES && !held; i++) held = sy_thread_hold(thread);
        if (!held) return;
        shut_slots_of(thread);
        sy_thread_let_go(thread);
    }
}

void sy_clients_profile(void) {
    sy_threads_lock();
    uint64_t mean = sy_profile_mean();
    bool before = on, changes = mean != mean_then;
    on = sy_profile_watches();
    if (mean_then && !mean) sy_profile_settle();
    mean_then = mean;
    bool all = (changes || on != before) && change_kinds();
    for (sy_thread *thread = on ? sy_threads_first() : NULL; thread; thread = thread->next)
        if (all || sy_thread_is_own(thread)) /* this one may count from now on */
            shut_thread(thread);
    sy_threads_unlock();
}
