/*
 * test_fault.c: misuse is noticed and passed to the fault handler with the cache's name, and
 * changes nothing. tests/misuse has the reports that end a program.
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
#include "support/child.h"

enum { FAULTS_KEPT = 8 };
static sy_fault faults[FAULTS_KEPT];
static int fault_count;

static void note_fault(const sy_fault *fault) {
    if (fault_count < FAULTS_KEPT) faults[fault_count] = *fault;
    fault_count++;
}

/* There was exactly one fault, of this kind and at this address. */
static void expect(sy_fault_kind kind, const void *address, const char *cache, size_t size,
                   const char *found) {
    assert_int_equal(fault_count, 1);
    assert_int_equal(faults[0].kind, kind);
    assert_ptr_equal(faults[0].address, address);
    assert_string_equal(faults[0].cache, cache);
    assert_int_equal(faults[0].object_size, size);
    if (found)
        assert_string_equal(faults[0].found_cache, found);
    else
        assert_null(faults[0].found_cache);
    fault_count = 0;
}

static sy_cache *make(const char *name, unsigned flags) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = name, .size = 48, .flags = flags});
    must(cache != NULL);
    return cache;
}

static void free_now(sy_cache *cache, void *object) {
    sy_cache_free(cache, object);
    sy_thread_flush();
}

static void end(sy_cache *cache, size_t live) {
    assert_int_equal(sy_cache_in_use(cache), live);
    assert_int_equal(sy_cache_verify(cache), 0);
    sy_cache_destroy_all(cache);
    assert_int_equal(fault_count, 0);
}

static void each_kind_is_told_from_the_others(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        unsigned flags = (unsigned[]){0, SY_CHECKED, SY_COLOUR}[kind];
        sy_cache *cache = make("order", flags), *other = make("trade", 0);
        char *object = sy_cache_alloc(cache), *others = sy_cache_alloc(other);
        char *small = sy_malloc(100), *span = sy_malloc(1 << 20), local;
        sy_thread_flush();
        free_now(cache, &local);
        expect(SY_FAULT_FOREIGN_POINTER, &local, "order", 48, NULL);
        free_now(cache, (void *)UINTPTR_MAX);
        expect(SY_FAULT_FOREIGN_POINTER, (void *)UINTPTR_MAX, "order", 48, NULL);
        free_now(cache, object + 1);
        expect(SY_FAULT_MISALIGNED_POINTER, object + 1, "order", 48, NULL);
        free_now(cache, others);
        expect(SY_FAULT_WRONG_CACHE, others, "order", 48, "trade");
        free_now(cache, small);
        expect(SY_FAULT_WRONG_CACHE, small, "order", 48, "heap-112");
        free_now(cache, span);
        expect(SY_FAULT_WRONG_CACHE, span, "order", 48, "heap");
        free_now(cache, span + 100);
        expect(SY_FAULT_WRONG_CACHE, span + 100, "order", 48, "heap");
        free_now(cache, object + 48 * 500); /* never given out */
        expect(SY_FAULT_DOUBLE_FREE, object + 48 * 500, "order", 48, NULL);
        free_now(cache, object);
        assert_int_equal(fault_count, 0);
        free_now(cache, object);
        expect(SY_FAULT_DOUBLE_FREE, object, "order", 48, NULL);
        sy_free(small);
        sy_free(span);
        end(cache, 0);
        end(other, 1);
    }
}

static void the_heap_tells_each_kind(void **state) {
    (void)state;
    sy_cache *cache = make("order", 0);
    char *object = sy_cache_alloc(cache), *small = sy_malloc(100), *span = sy_malloc(1 << 20);
    char *large = sy_malloc(9 << 20), local;
    sy_free(&local);
    expect(SY_FAULT_FOREIGN_POINTER, &local, "heap", 0, NULL);
    sy_free((void *)1);
    expect(SY_FAULT_FOREIGN_POINTER, (void *)1, "heap", 0, NULL);
    sy_free(object);
    expect(SY_FAULT_WRONG_CACHE, object, "heap", 0, "order");
    sy_free(span + 65536);
    expect(SY_FAULT_MISALIGNED_POINTER, span + 65536, "heap", 0, NULL);
    sy_free(large + (5 << 20));
    expect(SY_FAULT_MISALIGNED_POINTER, large + (5 << 20), "heap", 0, NULL);
    sy_free(small + 16);
    sy_thread_flush();
    expect(SY_FAULT_MISALIGNED_POINTER, small + 16, "heap-112", 112, NULL);
    sy_free(sy_malloc(40));
    sy_free_sized(small, 40);
    assert_int_equal(faults[0].told_size, 40);
    expect(SY_FAULT_WRONG_SIZE, small, "heap", 112, "heap-112");
    sy_free_sized(small, 97 - 1);
    expect(SY_FAULT_WRONG_SIZE, small, "heap", 112, "heap-112");
    sy_free_sized(small, SIZE_MAX);
    expect(SY_FAULT_WRONG_SIZE, small, "heap", 112, "heap-112");
    sy_free_sized(span, 40);
    expect(SY_FAULT_WRONG_SIZE, span, "heap", 0, NULL);
    sy_free_sized(object, 48);
    expect(SY_FAULT_WRONG_CACHE, object, "heap", 0, "order");
    errno = 0;
    assert_null(sy_realloc(object, 10));
    assert_int_equal(errno, EINVAL);
    expect(SY_FAULT_WRONG_CACHE, object, "heap", 0, "order");
    sy_free(small);
    sy_free(small);
    sy_thread_flush();
    expect(SY_FAULT_DOUBLE_FREE, small, "heap-112", 112, NULL);
    sy_free(span);
    sy_free(span);
    expect(SY_FAULT_DOUBLE_FREE, span, "heap", 0, NULL);
    sy_free(large);
    sy_free(large);
    expect(SY_FAULT_DOUBLE_FREE, large, "heap", 0, NULL);
    sy_free((void *)((uintptr_t)object ^ (UINTPTR_MAX / 2 + 1)));
    assert_int_equal(fault_count, 1);
    fault_count = 0;
    end(cache, 1);
}

/* An address that is not of the heap never enters a magazine. */
static void a_sized_free_of_what_is_not_the_heaps_is_told_at_once(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 8, 64, 1000, 5000, 100000, 1 << 20, 64 << 20};
    static _Alignas(64) char local[64];
    void *const foreign[] = {local, (void *)1, (void *)UINTPTR_MAX, (void *)0x100d6646bb7ac890,
                             (void *)(uintptr_t)&foreign};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        sy_free(sy_malloc(sizes[s])); /* opens the class */
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
            sy_free_sized(foreign[i], sizes[s]);
            expect(SY_FAULT_FOREIGN_POINTER, foreign[i], "heap", 0, NULL);
            void *object = sy_malloc(sizes[s]);
            assert_ptr_not_equal(object, foreign[i]);
            sy_free_sized(object, sizes[s]);
        }
    }
    assert_int_equal(fault_count, 0);
}

/* An address beyond the address space, whose lower bits are those of an object. */
static void an_address_beyond_all_is_not_taken_for_the_one_within(void **state) {
    (void)state;
    void *object = sy_malloc(100), *beyond = (void *)((uintptr_t)object ^ (UINTPTR_MAX / 2 + 1));
    sy_free(beyond);
    expect(SY_FAULT_FOREIGN_POINTER, beyond, "heap", 0, NULL);
    sy_free(object);
    sy_thread_flush();
    assert_int_equal(fault_count, 0);
}

static void the_others_of_a_magazine_are_freed_all_the_same(void **state) {
    (void)state;
    sy_cache *cache = make("order", 0);
    void *objects[10];
    char local;
    for (int i = 0; i < 10; i++) objects[i] = sy_cache_alloc(cache);
    sy_thread_flush();
    for (int i = 0; i < 5; i++) sy_cache_free(cache, objects[i]);
    sy_cache_free(cache, objects[2]);
    sy_cache_free(cache, &local);
    for (int i = 5; i < 10; i++) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    assert_int_equal(fault_count, 2);
    fault_count = 0;
    end(cache, 0);
}

/* Frees each object twice in a row. Each second free is reported at once, whatever state the
 * first one has left the magazines in. */
static void free_each_twice(sy_cache *cache, void **objects, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sy_cache_free(cache, objects[i]);
        assert_int_equal(fault_count, 0);
        errno = 4321;
        sy_cache_free(cache, objects[i]);
        assert_int_equal(errno, 4321);
        expect(SY_FAULT_DOUBLE_FREE, objects[i], "order", 48, NULL);
    }
}

static void a_double_free_in_a_row_is_told_at_once(void **state) {
    (void)state;
    enum { COUNT = 600 };
    static const unsigned flags[] = {0, SY_COLOUR, SY_ZERO, SY_EPOCHS, SY_LIMIT_EXACT};
    static const size_t limits[] = {0, 16, 40, COUNT}; /* magazines of all, 1, 2 and 37 items */
    void *objects[COUNT];
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
        for (size_t l = flags[f] == SY_LIMIT_EXACT; l < sizeof limits / sizeof *limits; l++) {
            sy_cache *cache = sy_cache_create(&(sy_cache_config){
                .name = "order", .size = 48, .limit = limits[l], .flags = flags[f]});
            size_t count = 0;
            while (count < COUNT && (objects[count] = sy_cache_alloc(cache)) != NULL) count++;
            assert_true(count >= (limits[l] ? limits[l] - limits[l] / 8 : COUNT));
            free_each_twice(cache, objects, count);
            end(cache, 0);
        }
    }
}

static void *free_600(void *arg) {
    void **objects = arg;
    sy_cache_free_batch(objects[600], objects, 600);
    return NULL;
}

/* Magazines of another thread are used in windows: the magazine has more objects below. */
static void a_double_free_is_told_within_a_window(void **state) {
    (void)state;
    sy_cache *cache = make("order", 0);
    void *objects[601];
    for (int i = 0; i < 600; i++) objects[i] = sy_cache_alloc(cache);
    objects[600] = cache;
    in_thread(free_600, objects);
    for (int i = 0; i < 600; i++) {
        objects[i] = sy_cache_alloc(cache);
        free_each_twice(cache, &objects[i], 1);
        assert_ptr_equal(sy_cache_alloc(cache), objects[i]);
    }
    sy_cache_free_batch(cache, objects, 600);
    end(cache, 0);
}

static void a_double_free_in_a_batch_is_told(void **state) {
    (void)state;
    sy_cache *cache = make("order", 0);
    void *first = sy_cache_alloc(cache), *second = sy_cache_alloc(cache);
    sy_cache_free_batch(cache, (void *[]){first, second, second}, 3);
    expect(SY_FAULT_DOUBLE_FREE, second, "order", 48, NULL);
    assert_ptr_equal(sy_cache_alloc(cache), second);
    assert_ptr_equal(sy_cache_alloc(cache), first);
    sy_cache_free_batch(cache, (void *[]){first, second}, 2);
    end(cache, 0);
}

static void the_heap_tells_a_double_free_in_a_row_at_once(void **state) {
    (void)state;
    enum { COUNT = 600 };
    void *objects[COUNT];
    for (int i = 0; i < COUNT; i++) objects[i] = sy_malloc(40);
    for (int i = 0; i < COUNT; i++) {
        sy_free(objects[i]);
        sy_free(objects[i]);
        expect(SY_FAULT_DOUBLE_FREE, objects[i], "heap-48", 48, NULL);
        sy_free_sized(objects[i], 40);
        expect(SY_FAULT_DOUBLE_FREE, objects[i], "heap-48", 48, NULL);
    }
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    for (int i = 0; i < COUNT; i++) objects[i] = sy_heap_alloc(heap, 40);
    for (int i = 0; i < COUNT; i++) {
        sy_heap_free_sized(heap, objects[i], 40);
        sy_heap_free_sized(heap, objects[i], 40);
        expect(SY_FAULT_DOUBLE_FREE, objects[i], "tenant-48", 48, NULL);
        sy_heap_free(heap, objects[i]);
        expect(SY_FAULT_DOUBLE_FREE, objects[i], "tenant-48", 48, NULL);
    }
    assert_int_equal(sy_heap_destroy(heap), 0);
}

/* Above its items, a magazine still has the words of earlier items. */
static void what_is_freed_and_taken_in_turn_is_no_double_free(void **state) {
    (void)state;
    static const size_t limits[] = {0, 16, 40};
    for (int l = 0; l < 3; l++) {
        sy_cache *cache =
            sy_cache_create(&(sy_cache_config){.name = "order", .size = 48, .limit = limits[l]});
        void *objects[14];
        for (int round = 0; round < 1000; round++) {
            int count = 1 + round % 14;
            for (int i = 0; i < count; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
            for (int i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
            if (round % 7 == 0) sy_thread_flush();
        }
        end(cache, 0);
    }
}

static void *free_twice_from_here(void *arg) {
    void **objects = arg;
    sy_cache_free(objects[0], objects[1]);
    sy_thread_flush();
    return NULL;
}

static void a_double_free_by_two_threads_is_seen(void **state) {
    (void)state;
    sy_cache *cache = make("order", 0);
    void *objects[] = {cache, sy_cache_alloc(cache)};
    in_thread(free_twice_from_here, objects);
    assert_int_equal(fault_count, 0);
    in_thread(free_twice_from_here, objects);
    expect(SY_FAULT_DOUBLE_FREE, objects[1], "order", 48, NULL);
    end(cache, 0);
}

/* A slab is released without the lock, after it has left its cache. Its bitmap may belong to
 * another slab by then: here the bitmap says that all slots are allocated. */
static void free_into_a_slab_that_is_being_released(void *arg) {
    (void)arg;
    alarm(60); /* if it fails, the lists of slabs may be a ring */
    sy_cache *cache = make("order", 0);
    void *object = sy_cache_alloc(cache);
    free_now(cache, object);
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    size_t bytes = cache->layout.words * sizeof *slab->free;
    sy_lock_acquire(&cache->lock);
    sy_cache_unlink_slab(cache, slab);
    sy_lock_release(&cache->lock);
    memset(slab->free, 0, bytes);
    must(!sy_cache_try_free(cache, object));
    free_now(cache, object);
    must(fault_count == 1 && faults[0].kind == SY_FAULT_DOUBLE_FREE);
    for (size_t i = 0; i < bytes; i++) must(((char *)slab->free)[i] == 0);
    sy_cache_release_slab(cache, slab);
    must(!slab->owner); /* the other fields are cleared for the next run, in any order */
    must(sy_cache_destroy(cache) == 0);
}

static void the_bitmap_of_a_slab_that_is_being_released_is_not_read(void **state) {
    (void)state;
    assert_int_equal(in_child(free_into_a_slab_that_is_being_released, NULL), 0);
}

static sy_cache *used_by_handler;

static void use_slabyard(const sy_fault *fault) {
    note_fault(fault);
    void *object = sy_cache_alloc(used_by_handler);
    sy_free(sy_malloc(100));
    sy_cache_trim(used_by_handler);
    sy_cache_free(used_by_handler, object);
}

static void the_handler_may_use_slabyard(void **state) {
    (void)state;
    for (unsigned flags = 0; flags <= SY_CHECKED; flags += SY_CHECKED) {
        sy_cache *cache = used_by_handler = make("order", flags);
        void *object = sy_cache_alloc(cache);
        sy_thread_flush();
        sy_set_fault_handler(use_slabyard);
        free_now(cache, object);
        free_now(cache, object);
        expect(SY_FAULT_DOUBLE_FREE, object, "order", 48, NULL);
        end(cache, 0);
    }
}

static void setting_a_handler_gives_the_one_before(void **state) {
    (void)state;
    assert_true(sy_set_fault_handler(use_slabyard) == note_fault);
    assert_true(sy_set_fault_handler(NULL) == use_slabyard);
    assert_true(sy_set_fault_handler(note_fault) == NULL);
}

/* Each magazine that is flushed has only bad items. */
static void all_that_a_flush_finds_is_told(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static void *objects[MANY];
    sy_cache *cache = make("order", 0);
    for (int i = 0; i < MANY; i++) objects[i] = sy_cache_alloc(cache);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < MANY; i++) sy_cache_free(cache, objects[i]);
    sy_cache_trim(cache);
    assert_int_equal(fault_count, MANY);
    assert_int_equal(faults[0].kind, SY_FAULT_DOUBLE_FREE);
    fault_count = 0;
    end(cache, 0);
}

static void free_keeps_errno_when_it_tells(void **state) {
    (void)state;
    char local;
    errno = 4321;
    sy_free(&local);
    assert_int_equal(errno, 4321);
    assert_int_equal(fault_count, 1);
    fault_count = 0;
}

static int begin(void **state) {
    (void)state;
    fault_count = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_kind_is_told_from_the_others),
        TEST(the_heap_tells_each_kind),
        TEST(a_sized_free_of_what_is_not_the_heaps_is_told_at_once),
        TEST(an_address_beyond_all_is_not_taken_for_the_one_within),
        TEST(the_others_of_a_magazine_are_freed_all_the_same),
        TEST(a_double_free_in_a_row_is_told_at_once),
        TEST(a_double_free_is_told_within_a_window),
        TEST(a_double_free_in_a_batch_is_told),
        TEST(the_heap_tells_a_double_free_in_a_row_at_once),
        TEST(what_is_freed_and_taken_in_turn_is_no_double_free),
        TEST(a_double_free_by_two_threads_is_seen),
        TEST(the_bitmap_of_a_slab_that_is_being_released_is_not_read),
        TEST(the_handler_may_use_slabyard),
        TEST(setting_a_handler_gives_the_one_before),
        TEST(all_that_a_flush_finds_is_told),
        TEST(free_keeps_errno_when_it_tells),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
