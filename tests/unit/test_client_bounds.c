/*
 * test_client_bounds.c: how much a thread may have loaded and reserve, and how magazines are used
 * that another processor has filled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "magazine/budget.h"
#include "magazine/depot.h"
#include "magazine/thread.h"
#include "os/fake.h"
#include "support/bank.h"

static void reverse_for_others(sy_client *client, sy_magazine *magazine) {
    bool remote;
    for (uintptr_t i = 0; i < 3; i++) magazine->items[i] = i;
    atomic_store(&magazine->count, 3);
    sy_fake_set_cpu(0);
    must(sy_budget_try_put(client, magazine));
    sy_fake_set_cpu(1);
    must(sy_budget_get(client, &remote) == magazine && remote);
}

/* Words that one processor frees and another allocates are allocated in the order of the frees. */
static void what_others_take_is_turned_round(void **state) {
    (void)state;
    if (sy_depot_shard_count == 1) skip();
    struct bank *bank = open_bank(&the_bank, 100, PLAIN);
    sy_magazine *magazine = sy_store_take();
    reverse_for_others(&bank->client, magazine);
    assert_int_equal(magazine->items[0], 0); /* no other processor has allocated yet */
    reverse_for_others(&bank->client, magazine);
    for (uintptr_t i = 0; i < 3; i++) assert_int_equal(magazine->items[i], 2 - i);
    sy_store_put(magazine);
    sy_fake_reset();
    close_bank(bank);
}

/* Another processor has freed the items that the thread takes from now on, so it uses them in
 * windows, which are prefetched. */
static struct bank *open_another_processors_bank(void) {
    sy_client_config config = PLAIN;
    config.prefetches = true;
    struct bank *bank = open_bank(&the_bank, 2000, config);
    sy_fake_set_cpu(0);
    for (int i = 0; i < 2000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 2000; i++) put_held(bank, i);
    sy_fake_set_cpu(1);
    return bank;
}

static void close_another_processors_bank(struct bank *bank) {
    put_all_and_end(bank);
    sy_fake_reset();
    close_bank(bank);
}

static void anothers_magazine_is_fetched_in_windows(void **state) {
    (void)state;
    enum { WINDOW = 16 };
    if (sy_depot_shard_count == 1) skip();
    struct bank *bank = open_another_processors_bank();
    const sy_slot *slot = sy_thread_slot(sy_thread_self(), bank->client.number);
    size_t windows = 0;
    for (int i = 0; i < 1000; i++) {
        get_new(bank);
        bool ahead = slot->base > slot->loaded->items;
        assert_true(!ahead || slot->top - slot->base <= WINDOW);
        windows += ahead && slot->top == slot->base;
    }
    assert_true(windows > 1000 / WINDOW / 2);
    close_another_processors_bank(bank);
}

/* A thread that is parked in the middle of a window goes on there. */
static void a_parked_thread_goes_on_in_its_window(void **state) {
    (void)state;
    if (sy_depot_shard_count == 1) skip();
    struct bank *bank = open_another_processors_bank();
    const sy_slot *slot = sy_thread_slot(sy_thread_self(), bank->client.number);
    size_t windows = 0;
    for (int i = 0; i < 1500; i++) {
        if (i % 130 > 100) sy_thread_idle();
        get_new(bank);
        assert_true(slot->top >= slot->base && slot->base >= slot->loaded->items);
        windows += slot->base > slot->loaded->items;
    }
    assert_true(windows > 0);
    close_another_processors_bank(bank);
}

/* A larger reserve is refused: the outbox does not count for it. */
static void one_magazine_is_reserved_of_what_is_one_way(void **state) {
    (void)state;
    sy_client_config config = PLAIN;
    config.kind = &sy_client_one_way;
    struct bank *bank = open_bank(&the_bank, 1000, config);
    assert_int_equal(sy_client_reserve(&bank->client, SY_MAGAZINE_ITEMS + 1), 0);
    assert_int_equal(sy_client_reserve(&bank->client, SY_MAGAZINE_ITEMS), SY_MAGAZINE_ITEMS);
    close_bank(bank);
}

/* The bytes that a thread may have loaded are bounded. Those of a client count no more when it is
 * closed. */
static void a_thread_has_so_much_loaded_at_most(void **state) {
    (void)state;
    enum { BANKS = 40, LOADED_MOST = 4 << 20, FIRST = 2 * 16 << 10 };
    static struct bank banks[BANKS];
    const sy_client_config config = {.item_bytes = 16 << 10, .magazine_items = 32};
    const sy_thread *thread = sy_thread_self();
    uint64_t before = atomic_load(&thread->loaded_bytes);
    for (int b = 0; b < BANKS; b++) {
        uintptr_t words[200];
        struct bank *bank = open_bank(&banks[b], 400, config);
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < 200; i++) must(get(bank, &words[i]));
            for (int i = 0; i < 200; i++) put(bank, words[i]);
        }
        assert_true(atomic_load(&thread->loaded_bytes) <= LOADED_MOST + BANKS * FIRST);
    }
    for (int b = 0; b < BANKS; b++) close_bank(&banks[b]);
    assert_int_equal(atomic_load(&thread->loaded_bytes), before);
}

/* A large object of the general heap waits in magazines if it is a small part of all slabs. */
static void large_items_wait_where_there_is_much_memory(void **state) {
    (void)state;
    const size_t mib = 1 << 20;
    const struct {
        size_t item, memory;
        bool ordered, waits;
    } cases[] = {
        {16 << 10, 0, true, true},          {20 << 10, 39 * mib, true, false},
        {20 << 10, 40 * mib, true, true},   {128 << 10, 255 * mib, true, false},
        {128 << 10, 256 * mib, true, true}, {128 << 10, 0, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uintptr_t word;
        struct bank *bank = open_bank(&the_bank, 10,
                                      (sy_client_config){.item_bytes = cases[i].item,
                                                         .magazine_items = 2,
                                                         .place_matters = cases[i].ordered});
        sy_budget_note_memory(cases[i].memory);
        must(sy_client_alloc(&bank->client, &word));
        sy_client_free(&bank->client, word);
        const sy_slot *slot = sy_thread_slot(sy_thread_self(), bank->client.number);
        assert_int_equal(slot->loaded != NULL, cases[i].waits);
        assert_int_equal(bank->lent, cases[i].waits ? 1 : 0);
        sy_budget_note_memory(0);
        close_bank(bank);
    }
}

static bool admit_none(void *owner, size_t items) {
    (void)owner;
    return items == 0;
}

static void who_may_hold_nothing_is_no_holder(void **state) {
    (void)state;
    sy_client_config config = PLAIN;
    config.admits = admit_none;
    struct bank *bank = open_bank(&the_bank, 1000, config);
    for (int i = 0; i < 10; i++) {
        uintptr_t word;
        must(sy_client_alloc(&bank->client, &word));
        sy_client_free(&bank->client, word);
    }
    assert_int_equal(atomic_load(&bank->client.holders), 0);
    close_bank(bank);
}

static void all_that_was_granted_is_held(void **state) {
    (void)state;
    sy_client_config config = PLAIN;
    config.loaded_items = 2 * 16; /* two magazines of the first capacity */
    struct bank *bank = open_bank(&the_bank, 100, config);
    for (int i = 0; i < 16; i++) get_new(bank);
    assert_int_equal(bank->refills, 1);
    assert_int_equal(bank->last_refill, 16);
    put_all_and_end(bank);
    close_bank(bank);
}

/* Sets the bounds of a machine with two processors. */
static int start(void **state) {
    (void)state;
    sy_fake_set_cpu_count(2);
    int result = sy_threads_part.start();
    sy_fake_reset();
    return result;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_take_is_turned_round),
        cmocka_unit_test(anothers_magazine_is_fetched_in_windows),
        cmocka_unit_test(a_parked_thread_goes_on_in_its_window),
        cmocka_unit_test(one_magazine_is_reserved_of_what_is_one_way),
        cmocka_unit_test(a_thread_has_so_much_loaded_at_most),
        cmocka_unit_test(large_items_wait_where_there_is_much_memory),
        cmocka_unit_test(who_may_hold_nothing_is_no_holder),
        cmocka_unit_test(all_that_was_granted_is_held),
    };
    return cmocka_run_group_tests_name("bounds of clients", tests, start, NULL);
}
