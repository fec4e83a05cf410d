/*
 * test_side.c: side memory: small blocks for what the library stores about memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chunk/side.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

static void *take(size_t bytes) {
    void *block = sy_side_take(bytes);
    must(block != NULL);
    return block;
}

static void blocks_are_zero_aligned_and_apart(void **state) {
    (void)state;
    static unsigned char *blocks[SY_SIDE_MAX / 97];
    size_t count = 0;
    for (size_t bytes = 1; bytes <= SY_SIDE_MAX; bytes += 1 + bytes / 4) {
        unsigned char *block = blocks[count++] = take(bytes);
        assert_int_equal((uintptr_t)block % (bytes > 32 ? 64 : 32), 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(block[i], 0);
        memset(block, (int)count, bytes);
    }
    count = 0;
    for (size_t bytes = 1; bytes <= SY_SIDE_MAX; bytes += 1 + bytes / 4) {
        unsigned char *block = blocks[count++];
        for (size_t i = 0; i < bytes; i++) assert_int_equal(block[i], (unsigned char)count);
        sy_side_give(block, bytes);
    }
}

static void a_block_is_reused_and_zero_again(void **state) {
    (void)state;
    unsigned char *block = take(1000);
    size_t bytes = sy_side_bytes();
    for (int i = 0; i < 10000; i++) {
        memset(block, 0xff, 1000);
        sy_side_give(block, 1000);
        unsigned char *again = take(600); /* of the same power of two as 1000 */
        assert_ptr_equal(again, block);
        for (int byte = 0; byte < 1000; byte++) assert_int_equal(again[byte], 0);
        sy_side_give(again, 600);
        assert_ptr_equal(take(1000), block);
    }
    assert_int_equal(sy_side_bytes(), bytes);
    sy_side_give(block, 1000);
}

static void the_largest_size_fills_areas(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    enum { COUNT = 7 * 4 }; /* four areas: each has room for 7 such blocks and for smaller ones */
    unsigned char *blocks[COUNT];
    size_t pieces = sy_fake_calls(SY_FAKE_RESERVE);
    for (int i = 0; i < COUNT; i++) memset(blocks[i] = take(SY_SIDE_MAX), i, SY_SIDE_MAX);
    assert_true(sy_side_bytes() >= COUNT * (size_t)SY_SIDE_MAX);
    assert_true(sy_fake_calls(SY_FAKE_RESERVE) - pieces <= 4);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(blocks[i][0], (unsigned char)i);
        assert_int_equal(blocks[i][SY_SIDE_MAX - 1], (unsigned char)i);
        sy_side_give(blocks[i], SY_SIDE_MAX);
    }
}

static void count_area(const void *start, size_t bytes, void *arg) {
    size_t **counts = arg;
    (void)start;
    ++*counts[0];
    *counts[1] += bytes;
}

static void fail_first(void *call) {
    size_t reserved = sy_fake_reserved();
    sy_fake_fail_from(*(sy_fake_call *)call, 1);
    errno = 0;
    size_t taken = 0;
    while (sy_side_take(SY_SIDE_MAX)) must(++taken < 1000); /* blocks that are left in areas */
    must(errno == ENOMEM);
    must(sy_fake_reserved() == reserved);
    sy_fake_succeed(*(sy_fake_call *)call);
    must(sy_side_take(SY_SIDE_MAX) != NULL);
}

static void have_little(void *arg) {
    (void)arg;
    size_t areas = 0, seen = 0;
    sy_fake_fail_above(SY_FAKE_RESERVE, 3 << 20);
    for (int i = 0; i < 200; i++) memset(take(SY_SIDE_MAX), 1, SY_SIDE_MAX);
    sy_side_each_area(count_area, (size_t *[2]){&areas, &seen});
    must(areas > 30 && seen <= sy_fake_reserved());
}

/* Even less is enough for small blocks. A large one is refused, and takes no area. */
static void have_64_kib_at_a_time(void *arg) {
    (void)arg;
    sy_fake_fail_above(SY_FAKE_COMMIT, 0);
    for (size_t bytes = SY_SIDE_MAX; bytes >= 32; bytes /= 2) /* what earlier areas have left */
        while (sy_side_take(bytes)) {}
    sy_fake_fail_above(SY_FAKE_COMMIT, 64 << 10);
    for (int i = 0; i < 10000; i++) memset(take(100), 1, 100);
    memset(take(32 << 10), 1, 32 << 10);
    size_t before = sy_fake_reserved();
    errno = 0;
    must(sy_side_take(64 << 10) == NULL && errno == ENOMEM);
    must(sy_side_take(SY_SIDE_MAX) == NULL);
    must(sy_fake_reserved() == before);
}

static void where_space_is_short_a_small_area_will_do(void **state) {
    (void)state;
    assert_int_equal(in_child(have_little, NULL), 0);
    assert_int_equal(in_child(have_64_kib_at_a_time, NULL), 0);
}

static void without_memory_there_is_none(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    assert_int_equal(in_child(fail_first, &calls[0]), 0);
    assert_int_equal(in_child(fail_first, &calls[1]), 0);
}

static void *take_and_give(void *arg) {
    unsigned char mark = (unsigned char)(uintptr_t)arg;
    for (int round = 0; round < 2000; round++) {
        size_t bytes = (size_t)32 << round % 8;
        unsigned char *block = take(bytes);
        for (size_t i = 0; i < bytes; i++) must(block[i] == 0);
        memset(block, mark, bytes);
        for (size_t i = 0; i < bytes; i++) must(block[i] == mark);
        sy_side_give(block, bytes);
    }
    return NULL;
}

static void threads_never_get_the_same_block(void **state) {
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zero_aligned_and_apart),
        cmocka_unit_test(a_block_is_reused_and_zero_again),
        cmocka_unit_test(the_largest_size_fills_areas),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(where_space_is_short_a_small_area_will_do),
        cmocka_unit_test(threads_never_get_the_same_block),
    };
    return cmocka_run_group_tests_name("side", tests, NULL, NULL);
}
