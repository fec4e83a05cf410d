/*
 * layer.h: the whole magazine layer for models: its sources, the system below it, and one client
 * with a slab above it.
 *
 * Items are numbers of objects; those that are in no magazine and not allocated are in the slab.
 * There is a depot of two shards.
 */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "locks.h"

/* Two of the source files each define these names. */
#define lock        threads_lock
#define empty_slots threads_empty_slots
#include "magazine/thread.c"
#undef lock
#undef empty_slots
#define lock store_lock
#include "magazine/store.c"
#undef lock

#include "magazine/budget.c"
#include "magazine/client.c"
#include "magazine/depot.c"
#include "magazine/drain.c"
#include "magazine/one_way.c"
#include "magazine/slot.c"

#include "no_profile.h"

SY_TLS int64_t sy_guard_left;

/* As in system.h, for what a thread is in the midst of. */
#undef SY_TLS
#define SY_TLS
#define own_notes (*model_own())
#include "magazine/roster.c"
#undef own_notes
static typeof(*model_own()) *model_own(void) {
    static typeof(*model_own()) owns[MODEL_THREADS];
    return &owns[model_number];
}

/* ---- the system ---- */

enum { MEMORY_BYTES = 20 << 20, SHARDS = 2 };

static alignas(65536) char memory[MEMORY_BYTES];
static _Atomic size_t memory_taken;

void *sy_pages_take(size_t bytes, size_t align, const char *name) {
    (void)name;
    size_t taken = sy_round_up(bytes, 65536);
    size_t at = atomic_fetch_add_explicit(&memory_taken, taken, memory_order_relaxed);
    assert(align <= 65536 && at + taken <= MEMORY_BYTES);
    return memory + at;
}

void sy_pages_give(void *start, size_t bytes) { (void)start, (void)bytes; }

unsigned sy_os_thread(void) { return model_number + 1; }

sy_facts sy_facts_now = {.affinity = SHARDS, .memory_limit = SIZE_MAX};

void sy_background_thread_ends(void) {}

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    uint32_t same = expected; /* the system reads the newest value */
    if (atomic_compare_exchange_strong(word, &same, expected)) model_wait(word);
}

/* A store to the word wakes its waiters already. */
void sy_os_wake(_Atomic uint32_t *word, int count) {
    static _Atomic int woken;
    (void)word;
    atomic_fetch_add_explicit(&woken, count, memory_order_relaxed);
}

static __thread unsigned cpu; /* the CPU to whose shard this thread's magazines go */

unsigned sy_os_cpu(void) { return cpu; }

static __thread void (*at_exit)(void *arg);
static __thread void *at_exit_arg;

int sy_os_at_thread_exit(void (*hook)(void *arg), void *arg) {
    at_exit = hook;
    at_exit_arg = arg;
    return 0;
}

static void begin_thread(void) {
    sy_abi_1 = shut_slots;
    cpu = model_number;
}

static void end_of_thread(void) {
    if (at_exit) at_exit(at_exit_arg);
}

/* ---- the client ---- */

enum { OBJECTS = 4 };

static sy_lock slab_lock = SY_LOCK_INIT(SY_RANK_CACHE);
static bool in_slab[OBJECTS]; /* guarded by slab_lock */
static unsigned slab_count;   /* guarded by slab_lock */
static uint64_t objects[OBJECTS];
static sy_client client;

static size_t refill_from_slab(void *owner, uintptr_t *items, size_t count) {
    (void)owner;
    size_t got = 0;
    sy_lock_acquire(&slab_lock);
    for (uintptr_t item = 0; item < OBJECTS && got < count; item++) {
        if (!in_slab[item]) continue;
        in_slab[item] = false;
        slab_count--;
        items[got++] = item;
    }
    sy_lock_release(&slab_lock);
    return got;
}

static void flush_to_slab(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    (void)owner;
    sy_lock_acquire(&slab_lock);
    for (size_t i = 0; i < count; i++) {
        assert(!in_slab[items[i]] && "an item is in two places");
        in_slab[items[i]] = true;
        slab_count++;
    }
    if (held) atomic_store_explicit(held, 0, memory_order_relaxed);
    sy_lock_release(&slab_lock);
}

static void begin(void) {
    sy_client_config *config = &client.config;
    begin_thread();
    for (unsigned i = 0; i < OBJECTS; i++) in_slab[i] = true;
    slab_count = OBJECTS;
    config->kind = &sy_client_plain;
    atomic_store_explicit(&client.kind, &sy_client_plain, memory_order_relaxed);
    config->refill = refill_from_slab;
    config->flush = flush_to_slab;
    config->item_bytes = START_BYTES;
    config->magazine_items = 1;
    config->number = SY_CLIENT_FIRST;
    sy_depot_start(SHARDS, 2);
    sy_threads_start(empty_slots, flush_returned);
    client.number = SY_CLIENT_FIRST;
    clients[SY_CLIENT_FIRST] = &client;
    next_number = SY_CLIENT_FIRST + 1;
}

static sy_loaded_slot *loaded_slot(void) { return sy_abi_1 + SY_CLIENT_FIRST; }

/* A thread that has an object may write to it. */
static uintptr_t allocate(void) {
    uintptr_t item;
    if (!sy_loaded_pop(loaded_slot(), &item)) assert(sy_client_alloc(&client, &item));
    objects[item]++;
    return item;
}

static void give(uintptr_t item) {
    objects[item]++;
    if (!sy_loaded_push(loaded_slot(), item)) sy_client_free(&client, item);
}

/* Items in the slab and in magazines: all that are not allocated, while no thread allocates. */
static size_t count_all(void) {
    size_t depot, loaded;
    sy_clients_lock();
    sy_lock_acquire(&slab_lock);
    sy_client_held(&client, &depot, &loaded);
    size_t all = slab_count + depot + loaded;
    sy_lock_release(&slab_lock);
    sy_clients_unlock();
    return all;
}

#endif
