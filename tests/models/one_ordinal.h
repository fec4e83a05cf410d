/*
 * one_ordinal.h: stands for the magazines in models of handles, and for what else cache/handle.c
 * calls. There is one ordinal, 0. It waits in a list under a lock, or is out. Included after the
 * source files.
 */
#ifndef SLABYARD_MODELS_ONE_ORDINAL_H
#define SLABYARD_MODELS_ONE_ORDINAL_H

#include "no_profile.h"

SY_API SY_TLS sy_loaded_slot *sy_abi_1;
SY_TLS unsigned sy_turns;
_Atomic bool sy_turn_wanted, sy_fail_armed;
const sy_client_kind sy_client_profiled;
sy_map sy_the_map;
sy_window sy_the_window;
static sy_loaded_slot shut;
static sy_lock magazine_lock = SY_LOCK_INIT(SY_RANK_CACHE);
static bool waits; /* the ordinal is in a magazine; guarded by magazine_lock */

static bool take_from_list(sy_client *client, uintptr_t *item) {
    (void)client;
    sy_lock_acquire(&magazine_lock);
    bool taken = waits;
    waits = false;
    sy_lock_release(&magazine_lock);
    *item = 0;
    return taken;
}

static sy_freed put_on_list(sy_client *client, uintptr_t item) {
    (void)client;
    sy_lock_acquire(&magazine_lock);
    assert(item == 0 && !waits && "the ordinal is in two places");
    waits = true;
    sy_lock_release(&magazine_lock);
    return SY_FREED;
}

static const sy_client_kind list = {.alloc_second = take_from_list, .free_second = put_on_list};

#ifndef MODEL_FOLDS
uint64_t sy_names_word_slow(const struct sy_handle_head *head, uint32_t ordinal) {
    return __atomic_load_n(&head->words[ordinal], __ATOMIC_ACQUIRE);
}
#endif

bool sy_cache_take_item(sy_cache *of, uintptr_t *item) { return (void)of, (void)item, false; }

int sy_vmem_free(sy_vmem *from, uintptr_t start, size_t size) {
    return (void)from, (void)start, (void)size, 0;
}

#endif
