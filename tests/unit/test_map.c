/*
 * test_map.c: what is at an address, for every address.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chunk/map.h"
#include "os/fake.h"
#include "support/child.h"

static const uintptr_t TOP = (uintptr_t)1 << SY_ADDRESS_BITS;

static void before_the_start_nothing_is_anywhere(void *arg) {
    (void)arg;
    must(sy_owner_at(0) == NULL && sy_owner_at((uintptr_t)&arg) == NULL);
    must(sy_owner_at(UINTPTR_MAX) == NULL);
    must(sy_class_at((uintptr_t)&arg) == 0 && sy_class_at(UINTPTR_MAX) == 0);
}

static void lookups_before_the_start_find_nothing(void **state) {
    (void)state;
    assert_int_equal(in_child(before_the_start_nothing_is_anywhere, NULL), 0);
}

static void start_fails_at(void *arg) {
    for (uint64_t n = 1;; n++) {
        sy_fake_reset();
        sy_fake_fail_nth(SY_FAKE_ANY, n);
        errno = 0;
        int result = sy_map_start();
        if (sy_fake_failures(SY_FAKE_ANY) == 0) {
            must(result == 0 && n == 5);
            break;
        }
        must(result == -1 && errno == ENOMEM);
        must(sy_fake_reserved() == 0);
        before_the_start_nothing_is_anywhere(arg);
    }
}

static void starting_can_be_tried_again(void **state) {
    (void)state;
    assert_int_equal(in_child(start_fails_at, NULL), 0);
}

static void set_and_look(void *arg) {
    static int owner;
    (void)arg;
    must(sy_map_start() == 0);
    /* At both ends of the address space and in between. */
    uintptr_t starts[] = {0, SY_CHUNK_BYTES, TOP / 2, TOP - 3 * (uintptr_t)SY_CHUNK_BYTES};
    for (int i = 0; i < 4; i++) {
        uintptr_t start = starts[i], end = start + 2 * (uintptr_t)SY_CHUNK_BYTES;
        sy_map_set_owner(start, 2 * (size_t)SY_CHUNK_BYTES, &owner);
        must(sy_owner_at(start) == &owner && sy_owner_at(end - 1) == &owner);
        must(sy_owner_at(end) == NULL && (!start || sy_owner_at(start - 1) == NULL));
        sy_map_set_owner(start, 2 * (size_t)SY_CHUNK_BYTES, NULL);
        must(sy_owner_at(start) == NULL && sy_owner_at(end - 1) == NULL);

        sy_map_set_class(start + SY_UNIT_BYTES, 3, 255);
        must(sy_class_at(start) == 0 && sy_class_at(start + SY_UNIT_BYTES) == 255);
        must(sy_class_at(start + 4 * SY_UNIT_BYTES - 1) == 255);
        must(sy_class_at(start + 4 * SY_UNIT_BYTES) == 0);
        sy_map_set_class(start + SY_UNIT_BYTES, 3, 0);
        must(sy_class_at(start + SY_UNIT_BYTES) == 0);
    }
}

static void what_was_set_is_found_and_nothing_else(void **state) {
    (void)state;
    assert_int_equal(in_child(set_and_look, NULL), 0);
}

static void look_outside(void *arg) {
    (void)arg;
    static int owner;
    must(sy_map_start() == 0);
    sy_map_set_owner(0, SY_CHUNK_BYTES, &owner);
    must(sy_owner_at(TOP) == NULL);
    must(sy_owner_at(TOP - 1) == NULL);
    for (unsigned bit = SY_ADDRESS_BITS; bit < 64; bit++) {
        must(sy_owner_at((uintptr_t)1 << bit) == NULL);
        sy_class_at((uintptr_t)1 << bit); /* some class: the slab is looked for after it */
    }
    must(sy_owner_at(UINTPTR_MAX) == NULL);
}

static void addresses_outside_the_space_have_no_owner(void **state) {
    (void)state;
    assert_int_equal(in_child(look_outside, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_before_the_start_find_nothing),
        cmocka_unit_test(starting_can_be_tried_again),
        cmocka_unit_test(what_was_set_is_found_and_nothing_else),
        cmocka_unit_test(addresses_outside_the_space_have_no_owner),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
