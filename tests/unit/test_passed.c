/*
 * test_passed.c: with tools=malloc objects are blocks of the C library's malloc. The functions keep
 * their other promises. tests/tools shows what tools report.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "cache/guarded.h"
#include "cache/passed.h"
#include "chunk/side.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

enum { THREADS = 4, OBJECTS = 200 };

static sy_fault faults[4];
static int fault_count;

static void note_fault(const sy_fault *fault) {
    if (fault_count < 4) faults[fault_count] = *fault;
    fault_count++;
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    assert_int_equal(sy_set_options("tools=malloc"), 0);
    fault_count = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

/* ---- counted constructors ---- */

static int constructed, destructed, refusals;

static int construct(void *object, void *arg) {
    (void)arg;
    if (refusals) {
        errno = EPERM;
        return -1;
    }
    constructed++;
    memset(object, 5, 48);
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)arg;
    assert_int_equal(*(char *)object, 5);
    destructed++;
}

static sy_cache *make(const char *name, sy_cache_config config) {
    config.name = name;
    config.size = 48;
    sy_cache *cache = sy_cache_create(&config);
    assert_non_null(cache);
    return cache;
}

static void expect_fault(sy_fault_kind kind, const void *address, const char *found) {
    assert_int_equal(fault_count, 1);
    assert_int_equal(faults[0].kind, kind);
    assert_ptr_equal(faults[0].address, address);
    if (found)
        assert_string_equal(faults[0].found_cache, found);
    else
        assert_null(faults[0].found_cache);
    fault_count = 0;
}

/* ---- caches ---- */

static void objects_are_in_no_slab(void **state) {
    (void)state;
    sy_cache *cache = make("plain", (sy_cache_config){0});
    void *objects[3];
    sy_cache_stats stats;
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 3), 3);
    for (int i = 0; i < 3; i++) assert_null(sy_slab_at((uintptr_t)objects[i]));
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_use, 3);
    assert_int_equal(stats.slabs, 0);
    assert_int_equal(stats.free, 0);
    assert_int_equal(sy_cache_verify(cache), 0);
    sy_cache_free_batch(cache, objects, 3);
    assert_int_equal(sy_cache_in_use(cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void objects_lie_at_their_alignment(void **state) {
    (void)state;
    for (size_t align = 8; align <= 65536; align *= 2) {
        sy_cache *cache = make("aligned", (sy_cache_config){.align = align});
        void *object = sy_cache_alloc(cache);
        assert_int_equal((uintptr_t)object % align, 0);
        sy_cache_free(cache, object);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static void the_limit_holds(void **state) {
    (void)state;
    sy_cache *cache = make("limited", (sy_cache_config){.limit = 2});
    void *first = sy_cache_alloc(cache);
    assert_non_null(sy_cache_alloc(cache));
    errno = 0;
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CACHE_LIMIT);
    assert_int_equal(sy_cache_reserve(cache, 1), -1);
    sy_cache_free(cache, first);
    assert_int_equal(sy_cache_reserve(cache, 1), 0);
    assert_int_equal(sy_cache_slab_bytes(cache), 0);
    assert_non_null(sy_cache_alloc(cache));
    sy_cache_destroy_all(cache);
}

static void each_allocation_constructs(void **state) {
    (void)state;
    constructed = destructed = 0;
    sy_cache *cache =
        make("built", (sy_cache_config){.construct = construct, .destruct = destruct});
    for (int i = 0; i < 5; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    assert_int_equal(constructed, 5);
    assert_int_equal(destructed, 5);
    assert_null(sy_cache_zalloc(cache));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void a_failing_constructor_leaves_nothing(void **state) {
    (void)state;
    sy_cache *cache = make("refused", (sy_cache_config){.construct = construct});
    refusals = 1;
    assert_null(sy_cache_alloc(cache));
    refusals = 0;
    assert_int_equal(errno, EPERM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CONSTRUCTOR);
    assert_int_equal(sy_cache_in_use(cache), 0);
    size_t blocks = sy_fake_blocks(), side = sy_side_bytes();
    refusals = 1;
    for (int i = 0; i < 10000; i++) assert_null(sy_cache_alloc(cache));
    refusals = 0;
    assert_int_equal(sy_fake_blocks(), blocks);
    assert_int_equal(sy_side_bytes(), side);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void what_is_live_goes_with_its_cache_alone(void **state) {
    (void)state;
    constructed = destructed = 0;
    sy_cache *other = make("other", (sy_cache_config){0});
    sy_cache *cache =
        make("built", (sy_cache_config){.construct = construct, .destruct = destruct});
    void *kept[OBJECTS], *object = NULL;
    size_t size;
    for (int i = 0; i < OBJECTS; i++) {
        kept[i] = sy_cache_alloc(other);
        object = sy_cache_alloc(cache);
    }
    assert_int_equal(sy_cache_destroy(cache), -1);
    assert_int_equal(errno, EBUSY);
    assert_ptr_equal(sy_passed_owner(object, &size), cache);
    sy_cache_destroy_all(cache);
    assert_int_equal(destructed, OBJECTS);
    assert_null(sy_passed_owner(object, &size));
    assert_int_equal(sy_cache_in_use(other), OBJECTS);
    sy_cache_free_batch(other, kept, OBJECTS);
    assert_int_equal(sy_cache_destroy(other), 0);
}

static void try_free_knows_what_is_live(void **state) {
    (void)state;
    sy_cache *cache = make("tried", (sy_cache_config){0}), *other = make("o", (sy_cache_config){0});
    void *object = sy_cache_alloc(cache);
    assert_false(sy_cache_try_free(other, object));
    assert_false(sy_cache_try_free(cache, (char *)object + 16));
    assert_true(sy_cache_try_free(cache, object));
    assert_false(sy_cache_try_free(cache, object));
    assert_int_equal(sy_cache_destroy(cache) + sy_cache_destroy(other), 0);
}

static void another_cache_is_a_fault(void **state) {
    (void)state;
    sy_cache *cache = make("one", (sy_cache_config){0}), *other = make("two", (sy_cache_config){0});
    void *object = sy_cache_alloc(cache);
    sy_cache_free(other, object);
    expect_fault(SY_FAULT_WRONG_CACHE, object, "one");
    sy_free(object);
    expect_fault(SY_FAULT_WRONG_CACHE, object, "one");
    assert_int_equal(sy_set_options("tools=off"), 0);
    sy_cache *slabs = make("slabs", (sy_cache_config){0});
    void *in_slab = sy_cache_alloc(slabs);
    sy_cache_free(cache, in_slab);
    expect_fault(SY_FAULT_WRONG_CACHE, in_slab, "slabs");
    sy_cache_destroy_all(slabs);
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache) + sy_cache_destroy(other), 0);
}

static void a_guarded_object_is_of_another_cache(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    assert_int_equal(sy_set_options("tools=off,guard=all"), 0);
    sy_cache *guarded = make("guarded", (sy_cache_config){0});
    void *object = sy_cache_alloc(guarded);
    assert_true(sy_guard_owns((uintptr_t)object));
    assert_int_equal(sy_set_options("tools=malloc,guard=off"), 0);
    sy_cache *cache = make("passed", (sy_cache_config){0});
    sy_cache_free(cache, object);
    expect_fault(SY_FAULT_WRONG_CACHE, object, "guarded");
    sy_cache_free(guarded, object);
    assert_int_equal(sy_cache_destroy(guarded) + sy_cache_destroy(cache), 0);
}

static void no_passed_object_is_guarded(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    assert_int_equal(sy_set_options("guard=all"), 0);
    sy_cache *cache = make("passed", (sy_cache_config){.flags = SY_GUARD});
    void *object = sy_cache_alloc(cache);
    assert_int_equal(sy_set_options("guard=off"), 0);
    assert_false(sy_guard_owns((uintptr_t)object));
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void what_has_to_lie_in_slabs_does(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    unsigned flags[] = {SY_HANDLES, SY_EPOCHS, SY_ZERO, SY_NO_DUMP, SY_LOCKED};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        sy_cache *cache = make("slabs", (sy_cache_config){.flags = flags[i]});
        void *object = sy_cache_alloc(cache);
        assert_non_null(sy_slab_at((uintptr_t)object));
        sy_cache_destroy_all(cache);
    }
}

/* ---- the heap ---- */

static void the_heap_passes_on_every_size(void **state) {
    (void)state;
    size_t blocks = sy_fake_blocks();
    for (size_t size = 0; size < 3 << 20; size = size * 3 + 1) {
        char *object = sy_malloc(size);
        assert_null(sy_slab_at((uintptr_t)object));
        assert_int_equal(sy_usable_size(object), size);
        memset(object, 3, size);
        object = sy_realloc(object, size + 7);
        assert_int_equal(sy_usable_size(object), size + 7);
        if (size) assert_int_equal(object[size - 1], 3);
        sy_free_sized(object, size + 7);
        char *zeroes = sy_calloc(size + 1, 1);
        assert_int_equal(zeroes[0] + zeroes[size], 0);
        sy_free(zeroes);
        char *aligned = sy_aligned_alloc(4096, size);
        assert_int_equal((uintptr_t)aligned % 4096, 0);
        sy_free(aligned);
        assert_int_equal(sy_fake_blocks(), blocks);
    }
    assert_int_equal(fault_count, 0);
}

/* The heap must not change a block that the program itself got from the C library. */
static void the_heap_does_not_grow_what_is_not_its_own(void **state) {
    (void)state;
    char *block = malloc(100);
    assert_null(sy_realloc(block, 200));
    expect_fault(SY_FAULT_FOREIGN_POINTER, block, NULL);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "mine"});
    assert_null(sy_heap_realloc(heap, block, 200));
    expect_fault(SY_FAULT_FOREIGN_POINTER, block, NULL);
    assert_int_equal(sy_heap_destroy(heap), 0);
    memset(block, 1, 100);
    free(block);
}

static void the_heap_sees_a_wrong_size(void **state) {
    (void)state;
    char *object = sy_malloc(100), *large = sy_malloc(200000);
    sy_free(sy_malloc(50));
    sy_free_sized(object, 50);
    expect_fault(SY_FAULT_WRONG_SIZE, object, NULL);
    sy_free_sized(object, 99);
    expect_fault(SY_FAULT_WRONG_SIZE, object, NULL);
    sy_free_sized(large, 199999);
    expect_fault(SY_FAULT_WRONG_SIZE, large, NULL);
    sy_free(object);
    sy_free(large);
    assert_int_equal(fault_count, 0);
}

static void heaps_pass_on_too(void **state) {
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "mine"});
    sy_heap *other = sy_heap_create(&(sy_heap_config){.name = "other"});
    char *object = sy_heap_alloc(heap, 100), *large = sy_heap_alloc(heap, 300000);
    assert_null(sy_slab_at((uintptr_t)object));
    assert_null(sy_slab_at((uintptr_t)large));
    object = sy_heap_realloc(heap, object, 90);
    assert_int_equal(sy_heap_usable_size(heap, object), 90);
    assert_false(sy_heap_try_free(other, object));
    sy_heap_free(other, object);
    expect_fault(SY_FAULT_WRONG_CACHE, object, "mine-96");
    assert_int_equal(sy_heap_destroy(heap), -1);
    sy_heap_free_sized(heap, object, 90);
    assert_true(sy_heap_try_free(heap, large));
    assert_int_equal(sy_heap_destroy(heap), 0);
    assert_non_null(sy_heap_alloc(other, 10));
    sy_heap_destroy_all(other);
    assert_int_equal(fault_count, 0);
}

/* ---- failures ---- */

static void expect_refused(sy_cache *cache, size_t live) {
    errno = 0;
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_SYSTEM);
    assert_int_equal(sy_cache_in_use(cache), live);
}

static void without_a_table(void *arg) {
    (void)arg;
    sy_cache *cache = make("failing", (sy_cache_config){0});
    sy_fake_fail_nth(SY_FAKE_RESERVE, 1);
    expect_refused(cache, 0);
    sy_fake_fail_nth(SY_FAKE_COMMIT, 1);
    expect_refused(cache, 0);
    assert_non_null(sy_cache_alloc(cache));
}

/* The first test, before any block is passed on. */
static void without_a_table_there_is_no_object(void **state) {
    (void)state;
    assert_int_equal(in_child(without_a_table, NULL), 0);
}

static void without_a_block_there_is_no_object(void **state) {
    (void)state;
    sy_cache *cache = make("failing", (sy_cache_config){0});
    void *object = sy_cache_alloc(cache);
    sy_fake_fail_nth(SY_FAKE_BLOCK, 1);
    expect_refused(cache, 1);
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void without_an_entry_there_is_no_object(void **state) {
    (void)state;
    sy_cache *cache = make("failing", (sy_cache_config){0});
    size_t live = 0;
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    while (sy_cache_alloc(cache)) live++;
    expect_refused(cache, live);
    sy_fake_reset();
    assert_non_null(sy_cache_alloc(cache));
    sy_cache_destroy_all(cache);
}

/* ---- threads and processes ---- */

static void *churn(void *arg) {
    sy_cache *cache = arg;
    void *objects[OBJECTS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < OBJECTS; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
        for (int i = 0; i < OBJECTS; i++) memset(objects[i], round, 48);
        sy_cache_free_batch(cache, objects, OBJECTS);
    }
    return NULL;
}

static void threads_share_the_table(void **state) {
    (void)state;
    sy_cache *cache = make("shared", (sy_cache_config){0});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) must(pthread_create(&threads[i], NULL, churn, cache) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(sy_cache_in_use(cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void use_in_child(void *arg) {
    sy_cache *cache = arg;
    churn(cache);
    sy_cache_destroy_all(cache);
}

static void a_child_has_the_table(void **state) {
    (void)state;
    sy_cache *cache = make("forked", (sy_cache_config){0});
    void *object = sy_cache_alloc(cache);
    assert_int_equal(in_child(use_in_child, cache), 0);
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(without_a_table_there_is_no_object),
        TEST(objects_are_in_no_slab),
        TEST(objects_lie_at_their_alignment),
        TEST(the_limit_holds),
        TEST(each_allocation_constructs),
        TEST(a_failing_constructor_leaves_nothing),
        TEST(what_is_live_goes_with_its_cache_alone),
        TEST(try_free_knows_what_is_live),
        TEST(another_cache_is_a_fault),
        TEST(a_guarded_object_is_of_another_cache),
        TEST(no_passed_object_is_guarded),
        TEST(what_has_to_lie_in_slabs_does),
        TEST(the_heap_passes_on_every_size),
        TEST(the_heap_does_not_grow_what_is_not_its_own),
        TEST(the_heap_sees_a_wrong_size),
        TEST(heaps_pass_on_too),
        TEST(without_a_block_there_is_no_object),
        TEST(without_an_entry_there_is_no_object),
        TEST(threads_share_the_table),
        TEST(a_child_has_the_table),
    };
    return cmocka_run_group_tests_name("passed", tests, NULL, NULL);
}
