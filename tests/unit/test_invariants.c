/*
 * test_invariants.c: each predicate that debug builds evaluate is given a structure that was broken
 * on purpose, in a child process. It has to end the child with the condition's text. Other builds
 * evaluate no predicates, so they skip the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <slabyard/cache.h>
#include <slabyard/handle.h>
#include <slabyard/pool.h>
#include <slabyard/vmem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/cache.h"
#include "chunk/quota.h"
#include "magazine/depot.h"
#include "magazine/slot.h"
#include "vmem/arena.h"

typedef struct outcome {
    int status;
    char text[1024];
} outcome;

static outcome in_child(void (*body)(void)) {
    outcome it = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        signal(SIGABRT, SIG_DFL);
        alarm(30); /* a walk through a broken structure may never end */
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], it.text + length, sizeof it.text - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &it.status, 0), child);
    return it;
}

/* `body` breaks the invariant whose text is `condition`. */
static void expect_broken(void (*body)(void), const char *condition) {
    outcome it = in_child(body);
    if (!WIFSIGNALED(it.status) || WTERMSIG(it.status) != SIGABRT)
        assert_true(WIFSIGNALED(it.status) && WTERMSIG(it.status) == SIGABRT);
    assert_non_null(strstr(it.text, "slabyard: invariant broken: "));
    assert_non_null(strstr(it.text, condition));
}

static sy_cache *cache_with_slab(unsigned flags) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "it", .size = 64, .flags = flags});
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_thread_flush();
    return cache;
}

/* The slab has one more free slot than its count says. */
static void a_slab_counts_one_too_few(void) {
    sy_cache *cache = cache_with_slab(0);
    cache->slabs->free_count--;
    void *objects[300];
    for (int i = 0; i < 300; i++) objects[i] = sy_cache_alloc(cache);
    (void)objects;
}

static void a_bin_without_slabs_has_its_bit_set(void) {
    sy_cache *cache = cache_with_slab(0);
    cache->bins.occupied |= 1;
    sy_bins_move(&cache->bins, cache->slabs);
}

static void a_magazine_has_too_many_items(void) {
    sy_magazine *magazine = sy_store_take();
    sy_magazine_set_count(magazine, SY_MAGAZINE_ITEMS + 1);
    sy_cache *cache = cache_with_slab(0);
    sy_depot_push(sy_depot_shards_of(cache->client.number), magazine);
}

static void a_magazine_comes_back_twice(void) {
    sy_magazine *magazine = sy_store_take();
    sy_store_put(magazine);
    sy_store_put(magazine);
}

static void a_slot_has_the_same_magazine_twice(void) {
    sy_cache *cache = cache_with_slab(0);
    void *object = sy_cache_alloc(cache);
    sy_slot *slot = (sy_slot *)sy_abi_1 + cache->client.number;
    slot->previous = slot->loaded;
    sy_client_prepare(&cache->client);
    (void)object;
}

static void a_segment_does_not_know_its_neighbour(void) {
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.name = "it", .base = 1, .size = 100});
    uintptr_t value;
    if (sy_vmem_alloc(arena, 10, SY_VMEM_INSTANT, &value) != 0) return;
    sy_boundary *span = arena->first, *behind = span->next->next;
    behind->previous = span;
    (void)!sy_vmem_resize(arena, value, 10, 9);
}

static void a_free_word_is_pinned(void) {
    sy_cache *cache = cache_with_slab(SY_HANDLES);
    sy_handle handle = 0;
    sy_handle_alloc(cache, &handle);
    uint32_t ordinal;
    sy_handle_free(cache, handle);
    if (!sy_handle_take_slow_abi_1(cache, &ordinal)) return;
    cache->names.words[ordinal] += SY_HANDLE_PIN;
    sy_handle_put_slow_abi_1(cache, ordinal);
}

static void a_quota_gives_more_than_it_took(void) {
    sy_quota quota = {.hard = SIZE_MAX, .soft = SIZE_MAX};
    sy_quota_charge(&quota, 10);
    sy_quota_uncharge(&quota, 11);
}

static void a_pool_has_carved_half_a_slot(void) {
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 64});
    pool->bump = pool->limit -= 3;
    void *object = sy_pool_alloc(pool);
    (void)object;
}

static void each_predicate_sees_what_is_broken(void **state) {
    (void)state;
#ifndef SY_DEBUG
    skip();
#endif
    expect_broken(a_slab_counts_one_too_few, "sy_slab_is_valid");
    expect_broken(a_bin_without_slabs_has_its_bit_set, "bins_are_ordered");
    expect_broken(a_magazine_has_too_many_items, "magazine_is_bounded");
    expect_broken(a_magazine_comes_back_twice, "magazine_is_out");
    expect_broken(a_slot_has_the_same_magazine_twice, "slot_is_bounded");
    expect_broken(a_segment_does_not_know_its_neighbour, "segment_neighbours_agree");
    expect_broken(a_free_word_is_pinned, "word_is_free");
    expect_broken(a_quota_gives_more_than_it_took, "before >= bytes || counted_less");
    expect_broken(a_pool_has_carved_half_a_slot, "pool_is_bounded");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_predicate_sees_what_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
