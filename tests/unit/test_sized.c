/*
 * test_sized.c: a struct is filled as far as its caller's headers know it: older programs get its
 * beginning, newer ones zeros behind. Each function that fills a struct does so.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "base/sized.h"
#include "support/child.h"

enum { ROOM = SY_SIZED_MAX + 64, MARK = 0xa5 };

/* Whether all bytes in [from, to) have this value. */
static bool all_are(const unsigned char *bytes, size_t from, size_t to, unsigned char value) {
    for (size_t i = from; i < to; i++)
        if (bytes[i] != value) return false;
    return true;
}

/* ---- a struct with a second version ---- */

typedef struct grown {
    unsigned char first[5], later[3];
} grown;

static void fill_grown(const void *value, void *to) {
    memset(to, *(const unsigned char *)value, sizeof(grown));
}

static const sy_sized sized_grown = SY_SIZED(grown, first, fill_grown);

static void callers_get_what_their_headers_know(void **state) {
    (void)state;
    const unsigned char value = 7;
    for (size_t size = 0; size < 20; size++) {
        unsigned char bytes[32];
        memset(bytes, MARK, sizeof bytes);
        errno = 0;
        int result = sy_sized_fill(&sized_grown, &value, bytes, size);
        bool known = size >= 5;
        size_t filled = !known ? 0 : size < 8 ? size : 8;
        assert_int_equal(result, known ? 0 : -1);
        assert_int_equal(errno, known ? 0 : EINVAL);
        assert_true(all_are(bytes, 0, filled, value));
        assert_true(all_are(bytes, filled, known ? size : 0, 0));
        assert_true(all_are(bytes, known ? size : 0, sizeof bytes, MARK));
    }
}

/* ---- the functions ---- */

static sy_cache *cache;
static sy_heap *heap;
static sy_memory *memory;
static sy_vmem *arena;

static int of_cache(void *to, size_t size) { return sy_cache_get_stats_sized(cache, to, size); }
static int of_process(void *to, size_t size) { return sy_get_stats_sized(to, size); }
static int of_heap(void *to, size_t size) { return sy_heap_get_stats_sized(heap, to, size); }
static int of_memory(void *to, size_t size) { return sy_memory_get_stats_sized(memory, to, size); }
static int of_arena(void *to, size_t size) { return sy_vmem_get_stats_sized(arena, to, size); }

static const struct {
    int (*fill)(void *to, size_t size);
    size_t first, bytes;
} functions[] = {
    {of_cache, SY_SIZED_TO(sy_cache_stats, limits_hit), sizeof(sy_cache_stats)},
    {of_process, SY_SIZED_TO(sy_stats, limits_hit), sizeof(sy_stats)},
    {of_heap, SY_SIZED_TO(sy_heap_stats, limits_hit), sizeof(sy_heap_stats)},
    {of_memory, SY_SIZED_TO(sy_memory_stats, headers), sizeof(sy_memory_stats)},
    {of_arena, SY_SIZED_TO(sy_vmem_stats, bytes), sizeof(sy_vmem_stats)},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void each_function_takes_the_size(void **state) {
    (void)state;
    cache = sy_cache_create(&(sy_cache_config){.name = "sized", .size = 40});
    heap = sy_heap_create(&(sy_heap_config){.name = "sized"});
    arena = sy_vmem_create(&(sy_vmem_config){.base = 10, .size = 10});
    void *object = sy_cache_alloc(cache), *other = sy_heap_alloc(heap, 100);
    assert_true(object && other && arena);
    for (size_t i = 0; i < FUNCTIONS; i++) {
        _Alignas(max_align_t) unsigned char exact[ROOM], larger[ROOM];
        size_t bytes = functions[i].bytes, more = bytes + 24;
        memset(exact, MARK, ROOM);
        memset(larger, MARK, ROOM);
        assert_int_equal(functions[i].fill(exact, functions[i].first), 0);
        assert_true(all_are(exact, functions[i].first, ROOM, MARK));
        assert_int_equal(functions[i].fill(larger, more), 0);
        assert_memory_equal(exact, larger, functions[i].first);
        assert_true(all_are(larger, bytes, more, 0));
        assert_true(all_are(larger, more, ROOM, MARK));
    }
    sy_cache_free(cache, object);
    sy_heap_free(heap, other);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_heap_destroy(heap), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

static void a_size_below_the_first_version_is_refused(void **state) {
    (void)state;
    cache = sy_cache_create(&(sy_cache_config){.size = 40});
    heap = sy_heap_create(&(sy_heap_config){.name = "sized"});
    arena = sy_vmem_create(&(sy_vmem_config){.base = 10, .size = 10});
    for (size_t i = 0; i < FUNCTIONS; i++) {
        unsigned char bytes[ROOM];
        memset(bytes, MARK, ROOM);
        const size_t sizes[] = {0, 1, functions[i].first - 1};
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            errno = 0;
            assert_int_equal(functions[i].fill(bytes, sizes[j]), -1);
            assert_int_equal(errno, EINVAL);
            assert_true(all_are(bytes, 0, ROOM, MARK));
        }
        errno = 0;
        assert_int_equal(functions[i].fill(NULL, functions[i].bytes), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_heap_destroy(heap), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_get_what_their_headers_know),
        cmocka_unit_test(each_function_takes_the_size),
        cmocka_unit_test(a_size_below_the_first_version_is_refused),
    };
    return cmocka_run_group_tests_name("sized", tests, NULL, NULL);
}
