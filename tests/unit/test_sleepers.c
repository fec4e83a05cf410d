/*
 * test_sleepers.c: what one thread takes from the slots of another one that sleeps, and that the
 * sleeper goes on as if nothing had happened, wherever it was.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "magazine/sleepers.h"
#include "magazine/slot.h"
#include "os/fake.h"
#include "os/os.h"
#include "os/start.h"
#include "support/bank.h"

/* For this program. */
bool sy_threads_may_be_reached(void) { return true; }

/* ---- a thread that sleeps ---- */

enum { MANY = 400 };

/* It does `work`, then sleeps, then does `work` again, until there is none. */
static struct {
    pthread_t thread;
    pthread_barrier_t meets;
    void (*work)(struct bank *bank);
    struct bank *bank;
    sy_slot *slot;
} sleeper;

static void *sleep_and_work(void *unused) {
    (void)unused;
    sleeper.slot = (sy_slot *)slot_of(sleeper.bank);
    for (;;) {
        pthread_barrier_wait(&sleeper.meets);
        if (!sleeper.work) return NULL;
        sleeper.work(sleeper.bank);
        sleeper.slot = (sy_slot *)slot_of(sleeper.bank);
        pthread_barrier_wait(&sleeper.meets);
    }
}

static void tell(void (*work)(struct bank *bank)) {
    sleeper.work = work;
    pthread_barrier_wait(&sleeper.meets);
}

static void let(void (*work)(struct bank *bank)) {
    tell(work);
    if (work) pthread_barrier_wait(&sleeper.meets);
}

static uintptr_t take(struct bank *bank) {
    uintptr_t word;
    if (!sy_loaded_pop(slot_of(bank), &word) && !sy_client_alloc_second(&bank->client, &word))
        must(sy_client_alloc(&bank->client, &word));
    must(word < bank->words && bank->out[word] && !held[word]);
    held[word] = true;
    return word;
}

static void give(struct bank *bank, uintptr_t word) {
    must(held[word]);
    held[word] = false;
    if (sy_loaded_push_once(slot_of(bank), word)) return;
    sy_freed freed = sy_client_free_second(&bank->client, word);
    must(freed != SY_FREED_BEFORE);
    if (freed == SY_FREED_NOT) sy_client_free(&bank->client, word);
}

static void take_many(struct bank *bank) {
    for (int i = 0; i < MANY; i++) take(bank);
}

static void give_all(struct bank *bank) {
    for (uintptr_t word = 0; word < bank->words; word++)
        if (held[word]) give(bank, word);
}

static void take_one(struct bank *bank) { take(bank); }

static void use_at_random(struct bank *bank) {
    uint64_t random = 5;
    uintptr_t words[MANY];
    size_t count = 0;
    for (int i = 0; i < 20000; i++) {
        if (count < MANY && (!count || next_random(&random) % 2))
            words[count++] = take(bank);
        else
            give(bank, words[--count]);
    }
    while (count) give(bank, words[--count]);
}

static void begin(size_t words) {
    sy_fake_reset();
    memset(held, 0, sizeof held);
    sleeper.bank = open_bank(&the_bank, words, PLAIN);
    pthread_barrier_init(&sleeper.meets, NULL, 2);
    must(pthread_create(&sleeper.thread, NULL, sleep_and_work, NULL) == 0);
}

/* The sleeper has items in both of its magazines. */
static void begin_rich(void) {
    begin(5000);
    let(take_many);
    let(give_all);
    must(sy_slot_loaded_items(sleeper.slot) > 10 && sleeper.slot->previous);
    must(sy_magazine_count(sleeper.slot->previous) > 0);
}

/* Every word is in the bank, in a magazine, or with the test; then nothing is in magazines. */
static void end(void) {
    size_t out = 0;
    let(NULL);
    pthread_join(sleeper.thread, NULL);
    for (size_t word = 0; word < WORDS_MAX; word++) out += held[word];
    sy_fake_reset();
    assert_int_equal(the_bank.lent, out + waiting(&the_bank));
    sy_client_drain(&the_bank.client);
    assert_int_equal(the_bank.lent, out);
    for (uintptr_t word = 0; word < WORDS_MAX; word++)
        if (held[word]) sy_client_free(&the_bank.client, word);
    close_bank(&the_bank);
    pthread_barrier_destroy(&sleeper.meets);
}

static size_t loaded_items(void) {
    size_t depot, loaded;
    count_held(&the_bank, &depot, &loaded);
    assert_int_equal(loaded, sy_slot_items(sleeper.slot));
    return loaded;
}

static bool needs_barriers(void) { return sy_os_barrier_threads() != 0; }

/* ---- what is taken ---- */

static void all_but_the_newest_item_is_taken(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), 1);
    assert_null(sleeper.slot->previous);
    assert_int_equal(the_bank.lent, waiting(&the_bank));
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), 1);
    let(use_at_random);
    end();
}

static void a_slot_is_looked_at_twice(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(false);
    size_t before = loaded_items();
    assert_true(before > 1);
    let(take_one);
    sy_threads_reach(false);
    assert_int_equal(loaded_items(), before - 1);
    sy_threads_reach(false);
    assert_int_equal(loaded_items(), 1);
    let(use_at_random);
    end();
}

static void items_are_taken_again_beside_a_gap(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    let(use_at_random);
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), 1);
    let(take_one); /* the gap is below `base` still */
    assert_int_equal(loaded_items(), 0);
    let(give_all);
    for (int i = 0; i < 3; i++) {
        let(take_many);
        let(give_all);
        sy_threads_reach(true);
        assert_int_equal(loaded_items(), 1);
    }
    end();
}

static void the_items_of_a_gap_are_nowhere(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    uintptr_t oldest = sleeper.slot->loaded->items[0], newest = sleeper.slot->top[-1];
    sy_threads_reach(true);
    sy_clients_lock();
    assert_false(sy_client_holds(&the_bank.client, oldest));
    assert_true(sy_client_holds(&the_bank.client, newest));
    sy_clients_unlock();
    end();
}

/* The word below `base` may be an item that was taken, and that the thread got again elsewhere. */
static void give_a_word_of_the_gap(struct bank *bank) {
    take(bank); /* the newest */
    uintptr_t stale = slot_of(bank)->top[-1];
    must(!held[stale] && !bank->out[stale]);
    bank->out[stale] = held[stale] = true; /* from another thread */
    bank->lent++;
    give(bank, stale);
}

static void a_stale_word_is_no_double_free(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    let(give_a_word_of_the_gap);
    let(use_at_random);
    end();
}

static void set_a_window(struct bank *bank) {
    sy_slot *slot = (sy_slot *)slot_of(bank);
    slot->base = slot->top - 5;
}

static void items_below_a_window_are_taken(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    let(set_a_window);
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), 1);
    let(use_at_random);
    end();
}

static void reserve_some(struct bank *bank) { must(sy_client_reserve(&bank->client, 10) > 0); }

static void reserved_items_stay(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin(5000);
    let(reserve_some);
    size_t before = loaded_items();
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), before);
    end();
}

static void take_before_the_end(struct bank *bank) {
    take(bank);
    take(bank);
    give_all(bank);
}

static void a_thread_ends_with_a_gap(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    end();
    begin_rich();
    sy_threads_reach(true);
    let(take_before_the_end);
    end();
}

static void idle(struct bank *bank) { (void)bank, sy_thread_idle(); }

static void a_thread_parks_with_a_gap(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    sy_slot *slot = sleeper.slot;
    let(idle);
    sy_threads_reach(true);
    sy_client_drain(&the_bank.client);
    assert_int_equal(sy_slot_items(slot), 0);
    assert_int_equal(the_bank.lent, 0);
    let(use_at_random);
    end();
}

static void flush_own(struct bank *bank) {
    (void)bank;
    sy_thread_flush();
}

static void a_thread_flushes_a_gap(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    let(flush_own);
    sy_client_drain(&the_bank.client);
    assert_int_equal(the_bank.lent, 0);
    end();
}

/* ---- an operation under way ---- */

/* The sleeper has read `top` and the bounds, and is interrupted. */
static uintptr_t *top_read;

static void begin_operation(struct bank *bank) { top_read = slot_of(bank)->top; }

static void end_allocation(struct bank *bank) {
    uintptr_t word = top_read[-1];
    must(bank->out[word] && !held[word]);
    held[word] = true;
    slot_of(bank)->top = top_read - 1;
}

static uintptr_t given = WORDS_MAX;

static void end_free(struct bank *bank) {
    must(held[given]);
    held[given] = false;
    *top_read = given;
    slot_of(bank)->top = top_read + 1;
    given = WORDS_MAX;
}

static void take_one_to_give(struct bank *bank) { given = take(bank); }

static void an_allocation_under_way_ends(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    let(begin_operation);
    sy_threads_reach(true);
    let(end_allocation);
    assert_int_equal(loaded_items(), 0);
    let(use_at_random);
    end();
}

static void a_free_under_way_ends(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    let(take_one_to_give);
    let(begin_operation);
    sy_threads_reach(true);
    let(end_free);
    assert_int_equal(loaded_items(), 2);
    let(use_at_random);
    end();
}

/* It ends between the moment when the bounds are shut and the barrier. */
static void (*meanwhile)(struct bank *bank);

static void work_before_the_second(void) {
    if (sy_fake_calls(SY_FAKE_BARRIER_THREADS) == 1) let(meanwhile);
}

static void an_operation_ends_before_the_barrier(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    void (*const ends[])(struct bank *) = {end_allocation, end_free};
    for (int i = 0; i < 2; i++) {
        begin_rich();
        let(take_one_to_give);
        let(begin_operation);
        sy_fake_reset();
        meanwhile = ends[i];
        sy_fake_run_before(SY_FAKE_BARRIER_THREADS, work_before_the_second);
        sy_threads_reach(true);
        sy_fake_reset();
        assert_int_equal(loaded_items(), 1);
        let(use_at_random);
        end();
    }
}

/* ---- slow paths ---- */

static void wake_before_the_second(void) {
    if (sy_fake_calls(SY_FAKE_BARRIER_THREADS) != 1) return;
    tell(use_at_random);
    sy_fake_await_waiting(1);
}

/* Its first operation finds a shut slot, and waits. */
static void a_thread_waits_while_it_is_held(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_fake_reset();
    sy_fake_run_before(SY_FAKE_BARRIER_THREADS, wake_before_the_second);
    sy_threads_reach(true);
    pthread_barrier_wait(&sleeper.meets);
    assert_true(sy_fake_calls(SY_FAKE_BARRIER_THREADS) >= 2);
    end();
}

static pthread_barrier_t in_refill;

static size_t slow_refill(void *owner, uintptr_t *items, size_t count) {
    pthread_barrier_wait(&in_refill);
    pthread_barrier_wait(&in_refill);
    return refill(owner, items, count);
}

static void a_thread_in_a_slow_path_is_left_alone(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    struct bank *slow = calloc(1, sizeof *slow);
    must(slow != NULL);
    open_bank(slow, 100, PLAIN);
    slow->client.config.refill = slow_refill;
    pthread_barrier_init(&in_refill, NULL, 2);
    struct bank *rich = sleeper.bank;
    size_t before = loaded_items();
    sleeper.bank = slow;
    tell(take_one);
    pthread_barrier_wait(&in_refill);
    sy_threads_reach(true);
    assert_int_equal(waiting(rich), rich->lent);
    sy_clients_lock();
    size_t depot, loaded;
    sy_client_held(&rich->client, &depot, &loaded);
    sy_clients_unlock();
    assert_int_equal(loaded, before);
    pthread_barrier_wait(&in_refill);
    pthread_barrier_wait(&sleeper.meets);
    let(give_all);
    sleeper.bank = rich;
    end();
    close_bank(slow);
    free(slow);
    pthread_barrier_destroy(&in_refill);
}

/* ---- where nothing is taken ---- */

static void without_a_barrier_nothing_is_taken(void **state) {
    (void)state;
    for (unsigned failing = 1; failing <= 2; failing++) {
        begin_rich();
        size_t before = loaded_items();
        sy_fake_reset();
        sy_fake_fail_from(SY_FAKE_BARRIER_THREADS, failing);
        sy_threads_reach(true);
        assert_int_equal(loaded_items(), before);
        let(use_at_random);
        end();
    }
}

static void without_spare_magazines_the_other_one_is_taken(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_magazine *magazine, *chain = NULL;
    sy_fake_reset();
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    while ((magazine = sy_store_take()) != NULL) magazine->chain = chain, chain = magazine;
    sy_threads_reach(true);
    assert_null(sleeper.slot->previous);
    assert_true(loaded_items() > 1);
    sy_fake_reset();
    while (chain) {
        magazine = chain;
        chain = magazine->chain;
        sy_store_put(magazine);
    }
    let(use_at_random);
    end();
}

static void *reach_from_elsewhere(void *arg) {
    sy_threads_reach(true);
    return arg;
}

static void an_own_slot_is_left_alone(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin(5000);
    let(idle); /* it has set sleeper.slot */
    for (int i = 0; i < 20; i++) take(&the_bank);
    give_all(&the_bank);
    sleeper.slot = (sy_slot *)slot_of(&the_bank);
    size_t before = loaded_items();
    assert_true(before > 1);
    sy_threads_reach(true);
    assert_int_equal(loaded_items(), before);
    in_thread(reach_from_elsewhere, NULL);
    assert_int_equal(loaded_items(), 1);
    sy_thread_flush();
    end();
}

/* ---- fork ---- */

/* In a handler of a signal a fork may have to do without the list's lock. Here it runs no hooks. */
static void fork_while_shut(struct bank *bank) {
#if defined(__s390x__) /* the stack comes first */
    pid_t child = (pid_t)syscall(SYS_clone, 0L, (long)SIGCHLD, 0L, 0L, 0L);
#else
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
#endif
    must(child >= 0);
    if (child == 0) {
        must(slot_of(bank)->limit == NULL);
        sy_threads_open_again();
        uintptr_t words[MANY];
        for (int i = 0; i < 100; i++) words[i] = take(bank);
        for (int i = 0; i < 100; i++) give(bank, words[i]);
        _exit(0);
    }
    int status = -1;
    must(waitpid(child, &status, 0) == child && status == 0);
}

static void the_child_of_a_fork_opens_what_is_shut(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_fake_reset();
    meanwhile = fork_while_shut;
    sy_fake_run_before(SY_FAKE_BARRIER_THREADS, work_before_the_second);
    sy_threads_reach(true);
    sy_fake_reset();
    assert_int_equal(loaded_items(), 1);
    let(use_at_random);
    end();
}

/* The child puts the sleeper's one item into the depot. */
static void count_in_child(void *unused) {
    (void)unused;
    must(waiting(&the_bank) == the_bank.lent);
    sy_client_drain(&the_bank.client);
    must(the_bank.lent == 0);
}

static void a_gap_is_counted_in_the_child_of_a_fork(void **state) {
    (void)state;
    if (needs_barriers()) skip();
    begin_rich();
    sy_threads_reach(true);
    assert_int_equal(in_child(count_in_child, NULL), 0);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_the_newest_item_is_taken),
        cmocka_unit_test(a_slot_is_looked_at_twice),
        cmocka_unit_test(items_are_taken_again_beside_a_gap),
        cmocka_unit_test(the_items_of_a_gap_are_nowhere),
        cmocka_unit_test(a_stale_word_is_no_double_free),
        cmocka_unit_test(items_below_a_window_are_taken),
        cmocka_unit_test(reserved_items_stay),
        cmocka_unit_test(a_thread_ends_with_a_gap),
        cmocka_unit_test(a_thread_parks_with_a_gap),
        cmocka_unit_test(a_thread_flushes_a_gap),
        cmocka_unit_test(an_allocation_under_way_ends),
        cmocka_unit_test(a_free_under_way_ends),
        cmocka_unit_test(an_operation_ends_before_the_barrier),
        cmocka_unit_test(a_thread_waits_while_it_is_held),
        cmocka_unit_test(a_thread_in_a_slow_path_is_left_alone),
        cmocka_unit_test(without_a_barrier_nothing_is_taken),
        cmocka_unit_test(without_spare_magazines_the_other_one_is_taken),
        cmocka_unit_test(an_own_slot_is_left_alone),
        cmocka_unit_test(the_child_of_a_fork_opens_what_is_shut),
        cmocka_unit_test(a_gap_is_counted_in_the_child_of_a_fork),
    };
    must(sy_start() == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
