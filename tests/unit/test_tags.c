/*
 * test_tags.c: an object counts for the tag of the thread that allocated it, until a thread frees
 * it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "support/child.h"

static sy_cache *make(unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "tag", .size = 40, .flags = flags});
    must(cache != NULL);
    return cache;
}

static int find_stats(void *arg, const sy_tag_stats *stats) {
    sy_tag_stats *wanted = arg;
    if (stats->tag != wanted->tag) return 0;
    *wanted = *stats;
    return 1;
}

static sy_tag_stats stats_of(sy_tag tag) {
    sy_tag_stats stats = {.tag = tag};
    must(sy_tag_each(find_stats, &stats) == 1);
    return stats;
}

static void expect(sy_tag tag, uint64_t allocations, uint64_t frees, size_t bytes, size_t peak) {
    sy_tag_stats stats = stats_of(tag);
    must(stats.allocations == allocations && stats.frees == frees);
    must(stats.live == allocations - frees);
    must(stats.live_bytes == bytes && stats.peak_bytes == peak);
}

/* ---- names ---- */

static void a_name_has_one_tag(void **state) {
    (void)state;
    sy_tag parser = sy_tag_open("one parser"), network = sy_tag_open("one network");
    assert_int_not_equal(parser, 0);
    assert_int_not_equal(network, 0);
    assert_int_not_equal(parser, network);
    assert_int_equal(sy_tag_open("one parser"), parser);
    assert_string_equal(stats_of(network).name, "one network");
    assert_int_equal(sy_tag_open(""), 0);
    assert_string_equal(stats_of(0).name, "");
}

static void a_long_name_is_cut(void **state) {
    (void)state;
    sy_tag tag = sy_tag_open("0123456789012345678901234567890123456789");
    assert_string_equal(stats_of(tag).name, "0123456789012345678901234567890");
    assert_int_equal(sy_tag_open("0123456789012345678901234567890"), tag);
    assert_int_not_equal(sy_tag_open("012345678901234567890123456789"), tag);
}

static void fill_the_table(void *arg) {
    (void)arg;
    char name[16];
    sy_tag last = 0;
    for (int i = 0; i < SY_TAGS_MAX; i++) {
        snprintf(name, sizeof name, "full %d", i);
        sy_tag tag = sy_tag_open(name);
        if (!tag) break;
        must(tag > last);
        last = tag;
    }
    errno = 0;
    must(sy_tag_open("one too many") == 0 && errno == ENOMEM);
    must(last == SY_TAGS_MAX);
    must(strcmp(stats_of(sy_tag_open("full 0")).name, "full 0") == 0);
}

static void there_are_as_many_as_there_are(void **state) {
    (void)state;
    assert_int_equal(in_child(fill_the_table, NULL), 0);
}

static int count_and_stop(void *arg, const sy_tag_stats *stats) {
    must(stats->tag == *(sy_tag *)arg);
    return ++*(sy_tag *)arg == 3 ? 42 : 0;
}

static void a_visit_ends_when_it_is_told(void **state) {
    (void)state;
    sy_tag_open("visit a");
    sy_tag_open("visit b");
    sy_tag next = 0;
    assert_int_equal(sy_tag_each(count_and_stop, &next), 42);
    assert_int_equal(next, 3);
}

/* ---- the objects of a thread ---- */

static void *has_none(void *arg) {
    must(sy_tag_set(0) == 0);
    return arg;
}

static void a_thread_has_the_tag_that_it_was_given(void **state) {
    (void)state;
    sy_tag tag = sy_tag_open("thread");
    assert_int_equal(sy_tag_set(tag), 0);
    in_thread(has_none, NULL);
    assert_int_equal(sy_tag_set(SY_TAGS_MAX + 1), tag);
    assert_int_equal(sy_tag_set(SY_TAGS_MAX), 0); /* no tag has this number */
    assert_int_equal(sy_tag_set(0), 0);
}

static void an_object_counts_while_it_lives(void **state) {
    (void)state;
    sy_cache *cache = make(SY_AUDIT);
    sy_tag tag = sy_tag_open("lives"), before = sy_tag_set(tag);
    void *one = sy_cache_alloc(cache), *two = sy_cache_alloc(cache);
    expect(tag, 2, 0, 80, 80);
    sy_tag_set(sy_tag_open("another"));
    sy_cache_free(cache, one);
    expect(tag, 2, 1, 40, 80);
    expect(sy_tag_open("another"), 0, 0, 0, 0);
    sy_cache_free(cache, two);
    expect(tag, 2, 2, 0, 80);
    sy_tag_set(before);
    sy_cache_destroy(cache);
}

static void the_size_is_what_was_asked_for(void **state) {
    (void)state;
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tag", .flags = SY_AUDIT});
    sy_tag tag = sy_tag_open("sizes"), before = sy_tag_set(tag);
    void *small = sy_heap_alloc(heap, 13), *large = sy_heap_alloc(heap, 300001);
    expect(tag, 2, 0, 300014, 300014);
    sy_heap_free(heap, large);
    expect(tag, 2, 1, 13, 300014);
    sy_heap_free(heap, small);
    sy_tag_set(before);
    assert_int_equal(sy_heap_destroy(heap), 0);
}

static void an_object_with_a_handle_counts(void **state) {
    (void)state;
    sy_cache *cache = make(SY_AUDIT | SY_HANDLES);
    sy_tag tag = sy_tag_open("handle"), before = sy_tag_set(tag);
    sy_handle handle;
    assert_non_null(sy_handle_alloc(cache, &handle));
    expect(tag, 1, 0, 40, 40);
    assert_true(sy_handle_free(cache, handle));
    expect(tag, 1, 1, 0, 40);
    sy_tag_set(before);
    sy_cache_destroy(cache);
}

static void what_goes_with_its_cache_counts_no_more(void **state) {
    (void)state;
    sy_cache *cache = make(SY_AUDIT);
    sy_tag tag = sy_tag_open("destroyed"), before = sy_tag_set(tag);
    void *freed = sy_cache_alloc(cache);
    for (int i = 0; i < 4; i++) assert_non_null(sy_cache_alloc(cache));
    sy_cache_free(cache, freed);
    sy_tag_set(before);
    sy_cache_destroy_all(cache);
    expect(tag, 5, 5, 0, 200);
}

static void without_audit_nothing_is_counted(void **state) {
    (void)state;
    sy_cache *cache = make(SY_REDZONE);
    sy_tag tag = sy_tag_open("without"), before = sy_tag_set(tag);
    sy_cache_free(cache, sy_cache_alloc(cache));
    expect(tag, 0, 0, 0, 0);
    void *object = sy_cache_alloc(cache);
    assert_non_null(object);
    sy_tag_set(before);
    sy_cache_destroy_all(cache);
    expect(tag, 0, 0, 0, 0);
}

/* ---- threads ---- */

enum { THREADS = 4, OBJECTS = 2000 };
static sy_cache *shared;
static void *_Atomic handed[THREADS][OBJECTS];
static sy_tag tags[THREADS];
static _Atomic int next_thread;

/* Allocates with the thread's own tag, and frees the objects of its neighbour. */
static void *allocate_and_free(void *arg) {
    int me = atomic_fetch_add(&next_thread, 1), other = (me + 1) % THREADS;
    sy_tag_set(tags[me]);
    for (int i = 0; i < OBJECTS; i++) {
        atomic_store(&handed[me][i], sy_cache_alloc(shared));
        sy_tag_stats stats = stats_of(tags[other]);
        must(stats.live <= OBJECTS && stats.frees <= stats.allocations);
        must(stats.live_bytes <= stats.peak_bytes);
        sy_cache_free(shared, atomic_exchange(&handed[other][i], NULL));
    }
    return arg;
}

static void counts_hold_among_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    shared = make(SY_AUDIT);
    for (int i = 0; i < THREADS; i++) {
        char name[] = "among 0";
        name[6] = (char)('0' + i);
        tags[i] = sy_tag_open(name);
    }
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, allocate_and_free, NULL) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        size_t left = 0;
        for (int j = 0; j < OBJECTS; j++) left += atomic_load(&handed[i][j]) != NULL;
        sy_tag_stats stats = stats_of(tags[i]);
        assert_int_equal(stats.allocations, OBJECTS);
        assert_int_equal(stats.live, left);
        assert_int_equal(stats.live_bytes, left * 40);
        assert_in_range(stats.peak_bytes, left * 40, OBJECTS * 40);
    }
    sy_cache_destroy_all(shared);
}

static void count_in_a_child(void *arg) {
    sy_cache *cache = arg;
    sy_tag tag = sy_tag_open("of a child");
    sy_tag_set(tag);
    must(sy_cache_alloc(cache) != NULL);
    expect(tag, 1, 0, 40, 40);
}

static void names_are_added_after_a_fork(void **state) {
    (void)state;
    sy_cache *cache = make(SY_AUDIT);
    assert_int_equal(in_child(count_in_a_child, cache), 0);
    sy_cache_destroy(cache);
}

static void a_tag_that_is_not_open_is_none(void **state) {
    (void)state;
    sy_tag last = sy_tag_open("the newest of all");
    assert_int_not_equal(last, 0);
    sy_tag_set(last);
    assert_int_equal(sy_tag_set((sy_tag)(last + 1)), last);
    assert_int_equal(sy_tag_set(0), 0);
}

static void the_peak_stays(void **state) {
    (void)state;
    sy_cache *cache = make(SY_AUDIT);
    sy_tag tag = sy_tag_open("high and low");
    sy_tag_set(tag);
    void *one = sy_cache_alloc(cache), *two = sy_cache_alloc(cache);
    sy_cache_free(cache, one);
    sy_cache_free(cache, two);
    one = sy_cache_alloc(cache);
    expect(tag, 3, 2, 40, 80);
    sy_cache_free(cache, one);
    sy_tag_set(0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_one_tag),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(there_are_as_many_as_there_are),
        cmocka_unit_test(a_visit_ends_when_it_is_told),
        cmocka_unit_test(a_thread_has_the_tag_that_it_was_given),
        cmocka_unit_test(an_object_counts_while_it_lives),
        cmocka_unit_test(the_size_is_what_was_asked_for),
        cmocka_unit_test(an_object_with_a_handle_counts),
        cmocka_unit_test(what_goes_with_its_cache_counts_no_more),
        cmocka_unit_test(without_audit_nothing_is_counted),
        cmocka_unit_test(counts_hold_among_threads),
        cmocka_unit_test(names_are_added_after_a_fork),
        cmocka_unit_test(a_tag_that_is_not_open_is_none),
        cmocka_unit_test(the_peak_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
