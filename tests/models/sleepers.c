/*
 * sleepers.c: models of a thread that takes items out of the slot of another one, which goes on:
 * each item is allocated once, by one of the two, with all that was written to it before.
 *
 * The model's first thread is the one with the slot. Its operations are the inline ones and the
 * slow paths behind them. In the deep models the other one does no more than take_from, and owns
 * what it has taken. In the others it does all that sy_threads_reach does for a thread, then takes
 * all items of the slab.
 */
#include "layer.h"

#include "magazine/sleepers.c"

/* Not atomic: the checker sees an owner that races with the one before. */
static bool owned[OBJECTS];

static void own(uintptr_t item) {
    assert(!owned[item] && "an item has two owners");
    owned[item] = true;
}

/* False: the other thread has all items. */
static bool take_one(uintptr_t *item) {
    if (!sy_loaded_pop(loaded_slot(), item) && !sy_client_alloc_second(&client, item) &&
        !sy_client_alloc_rest(&client, item))
        return false;
    own(*item);
    return true;
}

static void give_one(uintptr_t item) {
    owned[item] = false;
    if (sy_loaded_push_once(loaded_slot(), item)) return;
    sy_freed freed = sy_client_free_second(&client, item);
    assert(freed != SY_FREED_BEFORE);
    if (freed == SY_FREED_NOT) sy_client_free(&client, item);
}

int sy_os_barrier_threads(void) {
    model_barrier();
    return 0;
}

static sy_thread *reached_thread;
static model_thread other;
static uintptr_t taken[3]; /* by the thread, before the other one starts */

/* ---- the steps alone ---- */

static sy_magazine *spare;

static void take_beside(void *arg) {
    reached it = {.client = &client, .slot = arg, .spare = spare};
    begin_thread();
    take_from(reached_thread, &it, 1);
    for (const sy_magazine *magazine = it.chain; magazine; magazine = magazine->chain)
        for (uint32_t i = 0; i < sy_magazine_count(magazine); i++) own(magazine->items[i]);
}

/* The thread has a magazine with room for three items. The first `items` of those that it took are
 * in it. */
static void fill_slot(unsigned items) {
    model_use_barriers();
    begin();
    client.config.item_bytes = START_BYTES / 3;
    client.config.magazine_items = 3;
    for (unsigned i = 0; i < 3; i++) assert(take_one(&taken[i]));
    for (unsigned i = 0; i < items; i++) give_one(taken[i]);
    reached_thread = sy_thread_self();
}

static void begin_steps(unsigned items) {
    fill_slot(items);
    spare = sy_store_take();
    model_start(&other, 1, take_beside, sy_thread_slot(reached_thread, SY_CLIENT_FIRST));
}

/* An item is owned, or in the slab or a magazine. */
static void end_models(void) {
    size_t all = 0;
    model_join(&other);
    for (unsigned i = 0; i < OBJECTS; i++) all += owned[i];
    assert(all + count_all() == OBJECTS);
}

MODEL_DEEP(two_allocations_beside_the_steps) {
    uintptr_t item;
    begin_steps(3);
    for (unsigned i = 0; i < 2; i++) take_one(&item);
    end_models();
}

MODEL_DEEP(two_frees_beside_the_steps) {
    begin_steps(1);
    give_one(taken[1]);
    give_one(taken[2]);
    end_models();
}

MODEL_DEEP(a_free_and_an_allocation_beside_the_steps) {
    uintptr_t item;
    begin_steps(2);
    give_one(taken[2]);
    take_one(&item);
    end_models();
}

/* The slow path writes the slot's bounds. */
MODEL_FOR_LOOM(a_refill_beside_the_steps) {
    uintptr_t item;
    begin_steps(0);
    take_one(&item);
    end_models();
}

/* ---- all of it ---- */

static void reach_and_take(void *arg) {
    (void)arg;
    unsigned number = SY_CLIENT_FIRST;
    uintptr_t items[OBJECTS];
    begin_thread();
    reach_some(reached_thread, &number, true);
    size_t got = refill_from_slab(NULL, items, OBJECTS);
    for (size_t i = 0; i < got; i++) own(items[i]);
}

static void begin_reach(unsigned items, void (*reaches)(void *arg)) {
    fill_slot(items);
    model_start(&other, 1, reaches, NULL);
}

MODEL_FOR_LOOM(a_thread_that_allocates_is_reached) {
    uintptr_t item;
    begin_reach(3, reach_and_take);
    for (unsigned i = 0; i < 2; i++) take_one(&item);
    end_models();
}

MODEL_FOR_LOOM(a_thread_that_frees_is_reached) {
    begin_reach(2, reach_and_take);
    uintptr_t item;
    give_one(taken[2]);
    take_one(&item);
    end_models();
}

MODEL_FOR_LOOM(a_thread_that_allocates_and_frees_is_reached) {
    begin_reach(3, reach_and_take);
    uintptr_t item;
    if (take_one(&item)) give_one(item);
    end_models();
}

MODEL_FOR_LOOM(a_thread_in_a_slow_path_is_not_reached) {
    uintptr_t item;
    begin_reach(3, reach_and_take);
    if (sy_client_alloc(&client, &item)) {
        own(item);
        owned[item] = false;
        sy_client_free(&client, item);
    }
    end_models();
}

MODEL_FOR_LOOM(a_thread_that_ends_is_reached) {
    uintptr_t item;
    begin_reach(3, reach_and_take);
    take_one(&item);
    end_of_thread();
    end_models();
}

MODEL_FOR_LOOM(a_thread_that_parks_is_reached) {
    begin_reach(3, reach_and_take);
    uintptr_t item;
    sy_thread_idle();
    take_one(&item);
    end_models();
}

/* Twice: the second time there is a gap. */
static void reach_twice(void *arg) {
    unsigned number = SY_CLIENT_FIRST;
    begin_thread();
    reach_some(reached_thread, &number, true);
    reach_and_take(arg);
}

MODEL_FOR_LOOM(a_thread_is_reached_twice) {
    begin_reach(3, reach_twice);
    uintptr_t item;
    if (take_one(&item)) give_one(item);
    end_models();
}
