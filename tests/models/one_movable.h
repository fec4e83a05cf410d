/*
 * one_movable.h: a cache with one ordinal, whose object moves, and the threads that read it, for
 * models of moves and of folds. Included after the source files.
 */
#ifndef SLABYARD_MODELS_ONE_MOVABLE_H
#define SLABYARD_MODELS_ONE_MOVABLE_H

#include "one_ordinal.h"

enum { CACHE_NUMBER = 1, THREADS = 3 };

const sy_slab_kind sy_slabs_plain, sy_slabs_movable;
sy_options sy_options_now;

static sy_cache cache;
static sy_handle first; /* told to the threads before they are started */

/* ---- threads: all records are in the list from the begin ---- */

static sy_thread records[THREADS];
SY_TLS sy_thread *sy_thread_own;

void sy_threads_lock(void) {}

void sy_threads_unlock(void) {}

sy_thread *sy_threads_first(void) { return records; }

sy_thread *sy_thread_self(void) { return NULL; }

int sy_os_barrier_threads(void) {
    model_barrier();
    return 0;
}

/* Only for a thread that waits for the end of a copy. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    (void)word, (void)expected, (void)ns;
    model_yield();
}

size_t sy_client_offset(const sy_client *client) { return (void)client, 0; }

static void begin_thread(void) {
    sy_abi_1 = &shut;
    sy_thread_own = &records[model_number];
}

/* ---- the cache; the directory is there ---- */

static void begin_cache(order_by how) {
    if (how == BARRIERS) model_use_barriers();
    begin_thread();
    for (int i = 0; i < THREADS; i++) records[i].first = &records[i];
    for (int i = 0; i + 1 < THREADS; i++) records[i].next = &records[i + 1];
    atomic_store_explicit(&order, how, memory_order_relaxed);
    cache.lock = (sy_lock)SY_LOCK_INIT(SY_RANK_CACHE);
    cache.flags = SY_HANDLES | SY_MOVABLE;
    cache.client.config.kind = &list;
    atomic_store_explicit(&cache.client.kind, &list, memory_order_relaxed);
    cache.client.number = CACHE_NUMBER;
    cache.kind = &sy_kind_movable;
    cache.basic = &sy_kind_plain;
    cache.names.words = sy_directory_words();
    cache.names.limit = 2;
    cache.names.live = SY_HANDLE_MOVING;
    cache.names.slot = CACHE_NUMBER << SY_HANDLE_CACHE | SY_HANDLE_LIVE;
    cache.names.plain = cache.names.slot;
}

#endif
