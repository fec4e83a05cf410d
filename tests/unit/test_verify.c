/*
 * test_verify.c: sy_verify finds broken invariants, wherever they are, and reports nothing if all
 * hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/checks.h>
#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "support/child.h"
#include "vmem/arena.h"

static sy_cache *make(unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = 64, .flags = flags});
    must(cache != NULL);
    return cache;
}

static void verify(void *wrong) { *(size_t *)wrong = sy_verify(); }

/* Expects so many violations, and this line in the report. NULL: no violation is reported. */
static void expect(size_t wrong, const char *line) {
    size_t found = 0;
    errno = 12345;
    assert_false(sy_fake_catch(verify, &found));
    assert_int_equal(errno, 12345);
    assert_int_equal(found, wrong);
    if (line)
        assert_non_null(strstr(sy_fake_written(), line));
    else
        assert_null(strstr(sy_fake_written(), "violation"));
}

static void all_is_well(void **state) {
    (void)state;
    expect(0, NULL);
    sy_cache *plain = make(0), *checked = make(SY_REDZONE | SY_POISON | SY_EDGES | SY_QUARANTINE);
    for (int i = 0; i < 100; i++) {
        assert_non_null(sy_cache_alloc(plain));
        sy_cache_free(checked, sy_cache_alloc(checked));
        assert_non_null(sy_cache_alloc(checked));
    }
    void *small = sy_malloc(100), *large = sy_malloc(9 << 20);
    expect(0, NULL);
    sy_free(small);
    sy_free(large);
    sy_cache_destroy_all(plain);
    sy_cache_destroy_all(checked);
    expect(0, NULL);
}

static void a_wrong_count_of_a_cache_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(0);
    assert_non_null(sy_cache_alloc(cache));
    cache->out++;
    expect(1, "slabyard: 1 violation in cache \"order\"\n");
    cache->out--;
    cache->slab_count++;
    cache->out++;
    expect(2, "slabyard: 2 violations in cache \"order\"\n");
    cache->slab_count--;
    cache->out--;
    expect(0, NULL);
    sy_cache_destroy_all(cache);
}

static void a_chunk_that_is_wrong_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(0);
    assert_non_null(sy_cache_alloc(cache));
    sy_memory_main.chunk_count++;
    expect(1, "slabyard: 1 violation in memory \"system\"\n");
    sy_memory_main.chunk_count--;
    expect(0, NULL);
    sy_cache_destroy_all(cache);
}

static void the_program_s_memory_is_looked_at_too(void **state) {
    (void)state;
    static char region[12 << 20];
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.name = "static", .start = region, .bytes = sizeof region});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .memory = memory});
    assert_non_null(sy_cache_alloc(cache));
    expect(0, NULL);
    memory->chunk_count++;
    expect(1, "slabyard: 1 violation in memory \"static\"\n");
    memory->chunk_count--;
    sy_cache_destroy_all(cache);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

static void an_arena_that_is_wrong_is_found(void **state) {
    (void)state;
    sy_vmem *ports = sy_vmem_create(&(sy_vmem_config){
        .name = "ports", .base = 1024, .size = 1000, .quantum = 1, .cached_max = 4});
    uintptr_t port;
    assert_int_equal(sy_vmem_alloc(ports, 1, SY_VMEM_INSTANT, &port), 0);
    expect(0, NULL);
    ports->free += 5;
    expect(1, "slabyard: 1 violation in arena \"ports\"\n");
    ports->free -= 5;
    sy_vmem_free(ports, port, 1);
    expect(0, NULL);
    assert_int_equal(sy_vmem_destroy(ports), 0);
}

static void a_magazine_that_is_wrong_is_found(void **state) {
    (void)state;
    sy_magazine *magazine = sy_store_take();
    magazine->number++;
    expect(1, "slabyard: 1 violation in store \"magazines\"\n");
    magazine->number--;
    sy_store_put(magazine);
    expect(0, NULL);
}

/* ---- damage by the program: each is a fault, and no violation of the library's ---- */

static void damage(sy_cache *cache, char *at, size_t bytes) {
    char before[64];
    memcpy(before, at, bytes);
    expect(0, NULL);
    memset(at, '!', bytes);
    expect(1, NULL);
    memcpy(at, before, bytes);
    expect(0, NULL);
    sy_cache_destroy_all(cache);
}

static void an_overflow_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(SY_REDZONE);
    damage(cache, (char *)sy_cache_alloc(cache) + 64, 3);
}

static void an_underflow_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(SY_REDZONE);
    damage(cache, (char *)sy_cache_alloc(cache) - 1, 1);
}

static void a_write_after_free_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(SY_POISON);
    char *object = sy_cache_alloc(cache);
    sy_cache_free(cache, object);
    damage(cache, object + 10, 2);
}

static void a_damaged_edge_is_found(void **state) {
    (void)state;
    sy_cache *cache = make(SY_EDGES);
    assert_non_null(sy_cache_alloc(cache));
    damage(cache, (char *)cache->slabs->start + 5, 1);
}

static void what_is_found_adds_up(void **state) {
    (void)state;
    sy_cache *cache = make(SY_REDZONE);
    char *objects[40];
    for (int i = 0; i < 40; i++) {
        objects[i] = sy_cache_alloc(cache);
        objects[i][64] ^= 1;
    }
    cache->slab_count++;
    expect(41, "slabyard: 1 violation in cache \"order\"\n");
    cache->slab_count--;
    for (int i = 0; i < 40; i++) objects[i][64] ^= 1;
    expect(0, NULL);
    sy_cache_destroy_all(cache);
}

/* More violations than the report has room for. */
static void each_of_many_is_counted(void **state) {
    (void)state;
    sy_cache *caches[30];
    for (int i = 0; i < 30; i++) {
        caches[i] = make(0);
        caches[i]->slab_count++;
    }
    expect(30, "slabyard: 1 violation in cache \"order\"\n");
    for (int i = 0; i < 30; i++) {
        caches[i]->slab_count--;
        sy_cache_destroy(caches[i]);
    }
    expect(0, NULL);
}

/* ---- while other threads work ---- */

static _Atomic bool over;

static void *work(void *arg) {
    sy_cache *cache = arg;
    while (!atomic_load(&over)) {
        void *objects[40];
        for (int i = 0; i < 40; i++) objects[i] = memset(sy_cache_alloc(cache), 0x55, 64);
        for (int i = 0; i < 40; i++) sy_cache_free(cache, objects[i]);
        if (objects[0] > objects[1]) sy_cache_trim(cache);
    }
    return NULL;
}

static void it_is_right_while_others_work(void **state) {
    (void)state;
    const unsigned flags[] = {0, SY_REDZONE | SY_POISON | SY_AUDIT,
                              SY_POISON | SY_QUARANTINE | SY_EDGES, SY_AUDIT | SY_RANDOM};
    sy_cache *caches[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        caches[i] = make(flags[i]);
        must(pthread_create(&threads[i], NULL, work, caches[i]) == 0);
    }
    for (int i = 0; i < 200; i++) assert_int_equal(sy_verify(), 0);
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        sy_cache_destroy_all(caches[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(a_wrong_count_of_a_cache_is_found),
        cmocka_unit_test(a_chunk_that_is_wrong_is_found),
        cmocka_unit_test(the_program_s_memory_is_looked_at_too),
        cmocka_unit_test(an_arena_that_is_wrong_is_found),
        cmocka_unit_test(a_magazine_that_is_wrong_is_found),
        cmocka_unit_test(an_overflow_is_found),
        cmocka_unit_test(an_underflow_is_found),
        cmocka_unit_test(a_write_after_free_is_found),
        cmocka_unit_test(a_damaged_edge_is_found),
        cmocka_unit_test(what_is_found_adds_up),
        cmocka_unit_test(each_of_many_is_counted),
        cmocka_unit_test(it_is_right_while_others_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
