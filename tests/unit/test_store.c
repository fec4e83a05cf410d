/*
 * test_store.c: magazines are taken and put back, and their memory is made and given back. Each
 * test runs in a child, in which the store has not been used.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "magazine/store.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/page_size.h"
#include "support/services.h"

enum { SEGMENT = SY_MAGAZINES_PER_SEGMENT, ITEMS = SY_MAGAZINE_WORDS * sizeof(uintptr_t) };

static sy_magazine *take(void) {
    sy_magazine *magazine = sy_store_take();
    must(magazine != NULL);
    return magazine;
}

static void fill(sy_magazine *magazine) {
    for (int i = 0; i < SY_MAGAZINE_ITEMS; i++) magazine->items[i] = magazine->number;
}

static void keep_to_themselves(void *arg) {
    (void)arg;
    enum { COUNT = SEGMENT + 10 };
    static sy_magazine *taken[COUNT];
    for (int i = 0; i < COUNT; i++) {
        taken[i] = take();
        must(taken[i]->number != 0);
        must(sy_magazine_of(taken[i]->number) == taken[i]);
        must((uintptr_t)taken[i] % 64 == 0);
        fill(taken[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (int item = 0; item < SY_MAGAZINE_ITEMS; item++)
            must(taken[i]->items[item] == taken[i]->number);
    must(sy_store_verify() == 0);
    for (int i = 0; i < COUNT; i++) sy_store_put(taken[i]);
    must(sy_store_verify() == 0);
}

static void magazines_do_not_overlap(void **state) {
    (void)state;
    assert_int_equal(in_child(keep_to_themselves, NULL), 0);
}

static void reuse(void *arg) {
    (void)arg;
    sy_magazine *a = take(), *b = take(), *c = take();
    size_t bytes = sy_store_bytes();
    sy_store_put(c);
    sy_store_put(a);
    must(take() == a);
    must(take() == c);
    for (int i = 0; i < 10 * SEGMENT; i++) {
        sy_store_put(b);
        must(take() == b);
    }
    must(sy_store_bytes() == bytes);
}

static void the_lowest_unused_is_given_first(void **state) {
    (void)state;
    assert_int_equal(in_child(reuse, NULL), 0);
}

static void fail_first(void *call) {
    for (int i = 0; i < 3; i++) {
        sy_fake_fail_nth(*(sy_fake_call *)call, 1);
        errno = 0;
        must(sy_store_take() == NULL);
        must(errno == ENOMEM);
        must(sy_store_bytes() == 0);
        must(sy_fake_reserved() == 0);
    }
    take();
    must(sy_store_verify() == 0);
}

static void without_memory_there_is_none(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    assert_int_equal(in_child(fail_first, &calls[0]), 0);
    assert_int_equal(in_child(fail_first, &calls[1]), 0);
}

static void give_back(void *arg) {
    (void)arg;
    enum { COUNT = 255 }; /* with number 0 they fill words of the store's bitmap */
    sy_magazine *taken[COUNT];
    for (int i = 0; i < COUNT; i++) fill(taken[i] = take());
    must(sy_store_trim() == 0);
    for (int i = 0; i < COUNT; i++)
        if (i != 100) sy_store_put(taken[i]);
    size_t bytes = sy_store_trim();
    /* All pages except those of the magazine in use and of number 0, which is never given out. */
    must(bytes + 2 * 65536 >= COUNT * (size_t)ITEMS && bytes < COUNT * (size_t)ITEMS);
    must(taken[100]->items[0] == taken[100]->number);
    must(sy_store_trim() == 0);
    must(sy_store_verify() == 0);
    sy_magazine *again[COUNT];
    for (int i = 0; i < COUNT - 1; i++) {
        again[i] = take();
        must(again[i] != taken[100]);
        must(again[i]->items == sy_magazine_of(again[i]->number)->items);
    }
    must(again[200]->items[5] == 0);
}

static void trim_takes_the_memory_of_unused_ones_alone(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    assert_int_equal(in_child(give_back, NULL), 0);
}

static void discard_fails(void *arg) {
    (void)arg;
    enum { COUNT = 256 };
    sy_magazine *taken[COUNT];
    for (int i = 0; i < COUNT; i++) fill(taken[i] = take());
    for (int i = 0; i < COUNT; i++) sy_store_put(taken[i]);
    sy_fake_fail_from(SY_FAKE_DISCARD, 1);
    must(sy_store_trim() == 0);
    must(sy_fake_failures(SY_FAKE_DISCARD) > 0);
    must(sy_store_verify() == 0);
    sy_fake_succeed(SY_FAKE_DISCARD);
    must(sy_store_trim() > 0);
    for (int i = 0; i < COUNT; i++) must(take() == taken[i]);
}

static void a_trim_that_fails_loses_nothing(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    assert_int_equal(in_child(discard_fails, NULL), 0);
}

static void *take_and_put(void *arg) {
    sy_magazine *mine[64];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 64; i++) {
            mine[i] = take();
            for (int item = 0; item < 8; item++) mine[i]->items[item] = (uintptr_t)arg;
        }
        for (int i = 0; i < 64; i++) {
            for (int item = 0; item < 8; item++) must(mine[i]->items[item] == (uintptr_t)arg);
            sy_store_put(mine[i]);
        }
        if (round % 50 == 0) sy_store_trim();
    }
    return NULL;
}

static void share(void *arg) {
    (void)arg;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, take_and_put, (void *)(uintptr_t)(i + 1)) == 0);
    for (int i = 0; i < 4; i++) must(pthread_join(threads[i], NULL) == 0);
    must(sy_store_verify() == 0);
}

/* Does all steps of a trim. Returns the bytes. */
static size_t trim_in_steps(bool aged) {
    size_t bytes = 0, steps = 1;
    for (unsigned at = 0; sy_store_trim_step(&at, aged, &bytes); steps++) {}
    must(sy_store_verify() == 0);
    must(steps == SEGMENT / 64 / 8); /* half a MiB of items a step, in one segment */
    return bytes;
}

static void age(void *arg) {
    (void)arg;
    enum { COUNT = 1023, PUT = 500, AGAIN = 200 };
    static sy_magazine *taken[COUNT];
    const size_t item_bytes = SY_MAGAZINE_WORDS * sizeof(uintptr_t);
    for (int i = 0; i < COUNT; i++) fill(taken[i] = take());
    for (int i = 0; i < PUT; i++) sy_store_put(taken[i]);
    must(trim_in_steps(true) == 0); /* the magazines have just come back */
    for (int i = 0; i < AGAIN; i++) must(take() == taken[i]);
    for (int i = 0; i < AGAIN; i++) sy_store_put(taken[i]);
    size_t old = trim_in_steps(true), young = trim_in_steps(true);
    must(old > 0 && old <= (PUT - AGAIN) * item_bytes);
    must(young > 0 && old + young <= PUT * item_bytes);
    must(trim_in_steps(true) == 0);
    for (int i = PUT; i < COUNT; i++) must(taken[i]->items[5] == taken[i]->number);
    for (int i = PUT; i < COUNT; i++) sy_store_put(taken[i]);
    must(trim_in_steps(false) > 0); /* whatever their age */
}

static void by_age_it_takes_what_was_long_unused(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    assert_int_equal(in_child(age, NULL), 0);
}

/* From the 256th magazine on, one call gets memory for 64 magazines. */
static void back(void *arg) {
    (void)arg;
    enum { FEW = 255, MORE = 640 };
    static sy_magazine *taken[FEW + MORE];
    for (int i = 0; i < FEW; i++) fill(taken[i] = take());
    must(sy_fake_calls(SY_FAKE_POPULATE) == 0);
    sy_fake_fail_nth(SY_FAKE_POPULATE, 2);
    errno = 0;
    for (int i = FEW; i < FEW + MORE; i++) fill(taken[i] = take());
    must(sy_fake_calls(SY_FAKE_POPULATE) == MORE / 64 && errno == 0);
    must(sy_store_trim() == 0);
    for (int i = 0; i < FEW + MORE; i++) sy_store_put(taken[i]);
    must(sy_store_trim() >= (FEW + MORE - 64) * (size_t)ITEMS && sy_store_trim() == 0);
    taken[0] = take();
    for (int i = 1; i < FEW + 1; i++) fill(taken[i] = take());
    /* The other magazines of the last group of 64 have memory too, which was not used. */
    must(trim_in_steps(true) == 0 && trim_in_steps(true) == (64 - 4096 / ITEMS) * (size_t)ITEMS);
    must(sy_fake_calls(SY_FAKE_POPULATE) == MORE / 64 + 1);
}

static void many_get_memory_together(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    assert_int_equal(in_child(back, NULL), 0);
}

static void threads_never_hold_the_same_one(void **state) {
    (void)state;
    assert_int_equal(in_child(share, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magazines_do_not_overlap),
        cmocka_unit_test(the_lowest_unused_is_given_first),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(trim_takes_the_memory_of_unused_ones_alone),
        cmocka_unit_test(a_trim_that_fails_loses_nothing),
        cmocka_unit_test(by_age_it_takes_what_was_long_unused),
        cmocka_unit_test(many_get_memory_together),
        cmocka_unit_test(threads_never_hold_the_same_one),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
