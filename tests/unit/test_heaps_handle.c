/*
 * test_heaps_handle.c: what slabyard/heaps.h promises about objects of any size by handle. A heap
 * refuses every word that is not a handle of its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/heaps.h"

enum { COUNT = 2000 };

static sy_handle handles[COUNT];
static void *objects[COUNT];

static size_t size_of(size_t i) { return i % 40 ? i % 1500 : all_sizes[i / 40 % SIZES]; }

static void take_all(sy_heap *heap) {
    for (size_t i = 0; i < COUNT; i++) {
        objects[i] = sy_heap_alloc_handle(heap, size_of(i), &handles[i]);
        must(objects[i] != NULL && handles[i] != 0);
        fill_ends(objects[i], size_of(i), (unsigned)i);
    }
}

static void give_all(sy_heap *heap) {
    for (size_t i = 0; i < COUNT; i++) must(sy_heap_free_handle(heap, handles[i]));
}

/* No function of the heap accepts the handle. */
static void refused(sy_heap *heap, sy_handle handle) {
    errno = KEPT_ERRNO;
    must(!sy_heap_get(heap, handle));
    must(!sy_heap_free_handle(heap, handle));
    must(errno == KEPT_ERRNO);
    must(!sy_heap_pin(heap, handle));
    must(errno != EAGAIN);
}

static void objects_of_any_size_have_handles(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    take_all(heap);
    for (size_t i = 0; i < COUNT; i++) {
        must(sy_heap_get(heap, handles[i]) == objects[i]);
        must(sy_handle_of(objects[i]) == handles[i]);
        must(ends_filled(objects[i], size_of(i), (unsigned)i));
    }
    heap_is_sound(heap, COUNT);
    give_all(heap);
    for (size_t i = 0; i < COUNT; i++) refused(heap, handles[i]);
    end_heap(heap);
}

static void what_was_stale_stays_so(void **state) {
    (void)state;
    static sy_handle stale[COUNT];
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    for (int round = 0; round < 5; round++) {
        take_all(heap);
        for (size_t i = 0; round && i < COUNT; i++) refused(heap, stale[i]);
        give_all(heap);
        memcpy(stale, handles, sizeof stale);
        if (round % 2) sy_heap_trim(heap);
    }
    sy_heap_destroy_all(heap);
    heap = make_heap("next", SY_HANDLES);
    take_all(heap);
    for (size_t i = 0; i < COUNT; i++) refused(heap, stale[i]);
    give_all(heap);
    end_heap(heap);
}

static void a_heap_that_is_gone_leaves_stale_handles(void **state) {
    (void)state;
    static sy_handle stale[COUNT];
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    take_all(heap);
    memcpy(stale, handles, sizeof stale);
    assert_non_null(sy_heap_pin(heap, stale[7])); /* a pin does not keep the object */
    sy_heap_destroy_all(heap);
    heap = make_heap("next", SY_HANDLES);
    for (size_t i = 0; i < COUNT; i++) refused(heap, stale[i]);
    take_all(heap);
    for (size_t i = 0; i < COUNT; i++) refused(heap, stale[i]);
    give_all(heap);
    end_heap(heap);
}

static void handles_of_others_are_refused(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES), *other = make_heap("other", SY_HANDLES);
    sy_heap *plain = make_heap("plain", 0);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 48, .flags = SY_HANDLES});
    take_all(heap);
    sy_handle mine, theirs;
    void *object = sy_heap_alloc_handle(other, 48, &mine);
    void *order = sy_handle_alloc(cache, &theirs);
    for (size_t i = 0; i < COUNT; i++) refused(other, handles[i]), refused(plain, handles[i]);
    refused(heap, mine);
    refused(heap, theirs);
    refused(other, theirs);
    must(!sy_handle_get(cache, mine) && !sy_handle_free(cache, mine));
    must(sy_heap_get(other, mine) == object && sy_handle_get(cache, theirs) == order);
    give_all(heap);
    must(sy_heap_free_handle(other, mine) && sy_handle_free(cache, theirs));
    sy_cache_destroy(cache);
    end_heap(heap);
    end_heap(other);
    end_heap(plain);
}

static bool is_live(sy_handle handle) {
    for (size_t i = 0; i < COUNT; i++)
        if (handles[i] == handle) return true;
    return false;
}

/* Words that differ from a live handle in one bit, and random words. */
static void any_bits_may_be_tried(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES), *empty = make_heap("empty", SY_HANDLES);
    uint64_t random = 1;
    take_all(heap);
    for (size_t i = 0; i < COUNT; i += 37)
        for (unsigned bit = 0; bit < 64; bit++) {
            sy_handle forged = handles[i] ^ UINT64_C(1) << bit;
            if (!is_live(forged)) refused(heap, forged);
        }
    for (size_t i = 0; i < 100000; i++) {
        sy_handle forged = next_random(&random) >> next_random(&random) % 64;
        refused(empty, forged);
        if (i % 50 == 0 && !is_live(forged)) refused(heap, forged);
    }
    for (size_t i = 0; i < COUNT; i++) must(sy_heap_get(heap, handles[i]) == objects[i]);
    give_all(heap);
    end_heap(heap);
    end_heap(empty);
}

static void without_handles_there_are_none(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", 0);
    sy_handle handle = 4711;
    errno = 0;
    assert_null(sy_heap_alloc_handle(heap, 100, &handle));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(handle, 4711);
    errno = 0;
    assert_int_equal(sy_heap_each(heap, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    end_heap(heap);
    heap = sy_heap_create(&(sy_heap_config){.flags = SY_HANDLES, .limit = {.hard = UNIT}});
    errno = 0;
    refused_for(sy_heap_alloc_handle(heap, 1000000, &handle), SY_REFUSAL_HEAP_LIMIT);
    errno = 0;
    refused_for(sy_heap_alloc_handle(heap, SIZE_MAX, &handle), SY_REFUSAL_SYSTEM);
    assert_int_equal(handle, 4711);
    end_heap(heap);
}

static void objects_by_address_have_handles_too(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    for (unsigned i = 0; i < SIZES; i++) {
        void *object = sy_heap_alloc(heap, all_sizes[i]);
        sy_handle handle = sy_handle_of(object);
        must(sy_heap_get(heap, handle) == object);
        sy_heap_free(heap, object);
        refused(heap, handle);
        object = sy_heap_alloc_handle(heap, all_sizes[i], &handle);
        sy_heap_free(heap, object);
        refused(heap, handle);
        object = sy_heap_alloc_handle(heap, all_sizes[i], &handle);
        object = sy_heap_realloc(heap, object, all_sizes[i] * 2 + 100); /* the object moves */
        refused(heap, handle);
        must(sy_heap_free_handle(heap, sy_handle_of(object)));
    }
    end_heap(heap);
}

/* ---- pins ---- */

static void what_is_pinned_stays(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    for (unsigned i = 0; i < SIZES; i++) {
        sy_handle handle;
        void *object = sy_heap_alloc_handle(heap, all_sizes[i], &handle);
        fill_ends(object, all_sizes[i], i);
        must(sy_heap_pin(heap, handle) == object && sy_heap_pin(heap, handle) == object);
        must(sy_heap_free_handle(heap, handle));
        refused(heap, handle);
        sy_heap_unpin(heap, handle);
        heap_is_sound(heap, 1);
        must(ends_filled(object, all_sizes[i], i));
        must(sy_heap_destroy(heap) == -1 && errno == EBUSY);
        sy_heap_unpin(heap, handle);
        heap_is_sound(heap, 0);
    }
    end_heap(heap);
}

static void an_unpin_too_many_is_a_fault(void **state) {
    (void)state;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    sy_heap *heap = make_heap("tenant", SY_HANDLES), *plain = make_heap("plain", 0);
    sy_handle handle;
    void *object = sy_heap_alloc_handle(heap, 100, &handle);
    sy_heap_unpin(heap, handle);
    expect_fault(SY_FAULT_NOT_PINNED, "tenant-112", object, NULL);
    sy_heap_unpin(heap, 0);
    faults = 0; /* the ordinal may belong to an object or not */
    sy_heap_unpin(heap, UINT64_MAX);
    expect_fault(SY_FAULT_NOT_PINNED, "tenant", NULL, NULL);
    sy_heap_unpin(plain, handle);
    expect_fault(SY_FAULT_NOT_PINNED, "plain", NULL, NULL);
    must(sy_heap_free_handle(heap, handle));
    end_heap(heap);
    end_heap(plain);
    sy_set_fault_handler(before);
}

/* ---- iteration ---- */

struct walk {
    sy_heap *heap;
    size_t seen, stop_at;
    bool frees;
};

static int visit(void *arg, sy_handle handle, void *object) {
    struct walk *walk = arg;
    must(sy_heap_get(walk->heap, handle) == object);
    walk->seen++;
    if (walk->frees) must(sy_heap_free_handle(walk->heap, handle));
    return walk->seen == walk->stop_at ? 42 : 0;
}

static void each_live_object_is_visited(void **state) {
    (void)state;
    sy_heap *heap = make_heap("tenant", SY_HANDLES);
    struct walk walk = {.heap = heap};
    must(sy_heap_each(heap, visit, &walk) == 0 && walk.seen == 0);
    take_all(heap);
    must(sy_heap_each(heap, visit, &walk) == 0 && walk.seen == COUNT);
    walk = (struct walk){.heap = heap, .stop_at = COUNT / 2};
    must(sy_heap_each(heap, visit, &walk) == 42 && walk.seen == COUNT / 2);
    walk = (struct walk){.heap = heap, .frees = true};
    must(sy_heap_each(heap, visit, &walk) == 0 && walk.seen == COUNT);
    end_heap(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_any_size_have_handles),
        cmocka_unit_test(what_was_stale_stays_so),
        cmocka_unit_test(a_heap_that_is_gone_leaves_stale_handles),
        cmocka_unit_test(handles_of_others_are_refused),
        cmocka_unit_test(any_bits_may_be_tried),
        cmocka_unit_test(without_handles_there_are_none),
        cmocka_unit_test(objects_by_address_have_handles_too),
        cmocka_unit_test(what_is_pinned_stays),
        cmocka_unit_test(an_unpin_too_many_is_a_fault),
        cmocka_unit_test(each_live_object_is_visited),
    };
    return cmocka_run_group_tests_name("heaps_handle", tests, NULL, NULL);
}
