/*
 * magazine.c: models of the whole magazine layer: an object that one thread frees is allocated by
 * another one, once, and with all that was written to it. The slots of a parked thread belong to it
 * or to a drain. Each item is counted, whatever passes do meanwhile.
 *
 * There is one client, whose magazines hold an item each, and a depot of two shards. Items are
 * numbers of objects; those that are in no magazine and not allocated are in the slab.
 */
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

SY_TLS int64_t sy_guard_left;

/* As in system.h, for what a thread is in the midst of. */
#undef SY_TLS
#define SY_TLS
#define own_moves (*model_own())
#include "magazine/roster.c"
#undef own_moves
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

sy_facts sy_facts_now = {.affinity = SHARDS, .memory_limit = SIZE_MAX};

void sy_background_thread_ends(void) {}

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

/* ---- hand-over ---- */

static uintptr_t taken[3]; /* before the other threads are started */

/* Two stay in this thread's magazines, the third goes to the depot. */
static void free_three(void *arg) {
    (void)arg;
    begin_thread();
    for (int i = 0; i < 3; i++) give(taken[i]);
}

MODEL(what_one_thread_frees_another_one_allocates) {
    model_thread other;
    begin();
    for (int i = 0; i < 3; i++) taken[i] = allocate();
    model_start(&other, 1, free_three, NULL);
    unsigned got = 0;
    for (uintptr_t item; got < 2 && sy_client_alloc(&client, &item); got++) objects[item]++;
    model_join(&other);
    assert(count_all() == OBJECTS - got);
}

/* ---- parking ---- */

/* The thread is idle with two items in its slot, comes back and goes again. */
static void free_and_park(void *arg) {
    (void)arg;
    begin_thread();
    give(taken[0]);
    give(taken[1]);
    sy_thread_idle();
    uintptr_t item = allocate();
    give(item);
    sy_thread_idle();
}

static void drain(void *arg) {
    (void)arg;
    begin_thread();
    sy_client_drain(&client);
}

/* With more steps than GenMC can do in a minute; park.c is for that. */
MODEL_FOR_LOOM(a_parked_threads_slots_are_its_own_or_a_drains) {
    model_thread parks;
    begin();
    for (int i = 0; i < 2; i++) taken[i] = allocate();
    model_start(&parks, 1, free_and_park, NULL);
    sy_client_drain(&client);
    model_join(&parks);
    assert(count_all() == OBJECTS);
    sy_client_drain(&client);
    assert(slab_count == OBJECTS);
}

/* ---- counts ---- */

/* One item is in the loaded magazine, one in the other magazine, one in each shard. */
static void give_all(void) {
    uintptr_t items[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) items[i] = allocate();
    for (int i = 0; i < OBJECTS; i++) {
        if (i == OBJECTS - 1) cpu = 1;
        give(items[i]);
    }
    sy_depot_shard *shards_of_client = sy_depot_shards_of(SY_CLIENT_FIRST);
    assert(sy_depot_items(&shards_of_client[0]) == 1 && sy_depot_items(&shards_of_client[1]) == 1);
}

static void count_beside(void (*pass)(void *arg)) {
    model_thread other;
    begin();
    give_all();
    sy_thread_idle();
    model_start(&other, 1, pass, NULL);
    assert(count_all() == OBJECTS);
    model_join(&other);
    assert(slab_count == OBJECTS && count_all() == OBJECTS);
}

MODEL(a_count_beside_a_drain_is_exact) { count_beside(drain); }

static void drain_in_steps(void *arg) {
    (void)arg;
    begin_thread();
    for (bool first = true; sy_client_drain_step(&client, first); first = false) {}
}

MODEL(a_count_beside_a_drain_in_steps_is_exact) { count_beside(drain_in_steps); }

static void use_first(void *arg) {
    (void)arg;
    begin_thread();
    give(allocate());
}

static void free_two(void *arg) {
    (void)arg;
    begin_thread();
    give(taken[0]);
    give(taken[1]);
}

/* A thread gets its slots, and its two magazines, while they are counted. */
MODEL(a_first_use_is_counted) {
    model_thread other;
    begin();
    for (int i = 0; i < 2; i++) taken[i] = allocate();
    model_start(&other, 1, free_two, NULL);
    count_all();
    model_join(&other);
    assert(count_all() == OBJECTS);
}

static void use_and_end(void *arg) {
    use_first(arg);
    end_of_thread();
}

/* The items of an ended thread are in the depot. The slots are cleared as whole structures, which
 * GenMC does not match with accesses to their parts. */
MODEL_FOR_LOOM(an_ended_threads_items_are_counted) {
    model_thread other;
    begin();
    model_start(&other, 1, use_and_end, NULL);
    sy_client_drain(&client);
    model_join(&other);
    assert(count_all() == OBJECTS);
    sy_client_drain(&client);
    assert(slab_count == OBJECTS);
}

/* While magazines are exchanged, the search may miss items, but it reads only valid memory. GenMC
 * would report the reads of items that change, so this is not run there. */
MODEL_FOR_LOOM(an_item_is_looked_for_beside_a_first_use) {
    model_thread other;
    begin();
    for (int i = 0; i < 2; i++) taken[i] = allocate();
    model_start(&other, 1, free_two, NULL);
    sy_clients_lock();
    sy_client_holds(&client, OBJECTS);
    sy_clients_unlock();
    model_join(&other);
}

/* Into a shard, a magazine that was never used before, with an item. */
static void push_new(unsigned index) {
    sy_magazine *magazine = sy_store_take();
    magazine->items[0] = 0;
    sy_magazine_set_count(magazine, 1);
    sy_depot_push(&sy_depot_shards_of(SY_CLIENT_FIRST)[index], magazine);
}

static void push_new_and_move_onto_it(void *arg) {
    (void)arg;
    sy_depot_shard *shards_of_client = sy_depot_shards_of(SY_CLIENT_FIRST);
    push_new(1);
    sy_depot_push(&shards_of_client[1], sy_depot_pop(&shards_of_client[0]));
}

/* A reader follows a magazine into the other shard, to a magazine below it. */
MODEL_FOR_LOOM(an_item_is_looked_for_beside_a_move) {
    model_thread other;
    begin();
    push_new(0);
    model_start(&other, 1, push_new_and_move_onto_it, NULL);
    depot_holds(&client, OBJECTS);
    model_join(&other);
}
