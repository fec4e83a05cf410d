/* test_hint.c: a program that moves the objects for which sy_should_move says so, or lets
 * sy_try_move move them, is dense in the end, and moves little more than it must. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "os/fake.h"

enum {
    COUNT = 40000,
    SIZE = 112, /* of objects of size classes */
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
    size_t size, count;
} source;

static void *take(const source *from) {
    return from->cache ? sy_cache_alloc(from->cache) : sy_malloc(from->size);
}

static void give(const source *from, void *object) {
    if (from->cache)
        sy_cache_free(from->cache, object);
    else
        sy_free(object);
}

static void fill(const source *from) {
    for (size_t i = 0; i < from->count; i++) {
        assert_non_null(objects[i] = take(from));
        memset(objects[i], (int)i, from->size);
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

/* Lets the library move what should be moved; returns how many objects. It goes through the objects
 * in steps: 1, or a number that has no factor with `count`, for another order. */
static size_t walk_by_library(const source *from, size_t step) {
    size_t moves = 0;
    for (size_t n = 0, i = 0; n < from->count; n++, i = (i + step) % from->count) {
        bool should = objects[i] && sy_should_move(objects[i]);
        void *moved = objects[i] ? sy_try_move(objects[i]) : NULL;
        assert_int_equal(moved != NULL, should);
        if (moved) objects[i] = moved, moves++;
    }
    return moves;
}

/* The same without its help, a batch at a time. */
static size_t walk(const source *from, size_t step) {
    void *old[BATCH];
    size_t moves = 0, count = 0;
    for (size_t n = 0, i = 0; n < from->count; n++, i = (i + step) % from->count) {
        if (objects[i] && sy_should_move(objects[i])) {
            void *moved = take(from);
            assert_non_null(moved);
            memcpy(moved, objects[i], from->size);
            old[count++] = objects[i];
            objects[i] = moved;
            moves++;
        }
        if (count < BATCH && n + 1 < from->count) continue;
        while (count) give(from, old[--count]);
        sy_thread_flush();
    }
    return moves;
}

static size_t slabs_of(const source *from) {
    sy_cache_stats stats;
    sy_cache_get_stats(from->cache, &stats);
    return stats.slabs;
}

static size_t live(const source *from) {
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) count += objects[i] != NULL;
    return count;
}

static bool is_whole(const source *from, size_t i) {
    const unsigned char *bytes = objects[i];
    for (size_t at = 0; at < from->size; at++)
        if (bytes[at] != (unsigned char)i) return false;
    return true;
}

/* ---- tests ---- */

typedef struct shape {
    size_t size, count;
    unsigned kept_percent;
    bool regular;
    size_t step;
    unsigned flags;
    bool by_library; /* sy_try_move */
} shape;

static source make(const shape *of) {
    sy_cache_config config = {.name = "hint", .size = of->size, .flags = of->flags};
    source from = {sy_cache_create(&config), of->size, of->count};
    assert_non_null(from.cache);
    return from;
}

static void becomes_dense(shape of) {
    source from = make(&of);
    fill(&from);
    size_t peak = slabs_of(&from);
    for (size_t i = 0; i < of.count; i++)
        if ((of.regular ? i % 100 : below(100)) >= of.kept_percent) drop(&from, i);
    sy_cache_trim(from.cache);
    size_t slots = of.count / (peak - 1), needed = (live(&from) + slots - 1) / slots;
    size_t (*const go)(const source *, size_t) = of.by_library ? walk_by_library : walk;
    size_t moves = go(&from, of.step) + go(&from, of.step);
    assert_in_range(slabs_of(&from), needed, needed + (peak - needed) / 6 + 2);
    moves += go(&from, of.step) + go(&from, of.step);
    moves += go(&from, of.step) + go(&from, of.step);
    assert_in_range(slabs_of(&from), needed, needed + needed / 20 + 3);
    assert_in_range(moves, 1, (peak - needed) * slots * 2);
    for (size_t i = 0; i < of.count; i++)
        if (objects[i]) assert_true(is_whole(&from, i));
    drop_all(&from);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static const unsigned kept_percents[] = {5, 30, 66, 90};

static void becomes_dense_at_each(shape of) {
    for (size_t i = 0; i < sizeof kept_percents / sizeof *kept_percents; i++) {
        of.kept_percent = kept_percents[i];
        becomes_dense(of);
    }
}

static void a_walk_makes_random_survivors_dense(void **state) {
    (void)state;
    becomes_dense_at_each((shape){.size = 112, .count = COUNT, .step = 1});
    becomes_dense_at_each((shape){.size = 112, .count = COUNT, .step = 7919});
}

/* All slabs have the same number of free slots. */
static void a_walk_makes_equal_slabs_dense(void **state) {
    (void)state;
    becomes_dense_at_each((shape){.size = 112, .count = COUNT, .step = 1, .regular = true});
    becomes_dense_at_each((shape){.size = 112, .count = COUNT, .step = 7919, .regular = true});
}

static void slabs_of_few_slots_become_dense(void **state) {
    (void)state;
    becomes_dense_at_each((shape){.size = 2000, .count = COUNT / 4, .step = 1});
    becomes_dense_at_each((shape){.size = 2000, .count = COUNT / 4, .step = 7919});
    becomes_dense_at_each((shape){.size = 8000, .count = COUNT / 16, .step = 7919});
}

/* About ten slabs: a choice of some of them might find none. */
static void few_slabs_become_dense(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++)
        becomes_dense_at_each((shape){.size = 112, .count = COUNT / 7, .step = 1});
}

static void checked_objects_become_dense(void **state) {
    (void)state;
    becomes_dense((shape){
        .size = 112, .count = COUNT / 4, .kept_percent = 30, .step = 1, .flags = SY_CHECKED});
}

static void the_library_moves_what_should_move(void **state) {
    (void)state;
    becomes_dense_at_each((shape){.size = 112, .count = COUNT, .step = 1, .by_library = true});
    becomes_dense_at_each((shape){.size = 24, .count = COUNT, .step = 7919, .by_library = true});
    becomes_dense_at_each(
        (shape){.size = 8000, .count = COUNT / 16, .step = 1, .by_library = true});
}

/* Keeps each tenth object. */
static void drop_most(const source *from) {
    for (size_t i = 0; i < from->count; i++)
        if (i % 10) drop(from, i);
    sy_thread_flush();
    sy_trim();
}

/* The same with new objects; returns one that should move. */
static size_t leave_sparse(const source *from) {
    fill(from);
    drop_most(from);
    for (size_t i = 0; i < from->count; i += 10)
        if (sy_should_move(objects[i])) return i;
    fail_msg("nothing should move");
    return 0;
}

static int build(void *object, void *arg) {
    (void)object, (void)arg;
    return 0;
}

static void what_the_library_must_not_copy_stays(void **state) {
    (void)state;
    sy_cache_config configs[] = {{.name = "built", .size = SIZE, .construct = build},
                                 {.name = "checked", .size = SIZE, .flags = SY_CHECKED},
                                 {.name = "zeroed", .size = SIZE, .flags = SY_ZERO}};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        source from = {sy_cache_create(&configs[i]), SIZE, COUNT / 4};
        assert_null(sy_try_move(objects[leave_sparse(&from)]));
        drop_all(&from);
        assert_int_equal(sy_cache_destroy(from.cache), 0);
    }
}

static void nothing_moves(const source *from) {
    for (size_t i = 0; i < from->count; i++) assert_null(sy_try_move(objects[i]));
}

static void objects_of_an_epoch_stay(void **state) {
    (void)state;
    source from = make(&(shape){.size = SIZE, .count = COUNT / 4, .flags = SY_EPOCHS});
    sy_epoch *epoch = sy_epoch_create("hint");
    assert_int_equal(sy_epoch_begin(epoch), 0);
    fill(&from);
    assert_int_equal(sy_epoch_end(epoch), 0);
    drop_most(&from);
    nothing_moves(&from);
    drop_all(&from);
    sy_epoch_close(epoch);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static void objects_of_a_scope_stay(void **state) {
    (void)state;
    source from = {NULL, SIZE, COUNT / 4};
    sy_scope *scope = sy_scope_create("hint");
    assert_int_equal(sy_scope_enter(scope), 0);
    fill(&from);
    assert_int_equal(sy_scope_leave(scope), 0);
    drop_most(&from);
    nothing_moves(&from);
    drop_all(&from);
    assert_int_equal(sy_scope_destroy(scope), 0);
}

/* At its limit a cache has not one object more, not even for a moment. */
static void an_object_stays_if_no_slot_may_be_taken(void **state) {
    (void)state;
    sy_cache_config config = {
        .name = "full", .size = SIZE, .limit = COUNT / 4, .flags = SY_LIMIT_EXACT};
    source from = {sy_cache_create(&config), SIZE, COUNT / 4};
    fill(&from);
    errno = 0;
    for (size_t i = 0; i < from.count; i++) assert_null(sy_cache_move(from.cache, objects[i]));
    assert_int_equal(errno, 0);
    assert_int_equal(sy_cache_in_use(from.cache), from.count);
    for (size_t i = 0; i < from.count; i++) assert_true(is_whole(&from, i));
    drop_all(&from);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static sy_fault_kind fault;

static void note_fault(const sy_fault *seen) { fault = seen->kind; }

/* An address inside an object, and an object that was freed. */
static void a_move_of_what_is_no_live_object_is_a_fault(void **state) {
    (void)state;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    source from = make(&(shape){.size = SIZE, .count = COUNT / 4});
    size_t at = leave_sparse(&from);
    char *object = objects[at];
    assert_null(sy_try_move(object + 8));
    assert_int_equal(fault, SY_FAULT_MISALIGNED_POINTER);
    void *moved = sy_try_move(object);
    assert_non_null(moved);
    objects[at] = moved;
    assert_true(is_whole(&from, at));
    assert_null(sy_try_move(object)); /* its slab is not empty yet */
    assert_int_equal(fault, SY_FAULT_DOUBLE_FREE);
    drop_all(&from);
    sy_set_fault_handler(before);
    assert_int_equal(sy_cache_destroy(from.cache), 0);
}

static void objects_of_dense_slabs_stay(void **state) {
    (void)state;
    source from = make(&(shape){.size = SIZE, .count = COUNT});
    fill(&from);
    for (size_t i = 0; i < COUNT; i++) assert_false(sy_should_move(objects[i]));
    for (size_t i = 0; i < 100; i++) drop(&from, below(COUNT / 200) + i * (COUNT / 200));
    sy_thread_flush();
    assert_int_equal(walk(&from, 1), 0); /* less than a slab's worth is free */
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
    source from = {NULL, SIZE, COUNT};
    fill(&from);
    size_t peak = class_slabs();
    for (size_t i = 0; i < COUNT; i++)
        if (below(10) > 0) drop(&from, i);
    sy_thread_flush();
    assert_true(walk(&from, 1) > 0);
    walk(&from, 1);
    assert_true(class_slabs() < peak / 3);
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i]) assert_true(is_whole(&from, i));
    drop_all(&from);
}

static void what_is_no_such_object_stays(void **state) {
    void *large = sy_malloc(LARGE);
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = SIZE});
    assert_false(sy_should_move(NULL));
    assert_false(sy_should_move(state));
    assert_false(sy_should_move(large));
    assert_false(sy_should_move(sy_pool_alloc(pool)));
    assert_null(sy_try_move(NULL));
    assert_null(sy_try_move(state));
    assert_null(sy_try_move(large));
    sy_free(large);
    sy_pool_destroy(pool);
}

/* Tools have other caches, whose freed objects wait before they are allocated again. */
int main(void) {
    setenv("SLABYARD", "tools=off", true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_walk_makes_random_survivors_dense, begin),
        cmocka_unit_test_setup(a_walk_makes_equal_slabs_dense, begin),
        cmocka_unit_test_setup(slabs_of_few_slots_become_dense, begin),
        cmocka_unit_test_setup(few_slabs_become_dense, begin),
        cmocka_unit_test_setup(checked_objects_become_dense, begin),
        cmocka_unit_test_setup(the_library_moves_what_should_move, begin),
        cmocka_unit_test_setup(what_the_library_must_not_copy_stays, begin),
        cmocka_unit_test_setup(objects_of_an_epoch_stay, begin),
        cmocka_unit_test_setup(objects_of_a_scope_stay, begin),
        cmocka_unit_test_setup(an_object_stays_if_no_slot_may_be_taken, begin),
        cmocka_unit_test_setup(a_move_of_what_is_no_live_object_is_a_fault, begin),
        cmocka_unit_test_setup(objects_of_dense_slabs_stay, begin),
        cmocka_unit_test_setup(objects_of_size_classes_are_told_of_too, begin),
        cmocka_unit_test_setup(what_is_no_such_object_stays, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
