/* test_hint.c: a program that moves the objects for which sy_should_move says so is dense in the
 * end, and is told to move little more than it must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "os/fake.h"

enum {
    SIZE = 112,
    COUNT = 40000,
    BATCH = 64, /* objects that are moved together */
    LARGE = 1 << 20,
};

static void *objects[COUNT];
static uint64_t numbers = 1;

static size_t below(size_t end) {
    numbers = numbers * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(numbers >> 33) % end;
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    sy_fake_set_cpu(0);
    return 0;
}

/* ---- objects of a cache and of a size class ---- */

typedef struct source {
    sy_cache *cache; /* NULL: sy_malloc */
} source;

static void *take(const source *from) {
    return from->cache ? sy_cache_alloc(from->cache) : sy_malloc(SIZE);
}

static void give(const source *from, void *object) {
    if (from->cache)
        sy_cache_free(from->cache, object);
    else
        sy_free(object);
}

static void fill(const source *from) {
    for (size_t i = 0; i < COUNT; i++) {
        assert_non_null(objects[i] = take(from));
        memset(objects[i], (int)i, SIZE);
    }
}

static void drop(const source *from, size_t i) {
    give(from, objects[i]);
    objects[i] = NULL;
}

static void drop_all(const source *from) {
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i]) drop(from, i);
    sy_thread_flush();
}

/* Moves what should be moved, a batch at a time; returns how many objects. */
static size_t walk(const source *from) {
    void *old[BATCH];
    size_t moves = 0, count = 0;
    for (size_t i = 0; i <= COUNT; i++) {
        if (count == BATCH || i == COUNT) {
            while (count) give(from, old[--count]);
            sy_thread_flush();
        }
        if (i == COUNT || !objects[i] || !sy_should_move(objects[i])) continue;
        void *moved = take(from);
        assert_non_null(moved);
        memcpy(moved, objects[i], SIZE);
        old[count++] = objects[i];
        objects[i] = moved;
        moves++;
    }
    return moves;
}

static size_t slabs_of(const source *from) {
    sy_cache_stats stats;
    sy_cache_get_stats(from->cache, &stats);
    return stats.slabs;
}

static size_t live(void) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++) count += objects[i] != NULL;
    return count;
}

static bool is_whole(size_t i) {
    const unsigned char *bytes = objects[i];
    for (size_t at = 0; at < SIZE; at++)
        if (bytes[at] != (unsigned char)i) return false;
    return true;
}

/* ---- tests ---- */

static void becomes_dense(unsigned kept_percent, bool regular) {
    source from = {sy_cache_create(&(sy_cache_config){.name = "hint", .size = SIZE})};
    fill(&from);
    size_t peak = slabs_of(&from);
    for (size_t i = 0; i < COUNT; i++)
        if ((regular ? i % 100 : below(100)) >= kept_percent) drop(&from, i);
    sy_thread_flush();
    assert_true(slabs_of(&from) > peak - peak / 20); /* each slab has a survivor */
    size_t slots = COUNT / (peak - 1), needed = (live() + slots - 1) / slots;
    size_t moves = walk(&from) + walk(&from);
    assert_in_range(slabs_of(&from), needed, needed + needed / 10 + 2);
    moves += walk(&from) + walk(&from);
    assert_in_range(slabs_of(&from), needed, needed + needed / 20 + 2);
    assert_in_range(moves, 1, (peak - needed) * slots);
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i]) assert_true(is_whole(i));
    drop_all(&from);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static void a_walk_makes_random_survivors_dense(void **state) {
    (void)state;
    becomes_dense(5, false);
    becomes_dense(30, false);
    becomes_dense(66, false);
    becomes_dense(90, false);
}

/* All slabs have the same number of free slots. */
static void a_walk_makes_equal_slabs_dense(void **state) {
    (void)state;
    becomes_dense(50, true);
    becomes_dense(75, true);
}

static void objects_of_dense_slabs_stay(void **state) {
    (void)state;
    source from = {sy_cache_create(&(sy_cache_config){.name = "dense", .size = SIZE})};
    fill(&from);
    for (size_t i = 0; i < COUNT; i++) assert_false(sy_should_move(objects[i]));
    for (size_t i = 0; i < 100; i++) drop(&from, below(COUNT / 200) + i * (COUNT / 200));
    sy_thread_flush();
    assert_int_equal(walk(&from), 0); /* less than a slab's worth is free */
    drop_all(&from);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static size_t class_slabs(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    return stats.slabs;
}

static void objects_of_size_classes_are_told_of_too(void **state) {
    (void)state;
    source from = {NULL};
    fill(&from);
    size_t peak = class_slabs();
    for (size_t i = 0; i < COUNT; i++)
        if (below(10) > 0) drop(&from, i);
    sy_thread_flush();
    assert_true(walk(&from) > 0);
    walk(&from);
    assert_true(class_slabs() < peak / 3);
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i]) assert_true(is_whole(i));
    drop_all(&from);
}

static void what_is_no_such_object_stays(void **state) {
    void *large = sy_malloc(LARGE);
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = SIZE});
    assert_false(sy_should_move(NULL));
    assert_false(sy_should_move(state));
    assert_false(sy_should_move(large));
    assert_false(sy_should_move(sy_pool_alloc(pool)));
    sy_free(large);
    sy_pool_destroy(pool);
}

/* Tools have other caches, whose freed objects wait before they are allocated again. */
int main(void) {
    setenv("SLABYARD", "tools=off", true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_walk_makes_random_survivors_dense, begin),
        cmocka_unit_test_setup(a_walk_makes_equal_slabs_dense, begin),
        cmocka_unit_test_setup(objects_of_dense_slabs_stay, begin),
        cmocka_unit_test_setup(objects_of_size_classes_are_told_of_too, begin),
        cmocka_unit_test_setup(what_is_no_such_object_stays, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
