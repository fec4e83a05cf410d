/*
 * test_failures.c: runs one history of calls through every function while the n-th call to the OS
 * fails, for every n, and while all calls from the n-th on fail until a phase is over. A call that
 * fails sets ENOMEM, and all that existed before it still does. Once the OS no longer fails, the
 * history runs to its end.
 *
 * Each run is a child of a process that has not used the library, since some things start once.
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

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/history.h"
#include "support/services.h"

enum { KINDS = 5, OBJECTS_MAX = 3000, HEAP_OBJECTS = 120 };

struct kind {
    size_t size, count;
    unsigned flags;
    bool constructed;
    sy_cache *cache;
    unsigned char *objects[OBJECTS_MAX];
    size_t live;
};

static struct kind kinds[KINDS] = {
    {.size = 8, .count = OBJECTS_MAX}, /* its bitmaps are in side memory */
    {.size = 96, .count = 2000, .constructed = true},
    {.size = 500, .count = 600, .flags = SY_CHECKED},
    {.size = 300000, .count = 12},
    {.size = 6 << 20, .count = 2}, /* large spans */
};

static unsigned char *heap_objects[HEAP_OBJECTS];
static size_t heap_sizes[HEAP_OBJECTS];
static size_t constructed, destructed;

static const size_t MARKED = 64; /* bytes of an object that are checked, at most, at either end */

static unsigned char mark_of(size_t i, size_t at) { return (unsigned char)(i * 31 + at + 1); }

static void fill(unsigned char *object, size_t size, size_t i) {
    size_t ends = size < MARKED ? size : MARKED;
    for (size_t at = 0; at < ends; at++) object[at] = mark_of(i, at);
    for (size_t at = size - ends; at < size; at++) object[at] = mark_of(i, at);
}

static void check(const unsigned char *object, size_t size, size_t i) {
    size_t ends = size < MARKED ? size : MARKED;
    for (size_t at = 0; at < ends; at++) must(object[at] == mark_of(i, at));
    for (size_t at = size - ends; at < size; at++) must(object[at] == mark_of(i, at));
}

static int construct(void *object, void *arg) {
    (void)object;
    (void)arg;
    constructed++;
    return 0;
}

static void destruct(void *object, void *arg) {
    (void)object;
    (void)arg;
    destructed++;
}

/* All objects are as the history says, whichever call has just failed. */
static void all_is_well(void) {
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        if (!kind->cache) continue;
        must(sy_cache_verify(kind->cache) == 0);
        must(sy_cache_in_use(kind->cache) == kind->live);
        sy_cache_stats stats;
        sy_cache_get_stats(kind->cache, &stats);
        must(stats.slots + stats.guarded ==
             stats.in_use + stats.in_depot + stats.in_loaded + stats.in_quarantine + stats.free);
        must(stats.mapped == stats.slots * stats.slot_size + stats.tail);
        must(!kind->constructed || stats.constructed - stats.destructed >= kind->live);
    }
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.mapped == stats.slabs + stats.spans + stats.units_free + stats.chunk_headers);
}

static void contents_are_whole(void) {
    for (const struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++)
            if (kind->objects[i]) check(kind->objects[i], kind->size, i);
    for (size_t i = 0; i < HEAP_OBJECTS; i++)
        if (heap_objects[i]) check(heap_objects[i], heap_sizes[i], i);
}

/* Checks that the call failed as it should. */
static void has_failed(void) {
    must(errno == ENOMEM);
    must(sy_fake_failures(SY_FAKE_ANY) > 0);
    all_is_well();
    errno = 0;
}

/* ---- phases ---- */

static void create_caches(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        sy_cache_config config = {.name = "failures", .size = kind->size, .flags = kind->flags};
        if (kind->constructed) config.construct = construct, config.destruct = destruct;
        while (!(kind->cache = sy_cache_create(&config))) {
            has_failed();
            sy_fake_succeed(SY_FAKE_ANY);
        }
    }
}

static void take(struct kind *kind, size_t i) {
    if (kind->objects[i]) return;
    kind->objects[i] = sy_cache_alloc(kind->cache);
    if (!kind->objects[i]) {
        has_failed();
        return;
    }
    kind->live++;
    fill(kind->objects[i], kind->size, i);
}

static void give(struct kind *kind, size_t i) {
    if (!kind->objects[i]) return;
    check(kind->objects[i], kind->size, i);
    errno = 77;
    sy_cache_free(kind->cache, kind->objects[i]);
    must(errno == 77);
    kind->objects[i] = NULL;
    kind->live--;
}

static void fill_caches(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) take(kind, i);
}

static void thin_out(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++)
            if (i % 600) give(kind, i);
}

static void trim_one_and_all(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) sy_cache_trim(kind->cache);
    sy_trim();
}

static void reserve_some(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        if (sy_cache_reserve(kind->cache, kind->count / 2) != 0) has_failed();
}

static void batches(void) {
    void *batch[400];
    for (struct kind *kind = kinds; kind < kinds + 3; kind++) {
        errno = 0;
        size_t got = sy_cache_alloc_batch(kind->cache, batch, 400);
        kind->live += got;
        if (got < 400) has_failed();
        sy_cache_free_batch(kind->cache, batch, got);
        kind->live -= got;
    }
}

static size_t heap_size(size_t i, size_t round) {
    static const size_t sizes[] = {1, 24, 200, 3000, 50000, 131072, 131073, 1 << 20, 5 << 20, 640};
    return sizes[(i + round * 3) % 10];
}

static void set_heap_object(size_t i, void *object, size_t size) {
    if (!object) {
        has_failed();
        return;
    }
    heap_objects[i] = object;
    heap_sizes[i] = size;
    fill(object, size, i);
}

static void take_from_the_heap(void) {
    for (size_t i = 0; i < HEAP_OBJECTS; i++) {
        size_t size = heap_size(i, 0);
        if (heap_objects[i]) continue;
        if (i % 3 == 0) set_heap_object(i, sy_malloc(size), size);
        if (i % 3 == 1) set_heap_object(i, sy_aligned_alloc((size_t)8 << i % 20, size), size);
        if (i % 3 != 2) continue;
        unsigned char *object = sy_calloc(1, size);
        for (size_t at = 0; object && at < size; at += 512) must(object[at] == 0);
        set_heap_object(i, object, size);
    }
}

static void resize_in_the_heap(void) {
    for (size_t i = 0; i < HEAP_OBJECTS; i++) {
        size_t size = heap_size(i, 1);
        size_t common = size < heap_sizes[i] ? size : heap_sizes[i];
        unsigned char *object = sy_realloc(heap_objects[i], size);
        size_t first = common < MARKED ? common : MARKED;
        for (size_t at = 0; object && at < first; at++) must(object[at] == mark_of(i, at));
        if (!object && heap_objects[i]) check(heap_objects[i], heap_sizes[i], i);
        set_heap_object(i, object, size);
    }
}

static void give_to_the_heap(void) {
    for (size_t i = 0; i < HEAP_OBJECTS; i++) {
        if (!heap_objects[i]) continue;
        check(heap_objects[i], heap_sizes[i], i);
        errno = 77;
        sy_free(heap_objects[i]);
        must(errno == 77);
        heap_objects[i] = NULL;
        heap_sizes[i] = 0;
    }
}

static void *work(void *arg) {
    for (size_t i = 1; i < 1500; i++) {
        take(&kinds[0], i % kinds[0].count);
        take(&kinds[1], i % kinds[1].count);
    }
    sy_free(sy_malloc(100));
    sy_thread_idle();
    for (size_t i = 1; i < 1500; i += 2) give(&kinds[0], i);
    return arg;
}

static void work_in_threads(void) {
    for (int i = 0; i < 3; i++) in_thread(work, NULL);
}

static void idle_and_flush(void) {
    sy_thread_flush();
    sy_thread_idle();
}

static void empty_caches(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) give(kind, i);
}

static phase *const phases[] = {
    create_caches,      fill_caches,     thin_out,           trim_one_and_all, fill_caches,
    take_from_the_heap, batches,         resize_in_the_heap, thin_out,         trim_one_and_all,
    reserve_some,       work_in_threads, idle_and_flush,     trim_one_and_all, give_to_the_heap,
    empty_caches,       trim_one_and_all};

static void end_history(void) {
    sy_fake_reset();
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        must(sy_cache_destroy(kind->cache) == 0);
    must(constructed == destructed);
    sy_trim();
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.slabs == 0 && stats.spans == 0 && stats.chunks == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0);
}

static void look(void) {
    all_is_well();
    contents_are_whole();
}

static const history whole = {
    .phases = phases,
    .count = sizeof phases / sizeof *phases,
    .look = look,
    .end = end_history,
};

static void any_one_call_may_fail(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, false, 100); /* as many calls has the history */
}

static void all_calls_may_fail_for_a_while(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, true, 100);
}

/* How many of a thousand calls fail. */
static void live_with_random_failures(void *arg) {
    sy_fake_fail_randomly(SY_FAKE_ANY, 20 + (unsigned)(*(uint64_t *)arg % 5) * 100,
                          *(uint64_t *)arg);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        errno = 0;
        phases[i]();
        all_is_well();
        contents_are_whole();
        if (i == 0) sy_fake_fail_randomly(SY_FAKE_ANY, 200, *(uint64_t *)arg);
    }
    must(sy_fake_failures(SY_FAKE_ANY) > 0);
    end_history();
}

static void calls_may_fail_at_random(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++)
        assert_int_equal(in_child(live_with_random_failures, &seed), 0);
}

/* The functions that need memory, while the system gives none. */
static void live_without(void *arg) {
    (void)arg;
    create_caches();
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    for (size_t i = 1; i < sizeof phases / sizeof *phases; i++) {
        errno = 0;
        phases[i]();
        all_is_well();
        contents_are_whole();
    }
    end_history();
}

static void nothing_can_be_had(void **state) {
    (void)state;
    assert_int_equal(in_child(live_without, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_call_may_fail),
        cmocka_unit_test(all_calls_may_fail_for_a_while),
        cmocka_unit_test(calls_may_fail_at_random),
        cmocka_unit_test(nothing_can_be_had),
    };
    return cmocka_run_group_tests_name("failures", tests, NULL, NULL);
}
