/*
 * test_address.c: address space for chunks, in few mappings, lowest first.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chunk/address.h"
#include "chunk/map.h"
#include "os/fake.h"
#include "support/child.h"

static uintptr_t take(void) {
    uintptr_t chunk = sy_address_take_chunk();
    must(chunk != 0 && chunk % SY_CHUNK_BYTES == 0);
    must(sy_fake_is_committed((void *)chunk, SY_CHUNK_BYTES));
    return chunk;
}

/* 4 GiB: 16 + 32 + 64 + 128 + 256 + 256 + ... chunks. */
static void take_many(void *arg) {
    enum { COUNT = 1024 };
    static uintptr_t chunks[COUNT];
    (void)arg;
    for (int i = 0; i < COUNT; i++) {
        chunks[i] = take();
        must(sy_address_chunk((size_t)i) == chunks[i]);
        if (i == 0) must(sy_fake_reserved() == (size_t)64 << 20);
    }
    must(sy_fake_calls(SY_FAKE_RESERVE) == 8);
    must(sy_address_chunk(10000) == 0);
    for (int i = 0; i < COUNT; i++) sy_address_give_chunk(chunks[i]);
    for (int i = 0; i < COUNT; i++) must(take() == chunks[i]);
    must(sy_fake_calls(SY_FAKE_RESERVE) == 8);
}

static void extents_grow_so_that_mappings_stay_few(void **state) {
    (void)state;
    assert_int_equal(in_child(take_many, NULL), 0);
}

static void give_out_of_order(void *arg) {
    uintptr_t chunks[40];
    (void)arg;
    for (int i = 0; i < 40; i++) chunks[i] = take();
    sy_address_give_chunk(chunks[30]); /* of the second extent */
    sy_address_give_chunk(chunks[7]);
    sy_address_give_chunk(chunks[3]);
    must(take() == chunks[3]);
    must(take() == chunks[7]);
    must(take() == chunks[30]);
}

static void the_lowest_unused_is_given_first(void **state) {
    (void)state;
    assert_int_equal(in_child(give_out_of_order, NULL), 0);
}

static void shortage(void *arg) {
    (void)arg;
    sy_fake_fail_above(SY_FAKE_RESERVE, 5 * (size_t)SY_CHUNK_BYTES);
    for (int i = 0; i < 40; i++) take();
    must(sy_fake_reserved() <= 44 * (size_t)SY_CHUNK_BYTES);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    size_t reserved = sy_fake_reserved(), more = 0;
    errno = 0;
    while (sy_address_take_chunk()) must(++more <= 4);
    must(errno == ENOMEM && sy_fake_reserved() == reserved);
}

static void where_space_is_short_a_small_extent_will_do(void **state) {
    (void)state;
    assert_int_equal(in_child(shortage, NULL), 0);
}

static void no_commit(void *arg) {
    (void)arg;
    uintptr_t first = take();
    sy_fake_fail_nth(SY_FAKE_COMMIT, 1);
    errno = 0;
    must(sy_address_take_chunk() == 0 && errno == ENOMEM);
    must(take() == first + SY_CHUNK_BYTES);
}

static void what_cannot_be_committed_is_not_lost(void **state) {
    (void)state;
    assert_int_equal(in_child(no_commit, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_grow_so_that_mappings_stay_few),
        cmocka_unit_test(the_lowest_unused_is_given_first),
        cmocka_unit_test(where_space_is_short_a_small_extent_will_do),
        cmocka_unit_test(what_cannot_be_committed_is_not_lost),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
