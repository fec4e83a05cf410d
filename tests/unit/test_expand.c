/*
 * test_expand.c: sy_expand resizes an object where it is, or leaves it as it was; and the other
 * functions of heap.h that multiply, zero or align. The fake stands between the library and the
 * real system.
 */
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

#include "chunk/chunk.h"
#include "chunk/map.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

static const size_t KIB = 1 << 10, MIB = 1 << 20, UNIT = 64 << 10;

/* The faults of a test, and the kind of the last one. */
static sy_fault_kind last_fault;
static int faults;

static void note_fault(const sy_fault *fault) {
    last_fault = fault->kind;
    errno = EIO; /* as a function that fails in a handler */
    faults++;
}

static int set_up(void **state) {
    (void)state;
    faults = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    sy_fake_reset();
    sy_set_limit(NULL);
    sy_set_fault_handler(NULL);
    return sy_verify() == 0 ? 0 : -1;
}

static unsigned char *get(size_t size) {
    unsigned char *object = sy_malloc(size);
    must(object != NULL);
    memset(object, 0x5a, size);
    return object;
}

static void is_filled(const unsigned char *object, size_t size) {
    for (size_t at = 0; at < size; at++) must(object[at] == 0x5a);
}

/* sy_expand, which keeps errno. */
static bool expands(void *object, size_t size) {
    errno = 77;
    bool done = sy_expand(object, size);
    assert_int_equal(errno, 77);
    return done;
}

/* ---- small objects ---- */

static void an_object_stays_in_its_class(void **state) {
    (void)state;
    for (size_t size = 0; size <= 2 * KIB; size++) {
        unsigned char *object = get(size);
        size_t most = sy_good_size(size), least = most;
        while (least > 0 && sy_good_size(least - 1) == most) least--;
        assert_true(expands(object, size));
        assert_true(expands(object, most));
        assert_int_equal(sy_usable_size(object), most);
        assert_false(expands(object, most + 1));
        assert_true(expands(object, least));
        if (least > 0) assert_false(expands(object, least - 1));
        is_filled(object, size);
        sy_free_sized(object, least);
    }
    assert_int_equal(faults, 0);
}

static void no_small_object_takes_a_size_beyond_all_classes(void **state) {
    (void)state;
    const size_t lower_half = SIZE_MAX >> 4 * sizeof(size_t); /* the class is compared by these */
    const size_t sizes[] = {131073, SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, lower_half + 101};
    unsigned char *object = get(100);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_false(expands(object, sizes[i]));
    is_filled(object, 100);
    sy_free_sized(object, 100);
    assert_int_equal(faults, 0);
}

/* An aligned object can be in the class of larger ones. */
static void what_a_sized_free_would_refuse_is_refused(void **state) {
    (void)state;
    unsigned char *object = sy_aligned_alloc(64, 100);
    assert_int_equal(sy_usable_size(object), 128);
    assert_false(expands(object, 100));
    assert_true(expands(object, 128));
    sy_free_sized(object, 128);
    assert_int_equal(faults, 0);
}

static void null_has_no_size(void **state) {
    (void)state;
    assert_false(expands(NULL, 0));
    assert_false(expands(NULL, 100));
    assert_int_equal(faults, 0);
}

/* ---- spans ---- */

static void a_span_shrinks_and_grows_back(void **state) {
    (void)state;
    static const size_t sizes[] = {1 << 20, 3 << 20, 20 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i], less = size - 5 * UNIT;
        unsigned char *span = get(size);
        assert_true(expands(span, less));
        assert_true(sy_usable_size(span) >= less);
        assert_true(expands(span, size)); /* into the memory that it gave up */
        assert_true(sy_usable_size(span) >= size);
        is_filled(span, less);
        memset(span, 0x5a, size);
        assert_false(expands(span, 128 * KIB)); /* an object of a class */
        assert_false(expands(span, 0));
        is_filled(span, size);
        sy_free_sized(span, size);
    }
    assert_int_equal(sy_chunk_verify(&sy_memory_main), 0);
    assert_int_equal(faults, 0);
}

/* A neighbour is in the way. realloc would move the span. */
static void a_span_does_not_grow_over_another(void **state) {
    (void)state;
    enum { COUNT = 20 };
    unsigned char *spans[COUNT];
    for (int i = 0; i < COUNT; i++) spans[i] = get(4 * UNIT);
    int refused = 0;
    for (int i = 0; i < COUNT; i++) {
        bool done = expands(spans[i], 5 * UNIT);
        refused += !done;
        assert_int_equal(sy_usable_size(spans[i]), (done ? 5 : 4) * UNIT);
    }
    assert_true(refused >= COUNT / 2);
    for (int i = 0; i < COUNT; i++) {
        is_filled(spans[i], 4 * UNIT);
        sy_free_sized(spans[i], sy_usable_size(spans[i]));
    }
    assert_int_equal(faults, 0);
}

static void a_span_takes_no_size_that_nothing_can_hold(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 65535, SIZE_MAX / 2, SIZE_MAX / 2 + 1};
    for (size_t size = 200 * KIB; size < 20 * MIB; size *= 5) {
        unsigned char *span = get(size);
        size_t usable = sy_usable_size(span);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            assert_false(expands(span, sizes[i]));
        assert_int_equal(sy_usable_size(span), usable);
        is_filled(span, size);
        sy_free(span);
    }
}

static void alignment_stays(void **state) {
    (void)state;
    unsigned char *span = sy_aligned_alloc(MIB, 3 * MIB);
    assert_non_null(span);
    assert_true(expands(span, 2 * MIB));
    assert_true(expands(span, 3 * MIB));
    assert_int_equal((uintptr_t)span % MIB, 0);
    sy_free_aligned_sized(span, MIB, 3 * MIB);
    assert_int_equal(faults, 0);
}

static void a_limit_is_kept(void **state) {
    (void)state;
    unsigned char *span = get(8 * UNIT);
    assert_true(expands(span, 4 * UNIT));
    sy_thread_flush();
    sy_trim(); /* there is no room to make */
    size_t used = sy_limit_used();
    assert_int_equal(sy_set_limit(&(sy_limit){.hard = used + UNIT}), 0);
    assert_false(expands(span, 6 * UNIT));
    assert_int_equal(sy_limit_used(), used);
    assert_int_equal(sy_usable_size(span), 4 * UNIT);
    assert_true(expands(span, 5 * UNIT));
    assert_int_equal(sy_limit_used(), used + UNIT);
    is_filled(span, 4 * UNIT);
    sy_free(span);
}

static void a_system_that_refuses_leaves_the_object(void **state) {
    (void)state;
    static const size_t sizes[] = {100, 131072, 200000, 5 << 20, 9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *object = get(sizes[i]);
        size_t usable = sy_usable_size(object);
        sy_fake_fail_from(SY_FAKE_ANY, 1);
        assert_false(expands(object, 300 * MIB));
        sy_fake_reset();
        assert_int_equal(sy_usable_size(object), usable);
        is_filled(object, sizes[i]);
        sy_free(object);
    }
    assert_int_equal(sy_chunk_verify(&sy_memory_main), 0);
}

/* ---- what is no plain object ---- */

static void what_is_no_object_is_reported(void **state) {
    (void)state;
    char local;
    unsigned char *span = get(5 * UNIT);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 48});
    void *object = sy_cache_alloc(cache);
    const struct {
        void *pointer;
        sy_fault_kind kind;
    } wrong[] = {{&local, SY_FAULT_FOREIGN_POINTER},
                 {(void *)1, SY_FAULT_FOREIGN_POINTER},
                 {object, SY_FAULT_WRONG_CACHE},
                 {span + UNIT, SY_FAULT_MISALIGNED_POINTER}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        faults = 0;
        assert_false(expands(wrong[i].pointer, 100));
        assert_int_equal(faults, 1);
        assert_int_equal(last_fault, wrong[i].kind);
    }
    sy_free(span);
    faults = 0;
    assert_false(expands(span, 5 * UNIT));
    assert_int_equal(faults, 1);
    assert_true(last_fault == SY_FAULT_DOUBLE_FREE || last_fault == SY_FAULT_FOREIGN_POINTER);
    sy_cache_free(cache, object);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* With checks, patterns begin where the object ends. */
static void checked_objects_keep_their_size_here(void *options) {
    must(sy_set_options(options) == 0);
    sy_set_fault_handler(note_fault);
    static const size_t sizes[] = {1, 100, 5000, 200000, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *object = get(sizes[i]);
        must(sy_expand(object, sizes[i]));
        must(!sy_expand(object, sizes[i] + 1) && !sy_expand(object, sizes[i] - 1));
        must(!sy_expand(object, sizes[i] * 2));
        is_filled(object, sizes[i]);
        must(sy_usable_size(object) == sizes[i]);
        sy_free_sized(object, sizes[i]);
        must(faults == 0);
        must(!sy_expand(object, sizes[i]) && faults == 1 && last_fault == SY_FAULT_DOUBLE_FREE);
        faults = 0;
    }
    unsigned char *aligned = sy_aligned_alloc(64, 100); /* from the class of 128 bytes */
    must(aligned && (!sy_expand(aligned, 100) || sy_class_at((uintptr_t)aligned) == 0));
    sy_free_aligned_sized(aligned, 64, 100);
    must(faults == 0 && sy_verify() == 0);
}

static void checked_objects_keep_their_size(void **state) {
    (void)state;
    assert_int_equal(in_child(checked_objects_keep_their_size_here, "check"), 0);
    assert_int_equal(in_child(checked_objects_keep_their_size_here, "redzone,poison,quarantine"),
                     0);
}

static void guarded_objects_keep_their_size(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    assert_int_equal(in_child(checked_objects_keep_their_size_here, "check,guard=all"), 0);
}

/* ---- products ---- */

enum { PAIRS = 6 };

/* Fills in pairs whose product overflows. */
static void overflowing(size_t pairs[PAIRS][2]) {
    const size_t root = (size_t)1 << 4 * sizeof(size_t);
    const size_t found[PAIRS][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX},        {SIZE_MAX / 2 + 1, 2},
                                    {root, root},  {SIZE_MAX, SIZE_MAX}, {SIZE_MAX / 16 + 2, 16}};
    memcpy(pairs, found, sizeof found);
}

static void products_that_overflow_are_refused(void **state) {
    (void)state;
    size_t pairs[PAIRS][2];
    overflowing(pairs);
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "products"});
    unsigned char *object = get(100);
    for (size_t i = 0; i < PAIRS; i++) {
        size_t count = pairs[i][0], size = pairs[i][1];
        errno = 0;
        assert_null(sy_reallocarray(object, count, size));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_reallocarray(NULL, count, size));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(sy_aligned_calloc(64, count, size));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(sy_last_refusal(), SY_REFUSAL_SYSTEM);
        errno = 0;
        assert_null(sy_heap_aligned_calloc(heap, 64, count, size));
        assert_int_equal(errno, ENOMEM);
    }
    errno = 0;
    assert_null(sy_zalloc(SIZE_MAX));
    assert_int_equal(errno, ENOMEM);
    is_filled(object, 100);
    sy_free(object);
    assert_int_equal(sy_heap_destroy(heap), 0);
}

static void an_array_is_resized(void **state) {
    (void)state;
    unsigned char *array = sy_reallocarray(NULL, 10, 10);
    assert_non_null(array);
    memset(array, 0x5a, 100);
    array = sy_reallocarray(array, 3000, 100);
    assert_true(sy_usable_size(array) >= 300000);
    is_filled(array, 100);
    array = sy_reallocarray(array, 5, 4);
    is_filled(array, 20);
    sy_free_sized(array, 20);
    array = sy_reallocarray(NULL, 0, 8);
    assert_non_null(array);
    sy_free(array);
    assert_int_equal(faults, 0);
    char local;
    errno = 0;
    assert_null(sy_reallocarray(&local, 2, 2));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(faults, 1);
}

/* ---- zeros ---- */

/* Frees memory that is not zero, so that the next object may get it. */
static void leave_traces(size_t size, size_t align) {
    for (int i = 0; i < 3; i++) {
        unsigned char *object = sy_aligned_alloc(align, size);
        must(object != NULL);
        memset(object, 0xff, sy_usable_size(object));
        sy_free(object);
    }
}

static void is_zero(const unsigned char *object, size_t size) {
    must(object != NULL);
    for (size_t at = 0; at < size; at++) must(object[at] == 0);
}

static void zeroed_objects_are_zero_and_aligned(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 8, 9, 100, 4096, 65536, 131072, 131073, 300000, 5 << 20};
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "zero"});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        leave_traces(size, 1);
        unsigned char *object = sy_zalloc(size);
        is_zero(object, size);
        sy_free_sized(object, size);
        for (size_t align = 1; align <= 4 * MIB; align *= 2) {
            leave_traces(size, align);
            object = sy_aligned_calloc(align, 1, size);
            is_zero(object, size);
            assert_int_equal((uintptr_t)object % align, 0);
            memset(object, 0xff, size);
            sy_free_aligned_sized(object, align, size);
            if (align > SY_CACHE_ALIGN_MAX) continue;
            for (int again = 0; again < 2; again++) {
                object = sy_heap_aligned_calloc(heap, align, size, 1);
                is_zero(object, size);
                assert_int_equal((uintptr_t)object % align, 0);
                memset(object, 0xff, size);
                sy_heap_free(heap, object);
            }
        }
    }
    assert_int_equal(faults, 0);
    assert_int_equal(sy_heap_destroy(heap), 0);
}

static void other_alignments_are_refused(void **state) {
    (void)state;
    static const size_t aligns[] = {0, 3, 24, 100, SIZE_MAX, SIZE_MAX / 2};
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "aligned"});
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        errno = 0;
        assert_null(sy_aligned_calloc(aligns[i], 2, 64));
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_null(sy_heap_aligned_calloc(heap, aligns[i], 2, 64));
        assert_int_equal(errno, EINVAL);
    }
    errno = 0;
    assert_null(sy_heap_aligned_calloc(heap, 2 * SY_CACHE_ALIGN_MAX, 2, 64));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(sy_aligned_calloc(SIZE_MAX / 2 + 1, 1, 64));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_heap_destroy(heap), 0);
}

static void memory_that_the_system_refuses_is_refused(void **state) {
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "poor"});
    sy_free(get(100));
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 0;
    assert_null(sy_zalloc(300 * MIB));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(sy_aligned_calloc(4096, 300, MIB));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(sy_heap_aligned_calloc(heap, 4096, 300, MIB));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(sy_reallocarray(NULL, 300, MIB));
    assert_int_equal(errno, ENOMEM);
    sy_fake_reset();
    assert_int_equal(sy_heap_destroy(heap), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(checked_objects_keep_their_size), /* first: no size class is open yet */
        TEST(guarded_objects_keep_their_size),
        TEST(an_object_stays_in_its_class),
        TEST(no_small_object_takes_a_size_beyond_all_classes),
        TEST(what_a_sized_free_would_refuse_is_refused),
        TEST(null_has_no_size),
        TEST(a_span_shrinks_and_grows_back),
        TEST(a_span_does_not_grow_over_another),
        TEST(a_span_takes_no_size_that_nothing_can_hold),
        TEST(alignment_stays),
        TEST(a_limit_is_kept),
        TEST(a_system_that_refuses_leaves_the_object),
        TEST(what_is_no_object_is_reported),
        TEST(products_that_overflow_are_refused),
        TEST(an_array_is_resized),
        TEST(zeroed_objects_are_zero_and_aligned),
        TEST(other_alignments_are_refused),
        TEST(memory_that_the_system_refuses_is_refused),
    };
    return cmocka_run_group_tests_name("expand", tests, NULL, NULL);
}
