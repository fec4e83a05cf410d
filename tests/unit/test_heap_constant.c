/*
 * test_heap_constant.c: sy_malloc and sy_free_sized with sizes that the compiler knows, which are
 * inlined, do the same as the exported functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "chunk/map.h"
#include "heap/classes.h"

/* Calls `each` with sizes around the ends of classes. */
#define AROUND(each, size) each((size)-1) each(size) each((size) + 1)
#define SIZES(each)                                                                              \
    each(0) each(1) AROUND(each, 8) AROUND(each, 16) AROUND(each, 32) AROUND(each, 48)           \
        AROUND(each, 64) AROUND(each, 112) AROUND(each, 128) AROUND(each, 144) AROUND(each, 160) \
            AROUND(each, 240) AROUND(each, 256) AROUND(each, 288) AROUND(each, 512)              \
                AROUND(each, 1000) AROUND(each, 1024) AROUND(each, 1152) AROUND(each, 4096)      \
                    AROUND(each, 5000) AROUND(each, 65536) AROUND(each, 114688)                  \
                        AROUND(each, 131072) AROUND(each, 1 << 20)

enum { WAITS_MOST = 16 << 10 }; /* larger objects wait in no magazine while slabs are few */

static void check_object(void *object, size_t size) {
    assert_non_null(object);
    assert_int_equal((uintptr_t)object % (size > 8 ? 16 : 8), 0);
    assert_int_equal(sy_usable_size(object), sy_good_size(size));
    memset(object, 7, size);
}

static void objects_are_those_of_the_exported_functions(void **state) {
    (void)state;
#define EACH(size)                                                   \
    {                                                                \
        void *inlined = sy_malloc(size);                             \
        check_object(inlined, size);                                 \
        sy_free_sized(inlined, size);                                \
        void *called = (sy_malloc)(size);                            \
        check_object(called, size);                                  \
        if ((size) <= WAITS_MOST) assert_ptr_equal(called, inlined); \
        (sy_free_sized)(called, size);                               \
        void *again = sy_malloc(size);                               \
        if ((size) <= WAITS_MOST) assert_ptr_equal(again, called);   \
        sy_free(again);                                              \
    }
    SIZES(EACH)
#undef EACH
    sy_free_sized(NULL, 64);
}

static void classes_at_compile_time_are_those_of_the_table(void **state) {
    (void)state;
    for (size_t size = 0; size <= SY_CLASS_TABLE_MAX; size++)
        assert_int_equal(sy_class_of(size), sy_class_table[(size + 7) / 8]);
    for (size_t size = 0; size <= SY_WIDE_TABLE_MAX; size++)
        assert_int_equal(sy_class_for(size > 8 ? size : 9), sy_wide_class_table[(size + 15) / 16]);
    for (unsigned number = 1; number < SY_CLASS_PAGES; number++) {
        size_t size = sy_class_size(number);
        assert_int_equal(sy_class_of(size), number);
        if (size < SY_CLASS_SIZE_MAX) assert_int_equal(sy_class_of(size + 1), number + 1);
    }
}

static void the_class_of_any_address_can_be_asked(void **state) {
    (void)state;
    void *object = sy_malloc(100);
    unsigned near, expected = sy_class_near((uintptr_t)object, &near) ? sy_class_of(100) : 0;
    assert_int_equal(sy_class_at_object(object), expected);
    assert_int_equal(sy_class_at_object((char *)object + 50), expected);
    assert_int_equal(sy_class_at_object(NULL), 0);
    assert_int_equal(sy_class_at_object(&object), 0);
    assert_int_equal(sy_class_at_object((void *)0x123456789000), 0);
    assert_int_equal(sy_class_at_object((void *)UINTPTR_MAX), 0);
    void *span = sy_malloc(1 << 20);
    assert_int_equal(sy_class_at_object(span), 0);
    sy_free(span);
    sy_free(object);
}

static unsigned faults;
static sy_fault last_fault;
static void note(const sy_fault *fault) {
    faults++;
    last_fault = *fault;
}

static void mistakes_are_reported_at_once(void **state) {
    (void)state;
    sy_set_fault_handler(note);
    void *object = sy_malloc(100);
    faults = 0;
    sy_free_sized(object, 200);
    assert_int_equal(faults, 1);
    assert_int_equal(last_fault.kind, SY_FAULT_WRONG_SIZE);
    sy_free_sized(object, 100);
    assert_int_equal(faults, 1);
    sy_free_sized(object, 100);
    assert_int_equal(faults, 2);
    assert_int_equal(last_fault.kind, SY_FAULT_DOUBLE_FREE);
    sy_free_sized(&object, 100);
    assert_int_equal(faults, 3);
    sy_set_fault_handler(NULL);
}

static void the_functions_have_addresses(void **state) {
    (void)state;
    void *(*volatile allocate)(size_t) = sy_malloc;
    void (*volatile release)(void *, size_t) = sy_free_sized;
    void *object = allocate(64);
    check_object(object, 64);
    release(object, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_those_of_the_exported_functions),
        cmocka_unit_test(classes_at_compile_time_are_those_of_the_table),
        cmocka_unit_test(the_class_of_any_address_can_be_asked),
        cmocka_unit_test(mistakes_are_reported_at_once),
        cmocka_unit_test(the_functions_have_addresses),
    };
    return cmocka_run_group_tests_name("heap_constant", tests, NULL, NULL);
}
