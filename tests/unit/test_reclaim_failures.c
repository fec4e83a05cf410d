/*
 * test_reclaim_failures.c: passes and sy_trim_some over caches and spans of several kinds. Their
 * history runs once for each n, with the n-th call to the system failing, and again with all calls
 * failing from the n-th on. Nothing is lost, every invariant holds, and when the system works again
 * all memory goes back.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"
#include "support/ages.h"
#include "support/history.h"
#include "support/services.h"

enum { KINDS = 5, MOST = 2500, KEPT_EACH = 190, SPANS = 4 };

static size_t constructed, destructed;

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

struct kind {
    size_t size, count;
    unsigned flags;
    bool built;
    sy_cache *cache;
    unsigned char *objects[MOST];
};

static struct kind kinds[KINDS] = {
    {.size = 64, .count = MOST},
    {.size = 96, .count = 1500, .built = true},
    {.size = 500, .count = 400, .flags = SY_CHECKED},
    {.size = 200, .count = 700, .flags = SY_HANDLES},
    {.size = 40000, .count = 20},
};

static const size_t span_sizes[SPANS] = {200 << 10, 5 << 20, 6 << 20, 17 << 20};
static unsigned char *spans[SPANS];

static unsigned char mark_of(size_t i) { return (unsigned char)(i % 251 + 1); }

/* Allocates all objects that are missing. An allocation that fails does not fail the test. */
static void take_all(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) {
            if (!kind->objects[i]) kind->objects[i] = sy_cache_alloc(kind->cache);
            if (kind->objects[i]) memset(kind->objects[i], mark_of(i), kind->size);
        }
    for (size_t i = 0; i < SPANS; i++) {
        if (!spans[i]) spans[i] = sy_malloc(span_sizes[i]);
        if (spans[i]) spans[i][0] = spans[i][span_sizes[i] - 1] = mark_of(i);
    }
}

static void give_most(void) {
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        for (size_t i = 0; i < kind->count; i++) {
            if (i % KEPT_EACH == 0 || !kind->objects[i]) continue;
            sy_cache_free(kind->cache, kind->objects[i]);
            kind->objects[i] = NULL;
        }
    for (size_t i = 1; i < SPANS; i++) {
        sy_free(spans[i]);
        spans[i] = NULL;
    }
}

static void all_is_well(void) {
    sound(driver);
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        size_t live = 0;
        sound(kind->cache);
        for (size_t i = 0; i < kind->count; i++) {
            live += kind->objects[i] != NULL;
            for (size_t at = 0; kind->objects[i] && at < kind->size; at += 13)
                must(kind->objects[i][at] == mark_of(i));
        }
        must(stats_of(kind->cache).in_use == live);
    }
    for (size_t i = 0; i < SPANS; i++) must(!spans[i] || spans[i][span_sizes[i] - 1] == mark_of(i));
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.mapped == stats.slabs + stats.spans + stats.units_free + stats.chunk_headers);
}

/* ---- the history ---- */

static void age(void) {
    for (int i = 0; i < 4; i++) {
        sy_fake_advance_clock(DECAY_NS);
        take_turns(SY_TURNS_PER_LOOK);
        end_pass();
        all_is_well();
    }
}

static void trim_some(void) {
    for (size_t bytes = 64 << 10; sy_trim_some(bytes, UINT64_MAX) >= bytes; bytes *= 2)
        all_is_well();
}

static void work_parked(void) {
    take_all();
    give_most();
    sy_thread_idle();
}

static phase *const phases[] = {take_all,  give_most, age,         take_all,
                                give_most, trim_some, work_parked, age};

static void begin_history(void) {
    sy_fake_reset();
    sy_fake_set_cpu(0);
    sy_fake_set_clock(UINT64_C(1000000000000000));
    sy_set_decay(DECAY_MS);
    driver = make(8, SY_CHECKED);
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++)
        kind->cache = make_with((sy_cache_config){.name = "failures",
                                                  .size = kind->size,
                                                  .flags = kind->flags,
                                                  .construct = kind->built ? construct : NULL,
                                                  .destruct = kind->built ? destruct : NULL});
    take_all();
}

static void end_history(void) {
    sy_fake_succeed(SY_FAKE_ANY);
    take_all();
    give_most();
    for (struct kind *kind = kinds; kind < kinds + KINDS; kind++) {
        for (size_t i = 0; i < kind->count; i++)
            if (kind->objects[i]) sy_cache_free(kind->cache, kind->objects[i]);
        must(sy_cache_destroy(kind->cache) == 0);
    }
    must(constructed == destructed);
    sy_free(spans[0]);
    must(sy_cache_destroy(driver) == 0);
    sy_trim_some(SIZE_MAX, UINT64_MAX);
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.slabs == 0 && stats.spans == 0 && stats.chunks == 0);
    sound(NULL);
}

static const history whole = {
    .phases = phases,
    .count = sizeof phases / sizeof *phases,
    .begin = begin_history,
    .look = all_is_well,
    .end = end_history,
};

static void any_one_call_may_fail(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, false, 50); /* the history has at least 50 calls */
}

static void all_calls_may_fail_for_a_while(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    history_fail_each(&whole, true, 50);
}

static void live_with_random_failures(void *arg) {
    begin_history();
    sy_fake_fail_randomly(SY_FAKE_ANY, 300, *(uint64_t *)arg);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        phases[i]();
        all_is_well();
    }
    must(sy_fake_failures(SY_FAKE_ANY) > 0);
    end_history();
}

static void calls_may_fail_at_random(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++)
        assert_int_equal(in_child(live_with_random_failures, &seed), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_call_may_fail),
        cmocka_unit_test(all_calls_may_fail_for_a_while),
        cmocka_unit_test(calls_may_fail_at_random),
    };
    return cmocka_run_group_tests_name("reclaim_failures", tests, NULL, NULL);
}
