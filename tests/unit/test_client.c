/*
 * test_client.c: the magazine layer over a bank of words (support/bank.h): where each word is, the
 * counts, and the life of clients. test_client_bounds.c tests how much a thread may hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>

#include "debug/guard.h"
#include "magazine/budget.h"
#include "magazine/client.h"
#include "magazine/depot.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "support/bank.h"
#include "support/child.h"

static struct bank other_bank;

/* ---- allocation and free ---- */

static void every_word_is_given_once(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    uintptr_t word;
    for (int i = 0; i < 5000; i++) get_new(bank);
    errno = 0;
    assert_false(get(bank, &word));
    assert_int_equal(errno, ENOSPC);
    for (uintptr_t i = 0; i < 5000; i++) put_held(bank, i);
    for (int i = 0; i < 5000; i++) get_new(bank);
    assert_false(get(bank, &word));
    for (uintptr_t i = 0; i < 5000; i++) put_held(bank, i);
    close_bank(bank);
}

static void the_word_put_last_is_given_next(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 1000, PLAIN);
    uintptr_t words[200];
    for (int i = 0; i < 200; i++) words[i] = get_new(bank);
    for (int i = 0; i < 100; i++) {
        put_held(bank, words[i]);
        assert_int_equal(get_new(bank), words[i]);
    }
    for (int i = 0; i < 10; i++) put_held(bank, words[i]);
    for (int i = 9; i >= 0; i--) assert_int_equal(get_new(bank), words[i]);
    for (int i = 0; i < 200; i++) put_held(bank, words[i]);
    close_bank(bank);
}

static void a_random_history_loses_and_doubles_nothing(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 20000, PLAIN);
    static uintptr_t words[20000];
    size_t count = 0;
    uint64_t random = 6;
    for (int step = 0; step < 300000; step++) {
        bool rising = step / 20000 % 2 == 0;
        if (count < 20000 && (count == 0 || next_random(&random) % 8 < (rising ? 5 : 3)))
            words[count++] = get_new(bank);
        else {
            size_t i = next_random(&random) % count;
            put_held(bank, words[i]);
            words[i] = words[--count];
        }
        if (step % 997 == 0) {
            assert_int_equal(bank->lent, count + waiting(bank));
            if (step % 5 == 0) sy_client_drain(&bank->client);
            if (step % 7 == 0) sy_thread_idle();
        }
    }
    while (count > 0) put_held(bank, words[--count]);
    close_bank(bank);
}

static void refill_and_flush_come_by_the_magazine_full(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX,
                                  (sy_client_config){
                                      .item_bytes = 1 << 10,
                                      .magazine_items = SY_MAGAZINE_ITEMS,
                                  });
    for (uintptr_t i = 0; i < 4000; i++) get_new(bank);
    assert_true(bank->refills < 4000 / 8);
    for (uintptr_t i = 0; i < 4000; i++) put_held(bank, i);
    assert_true(bank->flushes < 4000 / 8);
    bank->refills = bank->flushes = 0;
    uintptr_t word = get_new(bank);
    for (int i = 0; i < 10000; i++) {
        put_held(bank, word);
        word = get_new(bank);
    }
    assert_true(bank->refills + bank->flushes <= 1);
    put_held(bank, word);
    close_bank(bank);
}

/* Bonwick's rule: a thread that allocates and frees at the end of a magazine does not exchange
 * magazines each time. */
static void no_exchange_at_each_crossing(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    for (uintptr_t i = 0; i < 10000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 10000; i++) put_held(bank, i);
    for (int depth = 1; depth < 300; depth++) {
        uintptr_t words[300];
        get_new(bank);
        sy_client_counts before = sy_client_count(&bank->client);
        size_t calls = bank->refills + bank->flushes;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 3; i++) words[i] = get_new(bank);
            for (int i = 0; i < 3; i++) put_held(bank, words[i]);
        }
        sy_client_counts after = sy_client_count(&bank->client);
        assert_true(after.depot_hits - before.depot_hits <= 1);
        assert_true(bank->refills + bank->flushes - calls <= 1);
    }
    for (uintptr_t i = 0; i < WORDS_MAX; i++)
        if (held[i]) put_held(bank, i);
    close_bank(bank);
}

static void a_depot_holds_no_more_than_its_budget(void **state) {
    (void)state;
    enum { ITEM = 1 << 14 };
    struct bank *bank = open_bank(&the_bank, WORDS_MAX,
                                  (sy_client_config){.item_bytes = ITEM, .magazine_items = 128});
    for (uintptr_t i = 0; i < 20000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 20000; i++) put_held(bank, i);
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    assert_true(depot <= 256); /* 4 MiB of them in one shard: what the start and one raise allow */
    assert_true(loaded * ITEM <= 8 << 20);
    assert_int_equal(bank->lent, depot + loaded);
    close_bank(bank);
}

/* ---- without magazines ---- */

static void a_client_without_magazines_goes_straight_through(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 10, (sy_client_config){.item_bytes = 64});
    for (int i = 0; i < 10; i++) {
        assert_int_equal(get_new(bank), i);
        assert_int_equal(bank->lent, i + 1);
    }
    for (uintptr_t i = 0; i < 10; i++) {
        put_held(bank, i);
        assert_int_equal(bank->lent, 9 - i);
    }
    assert_int_equal(waiting(bank), 0);
    uintptr_t words[4];
    assert_int_equal(sy_client_alloc_loaded(&bank->client, words, 4), 0);
    close_bank(bank);
}

static void *get_without_a_magazine(void *arg) {
    struct bank *bank = arg;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    uintptr_t word = get_new(bank);
    must(bank->lent == 1);
    put_held(bank, word);
    must(bank->lent == 0);
    sy_fake_reset();
    return NULL;
}

static void *fill_with_the_last_magazines(void *arg) {
    struct bank *bank = arg;
    uintptr_t word = get_new(bank);
    sy_magazine *magazine, *chain = NULL;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    while ((magazine = sy_store_take()) != NULL) magazine->chain = chain, chain = magazine;
    for (int i = 0; i < 2000; i++) get_new(bank);
    for (uintptr_t i = 0; i < bank->words; i++)
        if (held[i] && i != word) put_held(bank, i);
    must(bank->lent == 1 + waiting(bank));
    put_held(bank, word);
    sy_fake_reset();
    while (chain) {
        magazine = chain;
        chain = magazine->chain;
        sy_store_put(magazine);
    }
    return NULL;
}

static void in_a_fresh_library(void *body) {
    must(sy_threads_part.start() == 0);
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    in_thread((void *(*)(void *))(uintptr_t)body, bank);
    close_bank(bank);
}

static void no_memory_for_magazines_means_going_without(void **state) {
    (void)state;
    assert_int_equal(in_child(in_a_fresh_library, (void *)(uintptr_t)get_without_a_magazine), 0);
    assert_int_equal(in_child(in_a_fresh_library, (void *)(uintptr_t)fill_with_the_last_magazines),
                     0);
}

/* ---- bounds ---- */

static pthread_barrier_t barrier;

static void *hold_some(void *arg) {
    struct bank *bank = arg;
    uintptr_t words[40];
    for (int i = 0; i < 40; i++) must(get(bank, &words[i]));
    for (int i = 0; i < 40; i++) put(bank, words[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void all_threads_together_hold_what_is_granted(void **state) {
    (void)state;
    enum { THREADS = 8, BOUND = 100 };
    pthread_t threads[THREADS];
    struct bank *bank = open_bank(&the_bank, 1000,
                                  (sy_client_config){
                                      .item_bytes = 64,
                                      .magazine_items = 50,
                                      .loaded_items = BOUND,
                                  });
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_some, bank), 0);
    pthread_barrier_wait(&barrier);
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    assert_true(loaded <= BOUND && loaded > 0);
    assert_int_equal(depot, 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    count_held(bank, &depot, &loaded);
    assert_int_equal(loaded, 0);
    assert_true(depot <= BOUND);
    assert_int_equal(atomic_load(&bank->client.allowed), 0);
    close_bank(bank);
    pthread_barrier_destroy(&barrier);
}

/* ---- threads that are idle or have ended ---- */

static void an_ended_threads_words_wait_for_others(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 100, PLAIN);
    for (int i = 0; i < 100; i++) get_new(bank);
    in_thread(put_all_and_end, bank);
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    assert_int_equal(loaded, 0);
    assert_int_equal(bank->lent, depot);
    for (int i = 0; i < 100; i++) get_new(bank);
    put_all_and_end(bank);
    close_bank(bank);
}

static void *put_all_and_idle(void *arg) {
    put_all_and_end(arg);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    uintptr_t word;
    must(!get(arg, &word)); /* the drain has taken all words */
    return NULL;
}

static void an_idle_threads_words_are_taken_when_wanted(void **state) {
    (void)state;
    pthread_t thread;
    struct bank *bank = open_bank(&the_bank, 100, PLAIN);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 100; i++) get_new(bank);
    assert_int_equal(pthread_create(&thread, NULL, put_all_and_idle, bank), 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) get_new(bank);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    put_all_and_end(bank);
    close_bank(bank);
    pthread_barrier_destroy(&barrier);
}

static void *put_all_and_run_on(void *arg) {
    put_all_and_end(arg);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    /* One operation on the slow path, on which the thread notices the request for a drain. */
    uintptr_t word;
    size_t waited = waiting(arg);
    must(waited > 0);
    must(sy_client_alloc(&((struct bank *)arg)->client, &word));
    size_t depot, loaded;
    count_held(arg, &depot, &loaded);
    must(loaded <= 64 && loaded + 1 == ((struct bank *)arg)->lent);
    put(arg, word);
    return NULL;
}

static void a_running_thread_drains_at_its_next_exchange(void **state) {
    (void)state;
    pthread_t thread;
    struct bank *bank = open_bank(&the_bank, 1000, PLAIN);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 200; i++) get_new(bank);
    assert_int_equal(pthread_create(&thread, NULL, put_all_and_run_on, bank), 0);
    pthread_barrier_wait(&barrier);
    size_t flushes = bank->flushes;
    sy_client_drain(&bank->client);
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    assert_int_equal(depot, 0);
    assert_true(loaded > 0);
    assert_int_equal(bank->lent, loaded);
    flushes = bank->flushes;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    assert_true(bank->flushes > flushes);
    close_bank(bank);
    pthread_barrier_destroy(&barrier);
}

static void drain_empties_what_it_can_reach(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    for (int i = 0; i < 3000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 1000; i++) put_held(bank, i);
    in_thread(put_all_and_end, bank);
    assert_true(bank->lent > 0);
    sy_client_drain(&bank->client);
    assert_int_equal(bank->lent, 0);
    assert_int_equal(waiting(bank), 0);
    close_bank(bank);
}

static void *drain_without_slots(void *arg) {
    struct bank *bank = arg;
    unsigned threads = sy_thread_count();
    sy_client_drain(&bank->client);
    must(sy_thread_count() == threads); /* it has no magazines, and needs none for this */
    get_new(bank);
    sy_thread_idle();
    sy_client_drain(&bank->client);
    must(bank->lent == 1);
    must(slot_of(bank)->top == slot_of(bank)->limit); /* still idle */
    return NULL;
}

static void drain_takes_nothing_up(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 100, PLAIN);
    in_thread(drain_without_slots, bank);
    put_all_and_end(bank);
    close_bank(bank);
}

static void flush_empties_this_thread_alone(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN),
                *other = open_bank(&other_bank, 500, PLAIN);
    for (int i = 0; i < 100; i++) get_new(bank);
    in_thread(put_all_and_end, bank);
    get_new(bank);
    uintptr_t word;
    assert_true(get(other, &word));
    put(other, word);
    sy_thread_flush();
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    assert_int_equal(loaded, 0);
    assert_true(depot > 0);
    assert_int_equal(bank->lent, depot + 1);
    assert_int_equal(other->lent, 0);
    put_all_and_end(bank);
    close_bank(bank);
    close_bank(other);
}

/* ---- questions about words ---- */

static bool held_anywhere(sy_client *client, uintptr_t word) {
    sy_clients_lock();
    bool found = sy_client_holds(client, word);
    sy_clients_unlock();
    return found;
}

static void holds_finds_a_word_wherever_it_waits(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    for (int i = 0; i < 3000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 3000; i++) {
        assert_false(held_anywhere(&bank->client, i));
        put_held(bank, i);
        assert_int_equal(held_anywhere(&bank->client, i), bank->out[i]);
    }
    for (uintptr_t i = 0; i < 5000; i++)
        assert_int_equal(held_anywhere(&bank->client, i), bank->out[i]);
    close_bank(bank);
}

static void alloc_loaded_takes_both_magazines_and_no_more(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    uintptr_t words[2000];
    for (int i = 0; i < 1000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 1000; i++) put_held(bank, i);
    size_t depot, loaded, refills = bank->refills;
    count_held(bank, &depot, &loaded);
    assert_int_equal(sy_client_alloc_loaded(&bank->client, words, 0), 0);
    assert_int_equal(sy_client_alloc_loaded(&bank->client, words, 2000), loaded);
    for (size_t i = 0; i < loaded; i++) {
        assert_false(held[words[i]]);
        held[words[i]] = true;
    }
    assert_int_equal(bank->refills, refills);
    assert_int_equal(waiting(bank), depot);
    put_all_and_end(bank);
    close_bank(bank);
}

/* ---- numbers ---- */

static void a_number_on_demand_is_given_once(void **state) {
    (void)state;
    sy_client_config config = PLAIN;
    config.number = SY_CLIENT_DEMANDED - 1;
    struct bank *bank = open_bank(&the_bank, 10, config);
    assert_int_equal(bank->client.number, SY_CLIENT_DEMANDED - 1);
    sy_client second;
    errno = 0;
    assert_int_equal(sy_client_open(&second, &config), -1);
    assert_int_equal(errno, EBUSY);
    close_bank(bank);
    close_bank(open_bank(&the_bank, 10, config));
}

static void numbers_run_out_and_come_back(void **state) {
    (void)state;
    sy_client other;
    static sy_client many[SY_CLIENTS_MAX];
    sy_client_config config = PLAIN;
    config.refill = refill;
    config.flush = flush;
    config.owner = &the_bank;
    unsigned count = 0;
    errno = 0;
    while (sy_client_open(&many[count], &config) == 0) {
        assert_true(many[count].number >= SY_CLIENT_DEMANDED);
        assert_true(many[count].number % 16 != 0);
        assert_int_equal(sy_client_offset(&many[count]), many[count].number * 64);
        count++;
    }
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(count, (SY_CLIENTS_MAX - SY_CLIENT_DEMANDED) / 16 * 15);
    sy_client_close(&many[5]);
    assert_int_equal(sy_client_open(&other, &config), -1); /* the number is still in use */
    sy_client_give_number(&many[5]);
    assert_int_equal(sy_client_open(&many[5], &config), 0);
    while (count > 0) {
        sy_client_close(&many[--count]);
        sy_client_give_number(&many[count]);
    }
}

static void *use_and_leave_loaded(void *arg) {
    struct bank *bank = arg;
    uintptr_t word;
    must(get(bank, &word));
    put(bank, word);
    pthread_barrier_wait(&barrier); /* this thread's magazine holds words */
    pthread_barrier_wait(&barrier); /* the client is closed; another one has its number */
    must(slot_of(bank)->top == NULL);
    must(get(bank, &word) && word < bank->words);
    put(bank, word);
    return NULL;
}

static void a_number_is_reused_with_all_slots_empty(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    struct bank *bank = open_bank(&the_bank, 1000, PLAIN);
    unsigned number = bank->client.number;
    assert_int_equal(pthread_create(&thread, NULL, use_and_leave_loaded, bank), 0);
    pthread_barrier_wait(&barrier);
    assert_true(bank->lent > 0);
    close_bank(bank);
    open_bank(&the_bank, 3, PLAIN);
    assert_int_equal(bank->client.number, number);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    close_bank(bank);
    pthread_barrier_destroy(&barrier);
}

static void counts_begin_anew_with_a_client(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    for (int i = 0; i < 5000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 5000; i++) put_held(bank, i);
    for (int i = 0; i < 5000; i++) get_new(bank);
    sy_client_counts counts = sy_client_count(&bank->client);
    assert_true(counts.depot_hits > 0 && counts.depot_misses > 0);
    put_all_and_end(bank);
    close_bank(bank);
    open_bank(&the_bank, 10, PLAIN);
    counts = sy_client_count(&bank->client);
    assert_int_equal(counts.depot_hits + counts.depot_misses + counts.depot_steals, 0);
    close_bank(bank);
}

static void another_processors_words_are_found(void **state) {
    (void)state;
    if (sy_depot_shard_count == 1) skip();
    struct bank *bank = open_bank(&the_bank, 5000, PLAIN);
    sy_fake_set_cpu(0);
    for (int i = 0; i < 5000; i++) get_new(bank);
    for (uintptr_t i = 0; i < 5000; i++) put_held(bank, i);
    size_t refills = bank->refills, waited = waiting(bank);
    sy_fake_set_cpu(1);
    for (size_t i = 0; i < waited; i++) get_new(bank);
    assert_int_equal(bank->refills, refills);
    assert_true(sy_client_count(&bank->client).depot_steals > 0);
    put_all_and_end(bank);
    close_bank(bank);
    sy_fake_reset();
}

static void pins_go_through_all_clients(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, 10, PLAIN), *other = open_bank(&other_bank, 10, PLAIN);
    unsigned seen = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        assert_int_equal(atomic_load(&client->pins), 1);
        seen += client == &bank->client || client == &other->client;
        sy_client_unpin(client);
    }
    assert_int_equal(seen, 2);
    close_bank(bank);
    close_bank(other);
}

static void *close_pinned(void *arg) {
    close_bank(arg);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void close_waits_for_pins(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    struct bank *bank = open_bank(&the_bank, 10, PLAIN);
    unsigned number = bank->client.number;
    sy_client *pinned = sy_client_pin_next(number - 1);
    assert_ptr_equal(pinned, &bank->client);
    assert_int_equal(pthread_create(&thread, NULL, close_pinned, bank), 0);
    sy_fake_await_waiting(1);
    sy_client *still = sy_client_pin_next(number - 1);
    assert_ptr_equal(still, &bank->client);
    sy_client_unpin(still);
    sy_client_unpin(pinned);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    still = sy_client_pin_next(number - 1);
    assert_true(still == NULL || still != &bank->client);
    if (still) sy_client_unpin(still);
    pthread_barrier_destroy(&barrier);
}

static _Atomic bool suspended;

static void *suspend_pinned(void *arg) {
    sy_client_suspend(&((struct bank *)arg)->client, NULL, NULL);
    atomic_store(&suspended, true);
    return NULL;
}

static void suspending_waits_for_pins_and_keeps_new_ones_off(void **state) {
    (void)state;
    pthread_t thread;
    struct bank *bank = open_bank(&the_bank, 10, PLAIN);
    unsigned number = bank->client.number;
    assert_ptr_equal(sy_client_pin_next(number - 1), &bank->client);
    atomic_store(&suspended, false);
    assert_int_equal(pthread_create(&thread, NULL, suspend_pinned, bank), 0);
    sy_fake_await_waiting(1);
    assert_false(atomic_load(&suspended));
    sy_client_unpin(&bank->client);
    pthread_join(thread, NULL);
    uintptr_t word = get_new(bank);
    put_held(bank, word);
    sy_client *next = sy_client_pin_next(number - 1);
    assert_ptr_not_equal(next, &bank->client);
    if (next) sy_client_unpin(next);
    sy_thread_flush(); /* passes it by as well */
    assert_true(bank->lent > 0);
    sy_client_resume(&bank->client);
    sy_thread_flush();
    assert_int_equal(bank->lent, 0);
    assert_ptr_equal(sy_client_pin_next(number - 1), &bank->client);
    sy_client_unpin(&bank->client);
    close_bank(bank);
}

/* ---- several threads ---- */

static _Atomic uint8_t owner_of[WORDS_MAX];

static void *come_and_go(void *arg) {
    struct bank *bank = &the_bank;
    uint8_t me = (uint8_t)(uintptr_t)arg;
    uint64_t random = me;
    uintptr_t mine[300];
    size_t count = 0;
    for (int step = 0; step < 60000; step++) {
        if (count < 300 && next_random(&random) % 2) {
            if (!get(bank, &mine[count])) continue;
            must(atomic_exchange(&owner_of[mine[count++]], me) == 0);
        } else if (count > 0) {
            size_t i = next_random(&random) % count;
            must(atomic_exchange(&owner_of[mine[i]], 0) == me);
            put(bank, mine[i]);
            mine[i] = mine[--count];
        }
        if (step % 10000 == 9999) sy_client_drain(&bank->client);
        if (step % 5000 == 4999) sy_thread_idle();
        if (step % 7000 == 6999) sy_thread_flush();
    }
    while (count > 0) {
        must(atomic_exchange(&owner_of[mine[--count]], 0) == me);
        put(bank, mine[count]);
    }
    return NULL;
}

static void no_word_has_two_owners(void **state) {
    (void)state;
    pthread_t threads[6];
    struct bank *bank = open_bank(&the_bank, 1200, PLAIN);
    for (uintptr_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    assert_int_equal(bank->lent, waiting(bank));
    close_bank(bank);
}

/* ---- reaping ---- */

static size_t in_depot(const struct bank *bank) {
    size_t depot, loaded;
    count_held(bank, &depot, &loaded);
    return depot;
}

/* Runs all steps. Returns how many of them did something. */
static size_t reap(struct bank *bank, bool idle) {
    size_t steps = 0;
    for (bool first = true; sy_client_reap_step(&bank->client, first, idle); first = false) steps++;
    must(bank->lent >= waiting(bank));
    return steps;
}

static void round_of(struct bank *bank, size_t count) {
    static uintptr_t words[WORDS_MAX];
    for (size_t i = 0; i < count; i++) words[i] = get_new(bank);
    for (size_t i = 0; i < count; i++) put_held(bank, words[i]);
}

static void what_waited_all_the_time_is_reaped(void **state) {
    (void)state;
    sy_fake_set_cpu(0);
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 4000);
    size_t before = in_depot(bank);
    assert_true(before >= 3000);
    assert_int_equal(reap(bank, true), 0); /* the first look at this slot */
    assert_int_equal(in_depot(bank), before);
    round_of(bank, 1000);
    assert_int_not_equal(reap(bank, true), 0);
    size_t wanted = in_depot(bank);
    assert_in_range(wanted, 1000 - 3 * SY_MAGAZINE_ITEMS, 1000);
    size_t refills = bank->refills;
    round_of(bank, 1000);
    assert_int_equal(bank->refills, refills); /* the words in use were left */
    assert_int_equal(reap(bank, true), 0);
    assert_int_not_equal(reap(bank, true), 0);
    assert_int_equal(in_depot(bank), 0);
    assert_int_equal(bank->lent, waiting(bank));
    close_bank(bank);
    sy_fake_reset();
}

static void a_step_reaps_a_few_magazines(void **state) {
    (void)state;
    sy_fake_set_cpu(0);
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 4000);
    reap(bank, true);
    for (bool first = true;; first = false) {
        size_t before = in_depot(bank);
        if (!sy_client_reap_step(&bank->client, first, true)) break;
        assert_in_range(before - in_depot(bank), 1, 8 * SY_MAGAZINE_ITEMS);
    }
    assert_int_equal(in_depot(bank), 0);
    close_bank(bank);
    sy_fake_reset();
}

/* A depot that has grown by misses gets its first size again when its items are not used. */
static void budgets_shrink_with_what_is_reaped(void **state) {
    (void)state;
    sy_fake_set_cpu(0);
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 20000);
    size_t at_first = in_depot(bank);
    for (int i = 0; i < 4; i++) round_of(bank, 20000);
    assert_true(in_depot(bank) > at_first * 2);
    reap(bank, true);
    reap(bank, true);
    assert_int_equal(in_depot(bank), 0);
    for (uintptr_t i = 0; i < 20000; i++) get_new(bank);
    sy_client_drain(&bank->client);
    reap(bank, true); /* earlier refusals by the depot have no effect */
    for (uintptr_t i = 0; i < WORDS_MAX; i++)
        if (held[i]) put_held(bank, i);
    assert_in_range(in_depot(bank), 1, at_first + 4 * SY_MAGAZINE_ITEMS);
    close_bank(bank);
    sy_fake_reset();
}

/* A pass by growth leaves a shard a part of all memory, although all of its items are used. A pass
 * by age leaves it all of them. */
static void while_caches_grow_a_depot_keeps_a_share(void **state) {
    (void)state;
    const size_t share = (64 << 10) / PLAIN.item_bytes, mib = 1 << 20;
    sy_fake_set_cpu(0);
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    for (int i = 0; i < 6; i++) round_of(bank, 20000);
    size_t had = in_depot(bank);
    assert_true(had > 2 * share);
    sy_budget_note_memory(32 * had * PLAIN.item_bytes);
    assert_int_equal(reap(bank, false), 0);
    assert_int_equal(in_depot(bank), had);
    sy_budget_note_memory(mib);
    round_of(bank, 20000);
    assert_int_not_equal(reap(bank, false), 0);
    assert_in_range(in_depot(bank), share - SY_MAGAZINE_ITEMS, share + SY_MAGAZINE_ITEMS);
    sy_budget_note_memory(0);
    close_bank(bank);
    sy_fake_reset();
}

/* If items had to be reaped, those that the depot refused would have been too many, too. */
static void what_is_reaped_takes_earlier_refusals_along(void **state) {
    (void)state;
    sy_fake_set_cpu(0);
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 20000);
    size_t at_first = in_depot(bank);
    reap(bank, false);
    assert_int_not_equal(reap(bank, false), 0);
    assert_int_equal(in_depot(bank), 0);
    round_of(bank, 20000);
    assert_in_range(in_depot(bank), 1, at_first + SY_MAGAZINE_ITEMS);
    close_bank(bank);
    sy_fake_reset();
}

static void a_drain_in_steps_takes_all(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 4000);
    size_t steps = 1;
    for (; sy_client_drain_step(&bank->client, steps == 1); steps++)
        assert_true(bank->lent == waiting(bank) && steps < 100);
    assert_true(steps >= 3);
    assert_int_equal(bank->lent, 0);
    close_bank(bank);
}

static void *work_and_park(void *arg) {
    round_of(arg, 100);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Reaped by age, not because another thread needs room: a parked thread may soon use its words. */
static void parked_threads_are_reaped_by_age(void **state) {
    (void)state;
    pthread_t thread;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, work_and_park, bank), 0);
    pthread_barrier_wait(&barrier);
    assert_true(bank->lent >= 100);
    for (int i = 0; i < 3; i++) reap(bank, false);
    assert_true(bank->lent >= 100);
    reap(bank, true);
    assert_int_equal(bank->lent, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    close_bank(bank);
}

/* A slot is idle if it had no exchange between two looks. */
static void this_thread_empties_its_idle_slots(void **state) {
    (void)state;
    struct bank *idle = open_bank(&the_bank, WORDS_MAX, PLAIN);
    struct bank *busy = open_bank(&other_bank, WORDS_MAX, PLAIN);
    round_of(idle, 50);
    uintptr_t words[300];
    for (int i = 0; i < 3; i++) {
        for (int word = 0; word < 300; word++) must(get(busy, &words[word]));
        for (int word = 0; word < 300; word++) put(busy, words[word]);
        while (sy_thread_reap_step(0)) {}
        assert_true(waiting(busy) >= 300);
    }
    assert_int_equal(idle->lent, 0);
    round_of(idle, 50);
    sy_thread_idle();
    assert_false(sy_thread_reap_step(0)); /* there is no slot to reap */
    close_bank(idle);
    close_bank(busy);
}

static uintptr_t given; /* a word that a thread frees as its first use of the bank */
static size_t after[2]; /* words in magazines after its first and second look */

static void *free_and_look(void *bank_) {
    struct bank *bank = bank_;
    put(bank, given);
    for (int look = 0; look < 2; look++) {
        while (sy_thread_reap_step(0)) {}
        after[look] = waiting(bank);
    }
    return NULL;
}

/* Else a new thread would lose its first words at once: its first turn looks. */
static void a_slot_that_no_look_has_seen_is_not_idle(void **state) {
    (void)state;
    pthread_t thread;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    must(get(bank, &given));
    sy_thread_flush();
    assert_int_equal(pthread_create(&thread, NULL, free_and_look, bank), 0);
    pthread_join(thread, NULL);
    assert_int_equal(after[0], 1);
    assert_int_equal(after[1], 0);
    assert_int_equal(bank->lent, 0);
    close_bank(bank);
}

static void a_look_for_much_passes_by_slots_with_less(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, PLAIN);
    round_of(bank, 50);
    size_t bytes = waiting(bank) * bank->client.config.item_bytes;
    for (int i = 0; i < 3; i++)
        while (sy_thread_reap_step(bytes + 1)) {}
    assert_true(bank->lent >= 50);
    while (sy_thread_reap_step(bytes)) {} /* the first look at this slot */
    assert_true(bank->lent >= 50);
    while (sy_thread_reap_step(bytes)) {}
    assert_int_equal(bank->lent, 0);
    close_bank(bank);
}

/* ---- clients that inspect frees ---- */

static const sy_client_config GUARDED = {
    .kind = &sy_client_guarded, .item_bytes = 64, .magazine_items = SY_MAGAZINE_ITEMS};

enum { FAR = 1 << 30 }; /* allocations until one is due: more than a test makes */

/* Allocates as a cache does. False: this allocation has to be guarded. */
static bool get_seen(struct bank *bank, uintptr_t *word) {
    sy_loaded_slot *slot = slot_of(bank);
    if (slot->top > slot->base) {
        *word = *--slot->top;
    } else {
        if (sy_client_due(&bank->client)) return false;
        must(sy_client_alloc_second(&bank->client, word) || sy_client_alloc(&bank->client, word));
    }
    must(!held[*word]);
    held[*word] = true;
    return true;
}

static void put_seen(struct bank *bank, uintptr_t word) {
    const sy_loaded_slot *slot = slot_of(bank);
    must(slot->top >= slot->limit);
    must(held[word]);
    held[word] = false;
    sy_freed freed = sy_client_free_second(&bank->client, word);
    must(freed != SY_FREED_BEFORE);
    if (freed == SY_FREED_NOT) sy_client_free(&bank->client, word);
    must(slot->top >= slot->limit);
}

/* How many of these allocations, made in batches, have been counted. After a free all have. */
static int64_t counted(struct bank *bank, int rounds, int batch) {
    uintptr_t words[1000];
    sy_guard_left = FAR;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < batch; i++) must(get_seen(bank, &words[i]));
        for (int i = 0; i < batch; i++) put_seen(bank, words[i]);
    }
    return FAR - sy_guard_left;
}

static void each_allocation_is_counted_once(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, GUARDED);
    static const int batches[] = {1, 2, 15, 16, 17, 128, 129, 300, 1000};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        assert_int_equal(counted(bank, 100, batches[i]), 100 * batches[i]);
    close_bank(bank);
}

static void *count_in_a_thread(void *arg) {
    struct bank **banks = arg;
    must(counted(banks[0], 10, 200) == 2000);
    must(counted(banks[1], 10, 200) == 2000);
    return NULL;
}

/* The counts are right whatever is done to the magazines between two exchanges. */
static void a_random_history_is_counted(void **state) {
    (void)state;
    enum { STEPS = 200000 };
    struct bank *banks[2] = {open_bank(&the_bank, WORDS_MAX, GUARDED),
                             open_bank(&other_bank, WORDS_MAX / 2, GUARDED)};
    static uintptr_t words[2000];
    uint64_t random = 7;
    size_t have = 0;
    int64_t allocated = 0;
    sy_guard_left = FAR;
    for (int step = 0; step < STEPS; step++) {
        uint64_t dice = next_random(&random);
        if (dice % 4096 == 0) sy_client_drain(&banks[0]->client);
        if (dice % 4096 == 1) must(sy_client_reserve(&banks[0]->client, 100) >= 100);
        if (dice / 4096 % 1024 < (step % 20000 < 10000 ? 600 : 400) && have < 2000) {
            must(get_seen(banks[0], &words[have++]));
            allocated++;
        } else if (have) {
            put_seen(banks[0], words[--have]);
        }
    }
    while (have) put_seen(banks[0], words[--have]);
    put_seen(banks[0], (must(get_seen(banks[0], &words[0])), words[0]));
    assert_int_equal(FAR - sy_guard_left, allocated + 1);
    in_thread(count_in_a_thread, banks);
    close_bank(banks[0]);
    close_bank(banks[1]);
}

/* The k-th allocation is guarded, wherever in a magazine it is. */
static void the_one_is_due_at_its_place(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, GUARDED);
    static uintptr_t words[500];
    counted(bank, 3, 300);
    for (int place = 1; place < 400; place++) {
        uintptr_t word;
        must(get_seen(bank, &words[0]));
        must(get_seen(bank, &words[1]));
        put_seen(bank, words[1]);
        sy_guard_left = place;
        put_seen(bank, words[0]); /* inspected */
        for (int i = 1; i < place; i++) must(get_seen(bank, &words[i]));
        assert_false(get_seen(bank, &word));
        sy_guard_left = FAR;
        for (int i = 1; i < place; i++) put_seen(bank, words[i]);
    }
    close_bank(bank);
}

static void what_is_reserved_is_not_guarded(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, GUARDED);
    static uintptr_t words[258];
    counted(bank, 3, 300);
    size_t there = sy_client_reserve(&bank->client, 200);
    assert_in_range(there, 200, 256);
    sy_guard_left = 10;
    put_seen(bank, (must(get_seen(bank, &words[0])), words[0]));
    assert_true(slot_of(bank)->top - slot_of(bank)->base > 10); /* inline, all of it */
    /* Nor is the allocation that finds that no more are due. */
    for (size_t i = 0; i <= there; i++) must(get_seen(bank, &words[i]));
    assert_false(get_seen(bank, &words[257])); /* its interval ended long ago */
    sy_guard_left = FAR;
    for (size_t i = 0; i <= there; i++) put_seen(bank, words[i]);
    close_bank(bank);
}

/* The count is right although the slot is shut for the next allocation, which will be guarded. */
static void what_is_one_way_and_shut_is_put_back(void **state) {
    (void)state;
    sy_client_config config = GUARDED;
    config.kind = &sy_client_one_way_guarded;
    struct bank *bank = open_bank(&the_bank, 100, config);
    uintptr_t word;
    sy_guard_left = 2;
    must(get_seen(bank, &word));
    assert_true(slot_of(bank)->top <= slot_of(bank)->base);
    assert_true(bank->lent > 1);
    sy_thread_put_back();
    assert_int_equal(bank->lent, 1);
    sy_guard_left = FAR;
    put_seen(bank, word);
    close_bank(bank);
}

static void without_magazines_each_allocation_counts(void **state) {
    (void)state;
    struct bank *bank =
        open_bank(&the_bank, 100, (sy_client_config){.kind = &sy_client_guarded, .item_bytes = 64});
    uintptr_t words[100];
    sy_guard_left = 50;
    for (int i = 0; i < 49; i++) must(get_seen(bank, &words[i]));
    assert_false(get_seen(bank, &words[49]));
    for (int i = 0; i < 49; i++) put_seen(bank, words[i]);
    close_bank(bank);
}

/* While no guard is due, an allocation is inline and a free is a push. */
static void they_exchange_no_more_than_others(void **state) {
    (void)state;
    struct bank *bank = open_bank(&the_bank, WORDS_MAX, GUARDED);
    counted(bank, 20, 300);
    size_t refills = bank->refills, flushes = bank->flushes;
    counted(bank, 100, 200);
    assert_int_equal(bank->refills, refills);
    assert_int_equal(bank->flushes, flushes);
    uintptr_t word;
    must(get_seen(bank, &word));
    put_seen(bank, word);
    const sy_loaded_slot *slot = slot_of(bank);
    assert_true(slot->top > slot->base);
    close_bank(bank);
}

static int start(void **state) {
    (void)state;
    sy_fake_set_cpu_count(2);
    (void)sy_guard_due(); /* begins this thread's first interval */
    int result = sy_threads_part.start();
    sy_fake_reset();
    return result;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First, because it needs a thread without a record and without a magazine. */
        cmocka_unit_test(no_memory_for_magazines_means_going_without),
        cmocka_unit_test(every_word_is_given_once),
        cmocka_unit_test(the_word_put_last_is_given_next),
        cmocka_unit_test(a_random_history_loses_and_doubles_nothing),
        cmocka_unit_test(refill_and_flush_come_by_the_magazine_full),
        cmocka_unit_test(no_exchange_at_each_crossing),
        cmocka_unit_test(a_depot_holds_no_more_than_its_budget),
        cmocka_unit_test(a_client_without_magazines_goes_straight_through),
        cmocka_unit_test(all_threads_together_hold_what_is_granted),
        cmocka_unit_test(an_ended_threads_words_wait_for_others),
        cmocka_unit_test(an_idle_threads_words_are_taken_when_wanted),
        cmocka_unit_test(a_running_thread_drains_at_its_next_exchange),
        cmocka_unit_test(drain_empties_what_it_can_reach),
        cmocka_unit_test(drain_takes_nothing_up),
        cmocka_unit_test(flush_empties_this_thread_alone),
        cmocka_unit_test(holds_finds_a_word_wherever_it_waits),
        cmocka_unit_test(alloc_loaded_takes_both_magazines_and_no_more),
        cmocka_unit_test(a_number_on_demand_is_given_once),
        cmocka_unit_test(numbers_run_out_and_come_back),
        cmocka_unit_test(a_number_is_reused_with_all_slots_empty),
        cmocka_unit_test(counts_begin_anew_with_a_client),
        cmocka_unit_test(another_processors_words_are_found),
        cmocka_unit_test(pins_go_through_all_clients),
        cmocka_unit_test(close_waits_for_pins),
        cmocka_unit_test(suspending_waits_for_pins_and_keeps_new_ones_off),
        cmocka_unit_test(what_waited_all_the_time_is_reaped),
        cmocka_unit_test(a_step_reaps_a_few_magazines),
        cmocka_unit_test(budgets_shrink_with_what_is_reaped),
        cmocka_unit_test(while_caches_grow_a_depot_keeps_a_share),
        cmocka_unit_test(what_is_reaped_takes_earlier_refusals_along),
        cmocka_unit_test(a_drain_in_steps_takes_all),
        cmocka_unit_test(parked_threads_are_reaped_by_age),
        cmocka_unit_test(this_thread_empties_its_idle_slots),
        cmocka_unit_test(a_slot_that_no_look_has_seen_is_not_idle),
        cmocka_unit_test(a_look_for_much_passes_by_slots_with_less),
        cmocka_unit_test(no_word_has_two_owners),
        cmocka_unit_test(each_allocation_is_counted_once),
        cmocka_unit_test(a_random_history_is_counted),
        cmocka_unit_test(the_one_is_due_at_its_place),
        cmocka_unit_test(what_is_reserved_is_not_guarded),
        cmocka_unit_test(what_is_one_way_and_shut_is_put_back),
        cmocka_unit_test(without_magazines_each_allocation_counts),
        cmocka_unit_test(they_exchange_no_more_than_others),
    };
    return cmocka_run_group_tests_name("client", tests, start, NULL);
}
