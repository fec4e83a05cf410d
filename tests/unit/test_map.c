/*
 * test_map.c: the map's owner and size class of every address.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "chunk/map.h"
#include "os/fake.h"
#include "support/child.h"

#if UINTPTR_MAX > UINT32_MAX

static const uintptr_t TOP = (uintptr_t)1 << SY_ADDRESS_BITS;
static const uintptr_t LEAF = (uintptr_t)1 << SY_LEAF_SHIFT;
static const uintptr_t GIB = (uintptr_t)1 << 30;

static void nothing_is_at(uintptr_t address) {
    must(sy_owner_at(address) == NULL && sy_class_at(address) == 0);
}

static void look_before_anything_is_covered(void *arg) {
    nothing_is_at(0);
    nothing_is_at((uintptr_t)&arg);
    nothing_is_at(TOP - 1);
    nothing_is_at(UINTPTR_MAX);
    must(sy_fake_reserved() == 0);
}

static void lookups_before_the_start_find_nothing(void **state) {
    (void)state;
    assert_int_equal(in_child(look_before_anything_is_covered, NULL), 0);
}

/* A range over three leaves is not covered if there is no memory for one of them. The leaves that
 * were made stay, and are not made again. */
static void cover_fails_at(void *call) {
    const uintptr_t start = 5 * LEAF - SY_CHUNK_BYTES;
    size_t reserved = 0;
    sy_map_place(TOP / 2);
    for (int made = 0; made < 3; made++) {
        sy_fake_fail_nth(*(sy_fake_call *)call, 2);
        errno = 0;
        int result = sy_map_cover(start, LEAF + 2 * (size_t)SY_CHUNK_BYTES);
        must(made == 2 ? result == 0 : result == -1 && errno == ENOMEM);
        must(sy_fake_reserved() > reserved);
        reserved = sy_fake_reserved();
        nothing_is_at(start);
        sy_fake_reset();
    }
    must(sy_map_cover(start, LEAF + 2 * (size_t)SY_CHUNK_BYTES) == 0);
    must(sy_fake_reserved() == reserved && sy_fake_calls(SY_FAKE_RESERVE) == 0);
}

static void a_leaf_that_is_not_to_be_had_is_asked_for_again(void **state) {
    (void)state;
    sy_fake_call calls[] = {SY_FAKE_RESERVE, SY_FAKE_COMMIT};
    for (int i = 0; i < 2; i++) assert_int_equal(in_child(cover_fails_at, &calls[i]), 0);
}

static pthread_barrier_t barrier;

/* Before each leaf is made: no thread has stored it yet, so all make one. */
static void wait_for_the_others(void) { pthread_barrier_wait(&barrier); }

enum { LEAVES = 64 };

static void *cover(void *arg) {
    (void)arg;
    for (uintptr_t at = 0; at < LEAVES * LEAF; at += LEAF) {
        must(sy_map_cover(at, LEAF) == 0);
        sy_map_set_class(at, 1, 1); /* all threads write into the leaf that stays */
        must(sy_class_at(at) == 1);
    }
    return NULL;
}

static void cover_at_a_time(void *arg) {
    enum { THREADS = 4 };
    (void)arg;
    pthread_t threads[THREADS];
    sy_map_place(TOP / 2);
    must(sy_map_cover(LEAVES * LEAF, 1) == 0);
    size_t one = sy_fake_reserved();
    pthread_barrier_init(&barrier, NULL, THREADS);
    sy_fake_run_before(SY_FAKE_RESERVE, wait_for_the_others);
    for (int i = 0; i < THREADS; i++) must(pthread_create(&threads[i], NULL, cover, NULL) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    must(sy_fake_reserved() == (LEAVES + 1) * one);
}

static void of_two_that_make_a_leaf_one_stays(void **state) {
    (void)state;
    assert_int_equal(in_child(cover_at_a_time, NULL), 0);
}

/* At both ends of the address space, in between, where two leaves meet, and at the ends of the
 * window. `near`: an address that the window is placed around. */
static void set_and_look(void *near) {
    static int owner;
    const uintptr_t chunk = SY_CHUNK_BYTES, placed = (uintptr_t)near;
    sy_map_place(placed);
    uintptr_t starts[] = {0,
                          chunk,
                          TOP / 2,
                          TOP - 3 * chunk,
                          7 * LEAF - chunk,
                          placed,
                          placed - 48 * GIB - chunk,
                          placed - 48 * GIB,
                          placed + 16 * GIB - 2 * chunk,
                          placed + 16 * GIB - chunk,
                          placed + 16 * GIB};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        uintptr_t start = starts[i], end = start + 2 * (uintptr_t)SY_CHUNK_BYTES;
        must(sy_map_cover(start, end - start) == 0);
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

        sy_map_set_class(start + SY_CHUNK_BYTES - SY_UNIT_BYTES, 2, 7); /* across two chunks */
        must(sy_class_at(start + SY_CHUNK_BYTES - 1) == 7);
        must(sy_class_at(start + SY_CHUNK_BYTES) == 7);
        must(sy_class_at(start + SY_CHUNK_BYTES + SY_UNIT_BYTES) == 0);
        sy_map_set_class(start + SY_CHUNK_BYTES - SY_UNIT_BYTES, 2, 0);
    }
}

static void what_was_set_is_found_and_nothing_else(void **state) {
    (void)state;
    const uintptr_t places[] = {64 * GIB, TOP / 2 + LEAF / 3, 7 * LEAF, TOP - 20 * GIB};
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            in_child(set_and_look, (void *)(places[i] / SY_CHUNK_BYTES * SY_CHUNK_BYTES)), 0);
}

/* Lookups in the window, 48 GiB below the first memory and 16 GiB above it, need no leaf. */
static void look_near(void *arg) {
    const uintptr_t placed = TOP / 2 + SY_CHUNK_BYTES;
    unsigned class_number;
    (void)arg;
    must(!sy_class_near(placed, &class_number));
    sy_map_place(placed + 100);
    sy_map_place(TOP / 4); /* it has a place already */
    must(sy_class_near(placed - 48 * GIB, &class_number) && class_number == 0);
    must(sy_class_near(placed + 16 * GIB - 1, &class_number) && class_number == 0);
    must(!sy_class_near(placed - 48 * GIB - 1, &class_number));
    must(!sy_class_near(placed + 16 * GIB, &class_number));
    must(sy_map_cover(placed - 48 * GIB, LEAF) == 0 && sy_fake_reserved() == 0);
    sy_map_set_class(placed, 1, 9);
    must(sy_class_near(placed, &class_number) && class_number == 9);
    must(sy_map_cover(placed - 48 * GIB - 1, 2) == 0 && sy_fake_reserved() != 0);
}

static void near_the_first_memory_there_are_no_leaves(void **state) {
    (void)state;
    assert_int_equal(in_child(look_near, NULL), 0);
}

/* If a program's own memory comes first, the window is where the system puts memory. */
static void look_after_a_programs_own(void *arg) {
    unsigned class_number;
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)arg;
    must(sy_map_cover(3 * LEAF, SY_CHUNK_BYTES) == 0);
    sy_map_set_class(3 * LEAF, 1, 5);
    must(sy_class_at(3 * LEAF) == 5 && !sy_class_near(3 * LEAF, &class_number));
    must(sy_class_near((uintptr_t)page, &class_number));
}

static void a_programs_own_memory_does_not_place_the_window(void **state) {
    (void)state;
    assert_int_equal(in_child(look_after_a_programs_own, NULL), 0);
}

static void look_outside(void *arg) {
    (void)arg;
    static int owner;
    must(sy_map_cover(0, SY_CHUNK_BYTES) == 0);
    sy_map_set_owner(0, SY_CHUNK_BYTES, &owner);
    sy_map_set_class(0, 1, 7);
    must(sy_class_at(0) == 7);
    must(sy_owner_at(TOP) == NULL);
    must(sy_owner_at(TOP - 1) == NULL);
    for (unsigned bit = SY_ADDRESS_BITS; bit < 64; bit++) {
        must(sy_owner_at((uintptr_t)1 << bit) == NULL);
        must(sy_class_at((uintptr_t)1 << bit) == 0);
    }
    must(sy_owner_at(UINTPTR_MAX) == NULL);
}

static void addresses_outside_the_space_have_no_owner_and_no_class(void **state) {
    (void)state;
    assert_int_equal(in_child(look_outside, NULL), 0);
}

#else

/* Where addresses have 32 bits, the window covers all of them, wherever the first memory is. */
static void look_at_all(void *near) {
    static int owner;
    const uintptr_t chunk = SY_CHUNK_BYTES, starts[] = {0, chunk, UINT32_C(1) << 31, 0 - 3 * chunk};
    unsigned class_number;
    sy_map_place((uintptr_t)near);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        uintptr_t start = starts[i], end = start + 2 * chunk;
        must(sy_map_cover(start, 2 * chunk) == 0);
        must(sy_class_near(start, &class_number) && class_number == 0);
        sy_map_set_owner(start, 2 * chunk, &owner);
        must(sy_owner_at(start) == &owner && sy_owner_at(end - 1) == &owner);
        must(sy_owner_at(end) == NULL && sy_owner_at(start - 1) == NULL);
        sy_map_set_owner(start, 2 * chunk, NULL);
        must(sy_owner_at(start) == NULL && sy_owner_at(end - 1) == NULL);
        sy_map_set_class(start + chunk - SY_UNIT_BYTES, 2, 255);
        must(sy_class_at(start + chunk - 1) == 255 && sy_class_at(start + chunk) == 255);
        must(sy_class_at(start + chunk - SY_UNIT_BYTES - 1) == 0);
        must(sy_class_at(start + chunk + SY_UNIT_BYTES) == 0);
        sy_map_set_class(start + chunk - SY_UNIT_BYTES, 2, 0);
    }
    must(sy_owner_at(UINTPTR_MAX) == NULL && sy_class_at(UINTPTR_MAX) == 0);
    must(sy_fake_reserved() == 0);
}

static void the_window_covers_all_addresses(void **state) {
    (void)state;
    const uintptr_t places[] = {0, SY_CHUNK_BYTES, UINT32_C(3) << 30};
    for (int i = 0; i < 3; i++) assert_int_equal(in_child(look_at_all, (void *)places[i]), 0);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#if UINTPTR_MAX == UINT32_MAX
        cmocka_unit_test(the_window_covers_all_addresses),
#else
        cmocka_unit_test(lookups_before_the_start_find_nothing),
        cmocka_unit_test(a_leaf_that_is_not_to_be_had_is_asked_for_again),
        cmocka_unit_test(of_two_that_make_a_leaf_one_stays),
        cmocka_unit_test(what_was_set_is_found_and_nothing_else),
        cmocka_unit_test(near_the_first_memory_there_are_no_leaves),
        cmocka_unit_test(a_programs_own_memory_does_not_place_the_window),
        cmocka_unit_test(addresses_outside_the_space_have_no_owner_and_no_class),
#endif
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
