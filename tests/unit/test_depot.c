/*
 * test_depot.c: stacks of magazines, used by one thread and by several.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "magazine/depot.h"
#include "os/fake.h"
#include "support/child.h"

enum { CPUS = 3, CLIENTS = 4, MANY = 4096 };

static sy_magazine *with_items(uint32_t count) {
    sy_magazine *magazine = sy_store_take();
    must(magazine != NULL);
    atomic_store(&magazine->count, count);
    return magazine;
}

static void shards_are_a_power_of_two_and_a_clients_own(void **state) {
    (void)state;
    assert_int_equal(sy_depot_shard_count, 4);
    for (unsigned client = 0; client + 1 < CLIENTS; client++)
        assert_ptr_equal(sy_depot_shards_of(client) + 4, sy_depot_shards_of(client + 1));
    assert_null(sy_depot_pop(sy_depot_shards_of(1)));
    assert_int_equal(sy_depot_items(sy_depot_shards_of(1)), 0);
}

static void the_last_put_in_is_the_first_out(void **state) {
    (void)state;
    sy_depot_shard *shard = sy_depot_shards_of(1);
    sy_magazine *a = with_items(5), *b = with_items(7);
    sy_depot_push(shard, a);
    assert_int_equal(sy_depot_items(shard), 5);
    sy_depot_push(shard, b);
    assert_int_equal(sy_depot_items(shard), 12);
    assert_null(sy_depot_pop(shard + 1));
    assert_ptr_equal(sy_depot_pop(shard), b);
    assert_int_equal(sy_depot_items(shard), 5);
    assert_ptr_equal(sy_depot_pop(shard), a);
    assert_null(sy_depot_pop(shard));
    assert_int_equal(sy_depot_items(shard), 0);
    sy_store_put(a);
    sy_store_put(b);
}

/* A pop that was stalled after it read the top must fail: the same word never comes back. */
static void no_exchange_brings_an_old_word_back(void **state) {
    (void)state;
    sy_depot_shard *shard = sy_depot_shards_of(2);
    sy_magazine *magazine = with_items(1);
    uint64_t before = atomic_load(&shard->top);
    for (int i = 0; i < 10000; i++) {
        sy_depot_push(shard, magazine);
        uint64_t pushed = atomic_load(&shard->top);
        assert_true(pushed > before);
        assert_ptr_equal(sy_depot_pop(shard), magazine);
        uint64_t popped = atomic_load(&shard->top);
        assert_true(popped > pushed || popped >> SY_DEPOT_TAG_SHIFT > pushed >> SY_DEPOT_TAG_SHIFT);
        before = popped;
    }
    sy_store_put(magazine);
}

enum { MAGAZINES = 64, EXCHANGES = 50000 };

/* A magazine that is in no stack belongs to one thread. */
static void *exchange(void *arg) {
    sy_depot_shard *shards = sy_depot_shards_of(3);
    uint64_t random = (uintptr_t)arg;
    for (int i = 0; i < EXCHANGES; i++) {
        sy_magazine *magazine = sy_depot_pop(&shards[next_random(&random) % 2]);
        if (!magazine) continue;
        magazine->items[0] = (uintptr_t)arg;
        magazine->items[1]++;
        sy_depot_items(&shards[0]);
        must(magazine->items[0] == (uintptr_t)arg);
        sy_depot_push(&shards[next_random(&random) % 2], magazine);
    }
    return NULL;
}

static void threads_never_get_the_same_magazine(void **state) {
    (void)state;
    sy_depot_shard *shards = sy_depot_shards_of(3);
    pthread_t threads[4];
    for (uint32_t i = 0; i < MAGAZINES; i++) sy_depot_push(&shards[0], with_items(i + 1));
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    uint64_t items = sy_depot_items(&shards[0]) + sy_depot_items(&shards[1]);
    assert_int_equal(items, MAGAZINES * (MAGAZINES + 1) / 2);
    uint32_t seen = 0;
    sy_magazine *magazine;
    for (int i = 0; i < 2; i++)
        while ((magazine = sy_depot_pop(&shards[i])) != NULL) {
            items -= atomic_load(&magazine->count);
            sy_store_put(magazine);
            seen++;
        }
    assert_int_equal(seen, MAGAZINES);
    assert_int_equal(items, 0);
    assert_int_equal(sy_store_verify(), 0);
}

static void start_fails(void *arg) {
    size_t before = sy_fake_reserved();
    sy_fake_fail_from(*(sy_fake_call *)arg, 1);
    errno = 0;
    must(sy_depot_start(CPUS, CLIENTS) == -1);
    must(errno == ENOMEM);
    must(sy_fake_reserved() == before);
    sy_fake_reset();
    sy_fake_fail_above(SY_FAKE_RESERVE, 5 * MANY * sizeof(sy_depot_shard));
    must(sy_depot_start(1000, MANY) == 0);
    must(sy_depot_shard_count == 4); /* for more there is no address space */
    sy_fake_reset();
    must(sy_depot_start(1, CLIENTS) == 0);
    must(sy_depot_shard_count == 1);
    must(sy_depot_start(1000, CLIENTS) == 0);
    must(sy_depot_shard_count == SY_DEPOT_SHARDS_MAX);
}

static void starting_can_be_tried_again(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    assert_int_equal(in_child(start_fails, &calls[0]), 0);
    assert_int_equal(in_child(start_fails, &calls[1]), 0);
}

static int start(void **state) {
    (void)state;
    return sy_depot_start(CPUS, CLIENTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_a_power_of_two_and_a_clients_own),
        cmocka_unit_test(the_last_put_in_is_the_first_out),
        cmocka_unit_test(no_exchange_brings_an_old_word_back),
        cmocka_unit_test(threads_never_get_the_same_magazine),
        cmocka_unit_test(starting_can_be_tried_again),
    };
    return cmocka_run_group_tests_name("depot", tests, start, NULL);
}
