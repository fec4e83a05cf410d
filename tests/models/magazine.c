/*
 * magazine.c: models of the whole magazine layer: an object that one thread frees is allocated by
 * another one, once, and with all that was written to it. The slots of a parked thread belong to it
 * or to a drain. Each item is counted, whatever passes do meanwhile.
 *
 * There is one client, whose magazines hold an item each, and a depot of two shards. Items are
 * numbers of objects; those that are in no magazine and not allocated are in the slab.
 */
#include "layer.h"

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

/* ---- the end of a client ---- */

static uint64_t owned; /* what the owner of the client has: a cache, its slabs, objects that move */
static bool is_gone;

/* As a pass does, which trims a cache or moves its objects. */
static void work_on_clients(void *arg) {
    (void)arg;
    begin_thread();
    for (sy_client *it = NULL; (it = sy_client_pin_next(it ? it->number : 0)) != NULL;) {
        assert(!is_gone && "a client that is in the roster has its owner");
        owned++;
        sy_client_unpin(it);
    }
}

static void end_client(void) {
    while (!sy_client_suspend(&client, NULL, NULL)) {}
    is_gone = true;
    owned = 0;
    sy_client_close(&client);
}

MODEL(a_client_ends_when_passes_have_let_it_go) {
    model_thread other;
    begin();
    model_start(&other, 1, work_on_clients, NULL);
    end_client();
    model_join(&other);
    assert(owned == 0);
}

/* It had objects that are in use, so it goes on, and passes get it again. */
MODEL(a_client_whose_end_is_refused_goes_on) {
    model_thread other;
    begin();
    model_start(&other, 1, work_on_clients, NULL);
    while (!sy_client_suspend(&client, NULL, NULL)) {}
    owned++;
    sy_client_resume(&client);
    model_join(&other);
    uint64_t before = owned;
    work_on_clients(NULL);
    assert(owned == before + 1);
    end_client();
}
