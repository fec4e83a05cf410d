/*
 * test_fail_calls.c: each function of caches and heaps asks once whether its allocation is made
 * to fail. If so, it fails as if there were no memory.
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
#include "os/fake.h"
#include "support/child.h"

typedef void test_body(void *arg);

/* In a child, because the size classes of the heap are opened once in a process. Reports of
 * failures are caught. */
static void run_caught(void *body) { must(!sy_fake_catch(*(test_body **)body, NULL)); }

static void run(test_body *body) { assert_int_equal(in_child(run_caught, &body), 0); }

static void set(const char *specification) { must(sy_set_failures(specification) == 0); }

static sy_cache *make(const char *name, unsigned flags) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = name, .size = 64, .flags = flags});
    must(cache);
    return cache;
}

/* The allocation failed as if the system had refused memory. */
static bool refused(const void *object) {
    bool so = !object && errno == ENOMEM && sy_last_refusal() == SY_REFUSAL_SYSTEM;
    errno = 0;
    return so;
}

static void end(sy_cache *cache) {
    must(sy_cache_verify(cache) == 0);
    must(sy_cache_destroy(cache) == 0);
}

/* ---- caches ---- */

static void allocate_singly(void *arg) {
    (void)arg;
    set("order:2+order:4");
    sy_cache *cache = make("order", 0);
    void *first = sy_cache_alloc(cache);
    must(first && refused(sy_cache_alloc(cache)));
    must(sy_cache_in_use(cache) == 1);
    void *third = sy_cache_zalloc(cache);
    must(third && refused(sy_cache_zalloc(cache)));
    must(sy_failures() == 2);
    sy_cache_free(cache, first);
    sy_cache_free(cache, third);
    end(cache);
}

static void each_object_of_a_cache_is_an_allocation(void **state) {
    (void)state;
    run(allocate_singly);
}

static void allocate_in_batches(void *arg) {
    (void)arg;
    set("order:7");
    sy_cache *cache = make("order", 0);
    void *objects[10];
    must(sy_cache_alloc_batch(cache, objects, 10) == 6 && errno == ENOMEM);
    must(sy_last_refusal() == SY_REFUSAL_SYSTEM);
    sy_cache_free_batch(cache, objects, 6);
    must(sy_cache_alloc_batch(cache, objects, 10) == 10);
    sy_cache_free_batch(cache, objects, 10);
    end(cache);
}

static void each_object_of_a_batch_is_an_allocation(void **state) {
    (void)state;
    run(allocate_in_batches);
}

static void allocate_by_handle(void *arg) {
    (void)arg;
    set("order:every:2");
    sy_cache *cache = make("order", SY_HANDLES);
    sy_handle handle = 0;
    must(sy_handle_alloc(cache, &handle) && handle != 0);
    must(sy_handle_free(cache, handle));
    must(refused(sy_handle_alloc(cache, &handle)));
    void *object = sy_cache_alloc(cache);
    must(object && refused(sy_cache_alloc(cache)));
    sy_cache_free(cache, object);
    end(cache);
}

static void objects_with_handles_are_counted(void **state) {
    (void)state;
    run(allocate_by_handle);
}

static void allocate_in_epoch(void *arg) {
    (void)arg;
    set("order:every:2");
    sy_cache *cache = make("order", SY_EPOCHS);
    sy_epoch *epoch = sy_epoch_create("phase");
    must(epoch && sy_epoch_begin(epoch) == 0);
    void *object = sy_cache_alloc(cache);
    must(object && refused(sy_cache_alloc(cache)));
    sy_cache_free(cache, object);
    sy_epoch_end(epoch);
    sy_epoch_close(epoch);
    sy_thread_flush();
    end(cache);
}

static void objects_in_epochs_are_counted(void **state) {
    (void)state;
    run(allocate_in_epoch);
}

static void allocate_reserved(void *arg) {
    (void)arg;
    set("order:3");
    sy_cache *cache = make("order", 0);
    void *objects[4];
    must(sy_cache_reserve(cache, 100) == 0);
    for (int i = 0; i < 4; i++) objects[i] = sy_cache_alloc(cache);
    must(objects[0] && objects[1] && !objects[2] && objects[3]);
    objects[2] = objects[3];
    sy_cache_free_batch(cache, objects, 3);
    end(cache);
}

static void what_is_reserved_fails_all_the_same(void **state) {
    (void)state;
    run(allocate_reserved);
}

static int constructions;

static int construct(void *object, void *arg) {
    (void)object;
    (void)arg;
    constructions++;
    return 0;
}

static void allocate_constructed(void *arg) {
    (void)arg;
    set("order:every:1");
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = 64, .construct = construct});
    must(refused(sy_cache_alloc(cache)) && constructions == 0);
    must(sy_cache_in_use(cache) == 0);
    end(cache);
}

static void nothing_is_constructed_for_what_fails(void **state) {
    (void)state;
    run(allocate_constructed);
}

static void allocate_from_others(void *arg) {
    (void)arg;
    sy_cache *early = make("order", 0), *checked = make("order", SY_CHECKED);
    set("order:2");
    sy_cache *other = make("trade", 0);
    void *objects[3];
    must(!(other->flags & SY_CHECKED));
    for (int i = 0; i < 3; i++) must((objects[i] = sy_cache_alloc(early)) != NULL);
    sy_cache_free_batch(early, objects, 3);
    for (int i = 0; i < 3; i++) must((objects[i] = sy_cache_alloc(other)) != NULL);
    sy_cache_free_batch(other, objects, 3);
    objects[0] = sy_cache_alloc(checked);
    must(objects[0] && refused(sy_cache_alloc(checked)));
    sy_cache_free(checked, objects[0]);
    sy_thread_flush();
    end(early);
    end(checked);
    end(other);
}

/* Of the caches made before, rules apply only to those that never allocate inline. */
static void who_is_not_meant_keeps_the_fast_path(void **state) {
    (void)state;
    run(allocate_from_others);
}

/* ---- heaps ---- */

static void allocate_small(void *arg) {
    (void)arg;
    set("heap-64:every:2");
    char *object = sy_malloc(60);
    must(object && refused(sy_malloc(60)));
    void *zeroes = sy_calloc(8, 8);
    must(zeroes && refused(sy_calloc(8, 8)));
    void *aligned = sy_aligned_alloc(64, 64);
    must(aligned && refused(sy_aligned_alloc(64, 64)));
    void *other = sy_malloc(100);
    must(other);
    sy_free(object);
    sy_free(zeroes);
    sy_free(aligned);
    sy_free(other);
}

static void the_heaps_classes_are_caches(void **state) {
    (void)state;
    run(allocate_small);
}

static void reallocate(void *arg) {
    (void)arg;
    set("heap-64:1+heap-32:every:2");
    char *object = sy_malloc(32);
    memcpy(object, "thirty-two bytes that must stay", 32);
    must(refused(sy_realloc(object, 64)));
    must(memcmp(object, "thirty-two bytes that must stay", 32) == 0);
    object = sy_realloc(object, 64);
    must(object && memcmp(object, "thirty-two bytes that must stay", 32) == 0);
    sy_free(object);
}

static void a_realloc_that_fails_leaves_the_object(void **state) {
    (void)state;
    run(reallocate);
}

static void allocate_large(void *arg) {
    (void)arg;
    set("heap:every:2+heap:size>5000000");
    void *object = sy_malloc(200000), *other = sy_malloc(100);
    must(object && other);
    must(refused(sy_malloc(200000)));
    must(refused(sy_malloc(5000001)));
    must(refused(sy_aligned_alloc((size_t)1 << 20, 200000)));
    must(sy_failures() == 3);
    sy_free(object);
    sy_free(other);
}

static void what_is_larger_is_of_the_heap(void **state) {
    (void)state;
    run(allocate_large);
}

static void allocate_of_heap(void *arg) {
    (void)arg;
    set("tenant-64:2+tenant-1*:1");
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    void *object = sy_heap_alloc(heap, 60);
    must(object && refused(sy_heap_alloc(heap, 60)));
    must(refused(sy_heap_alloc(heap, 128)));
    void *third = sy_heap_calloc(heap, 1, 64);
    must(third);
    sy_heap_free(heap, object);
    sy_heap_free(heap, third);
    must(sy_heap_destroy(heap) == 0);
}

static void heaps_of_the_programs_own_have_names(void **state) {
    (void)state;
    run(allocate_of_heap);
}

/* Each allocation counts once, on each path. */
static void allocate_of_all(void *arg) {
    (void)arg;
    set("6");
    sy_cache *cache = make("order", 0), *named = make("trade", SY_HANDLES);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    sy_handle handle;
    must(sy_cache_alloc(cache));
    must(sy_handle_alloc(named, &handle));
    must(sy_malloc(100));
    must(sy_malloc(200000));
    must(sy_heap_alloc(heap, 200000));
    must(refused(sy_cache_alloc(cache)));
    must(sy_cache_alloc(cache));
}

static void all_are_counted_together(void **state) {
    (void)state;
    run(allocate_of_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_object_of_a_cache_is_an_allocation),
        cmocka_unit_test(each_object_of_a_batch_is_an_allocation),
        cmocka_unit_test(objects_with_handles_are_counted),
        cmocka_unit_test(objects_in_epochs_are_counted),
        cmocka_unit_test(what_is_reserved_fails_all_the_same),
        cmocka_unit_test(nothing_is_constructed_for_what_fails),
        cmocka_unit_test(who_is_not_meant_keeps_the_fast_path),
        cmocka_unit_test(the_heaps_classes_are_caches),
        cmocka_unit_test(a_realloc_that_fails_leaves_the_object),
        cmocka_unit_test(what_is_larger_is_of_the_heap),
        cmocka_unit_test(heaps_of_the_programs_own_have_names),
        cmocka_unit_test(all_are_counted_together),
    };
    return cmocka_run_group_tests_name("fail_calls", tests, NULL, NULL);
}
