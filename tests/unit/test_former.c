/*
 * test_former.c: a program that was compiled with earlier headers of the same ABI number runs as
 * before: what those headers declared is exported, and fills the structs as they were. The program
 * declares the functions itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>

#undef sy_each_cache
#undef sy_each_tag
#undef sy_each_option
#undef sy_each_leak
#undef sy_vmem_walk

/* As in those headers, but with pointers to anything in place of the structs. */
int sy_cache_get_stats(const sy_cache *cache, void *stats);
void sy_get_stats(void *stats);
int sy_heap_get_stats(const void *heap, void *stats);
int sy_memory_get_stats(const void *memory, void *stats);
int sy_vmem_get_stats(const void *arena, void *stats);
void *sy_heap_create(const void *config);
int sy_heap_destroy(void *heap);
void *sy_vmem_create(const void *config);
int sy_vmem_destroy(void *arena);
int sy_each_cache(int (*visit)(void *arg, const void *account), void *arg);
int sy_each_tag(int (*visit)(void *arg, const void *stats), void *arg);
int sy_each_option(int (*visit)(void *arg, const void *option), void *arg);
int sy_each_leak(sy_cache *cache, unsigned flags, int (*visit)(void *arg, const void *leak),
                 void *arg);
int sy_vmem_walk(const void *arena, unsigned what,
                 int (*visit)(void *arg, unsigned what, uintptr_t start, size_t size), void *arg);

/* The struct had so many bytes on 64-bit processors. */
static void expect_filled(const uintptr_t *words, size_t bytes) {
    if (sizeof *words != 8) return;
    assert_true(words[bytes / 8 - 1] != UINTPTR_MAX);
    assert_true(words[bytes / 8] == UINTPTR_MAX);
}

static void structs_have_their_former_size(void **state) {
    (void)state;
    uintptr_t words[64];
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "former", .size = 40});
    memset(words, 0xff, sizeof words);
    assert_int_equal(sy_cache_get_stats(cache, words), 0);
    assert_string_equal((const char *)words, "former");
    expect_filled(words, 328);
    assert_int_equal(sy_cache_destroy(cache), 0);

    memset(words, 0xff, sizeof words);
    sy_get_stats(words);
    expect_filled(words, 104);

    static const uintptr_t empty[64];
    void *heap = sy_heap_create(empty);
    memset(words, 0xff, sizeof words);
    assert_int_equal(sy_heap_get_stats(heap, words), 0);
    assert_string_equal((const char *)words, "heap");
    expect_filled(words, 72);
    assert_int_equal(sy_heap_destroy(heap), 0);

    memset(words, 0xff, sizeof words);
    assert_int_equal(sy_memory_get_stats(NULL, words), 0);
    expect_filled(words, 48);

    void *arena = sy_vmem_create(empty);
    memset(words, 0xff, sizeof words);
    assert_int_equal(sy_vmem_get_stats(arena, words), 0);
    assert_string_equal((const char *)words, "arena");
    expect_filled(words, 192);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

static void null_is_refused_as_before(void **state) {
    (void)state;
    errno = 0;
    assert_int_equal(sy_cache_get_stats(NULL, &(uintptr_t[64]){0}), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(sy_memory_get_stats(NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
}

static int count(void *arg, const void *what) {
    assert_non_null(what);
    return ++*(int *)arg;
}

static int count_part(void *arg, unsigned what, uintptr_t start, size_t size) {
    assert_true(what == 2 && start == 30 && size == 12); /* SY_VMEM_FREE */
    return ++*(int *)arg + 4;
}

static void former_names_are_functions(void **state) {
    (void)state;
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "former", .size = 40, .flags = SY_AUDIT});
    void *object = sy_cache_alloc(cache);
    int visits = 0;
    assert_int_equal(sy_each_cache(count, &visits), 1);
    assert_int_equal(sy_each_tag(count, &visits), 2);
    assert_int_equal(sy_each_option(count, &visits), 3);
    assert_int_equal(sy_each_leak(cache, 0, count, &visits), 4);
    sy_cache_free(cache, object);
    assert_int_equal(sy_each_leak(cache, 0, count, &visits), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    const uintptr_t config[64] = {0, 30, 12}; /* name, base, size */
    void *arena = sy_vmem_create(config);
    assert_non_null(arena);
    assert_int_equal(sy_vmem_walk(arena, 2, count_part, &visits), 9);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_have_their_former_size),
        cmocka_unit_test(null_is_refused_as_before),
        cmocka_unit_test(former_names_are_functions),
    };
    return cmocka_run_group_tests_name("former", tests, NULL, NULL);
}
