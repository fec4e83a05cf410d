/*
 * test_limit.c: what slabyard/limit.h promises for the process: what counts, the hard limit and the
 * room that is made before it refuses, when callbacks are called, and the reasons of refusals.
 */
#include <errno.h>
#include <pthread.h>
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
#include "chunk/quota.h"
#include "magazine/client.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

enum { MIB = 1 << 20, UNIT = SY_UNIT_BYTES, MANY = 20000 };

static sy_cache *make(const char *name, size_t size) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = name, .size = size});
    assert_non_null(cache);
    return cache;
}

static void set_hard(size_t hard) { assert_int_equal(sy_set_limit(&(sy_limit){.hard = hard}), 0); }

/* Ends the limit of an earlier test, and releases the memory that it left. */
static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    must(sy_set_limit(NULL) == 0);
    sy_trim();
    return 0;
}

static size_t counted(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    must(sy_limit_used() == stats.slabs + stats.spans);
    return sy_limit_used();
}

static uint64_t limits_hit(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    return stats.limits_hit;
}

static void refused(const void *object, sy_refusal reason) {
    assert_null(object);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_last_refusal(), reason);
}

/* ---- what counts ---- */

static void slabs_and_spans_count(void **state) {
    (void)state;
    size_t before = counted();
    sy_cache *cache = make("order", 64);
    void *object = sy_cache_alloc(cache);
    assert_int_equal(counted(), before + UNIT);
    void *span = sy_malloc(3 * UNIT - 1), *large = sy_malloc(9 * MIB);
    assert_int_equal(counted(), before + 4 * UNIT + 9 * MIB);
    sy_free(span);
    sy_free(large);
    sy_cache_free(cache, object);
    assert_int_equal(counted(), before + UNIT); /* the slab is empty, but still there */
    sy_cache_trim(cache);
    assert_int_equal(counted(), before);
    sy_cache_destroy(cache);
}

static void a_span_counts_as_it_grows_and_shrinks(void **state) {
    (void)state;
    size_t before = counted();
    char *span = sy_malloc(3 * UNIT);
    static const size_t sizes[] = {5 * UNIT, 4 * UNIT, 6 * MIB, 12 * MIB, 5 * MIB, 3 * UNIT};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        span = sy_realloc(span, sizes[i]);
        assert_non_null(span);
        assert_int_equal(counted(), before + sy_usable_size(span));
    }
    sy_free(span);
    assert_int_equal(counted(), before);
}

static void memory_of_the_program_does_not_count(void **state) {
    (void)state;
    static char region[9 * MIB];
    size_t before = sy_limit_used();
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.start = region, .bytes = sizeof region});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .memory = memory});
    void *object = sy_cache_alloc(cache);
    assert_non_null(object);
    assert_int_equal(sy_limit_used(), before);
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
    assert_int_equal(sy_limit_used(), before);
    assert_int_equal(sy_memory_destroy(memory), 0);
}

static void what_could_not_be_taken_does_not_count(void **state) {
    (void)state;
    size_t before = counted();
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    refused(sy_malloc(200 * MIB), SY_REFUSAL_SYSTEM);
    sy_fake_reset();
    refused(sy_malloc(SIZE_MAX / 2), SY_REFUSAL_SYSTEM);
    refused(sy_malloc(SIZE_MAX), SY_REFUSAL_SYSTEM);
    assert_int_equal(counted(), before);
}

/* ---- the hard limit ---- */

static void never_more_than_the_hard_limit_is_taken(void **state) {
    (void)state;
    size_t hard = sy_limit_used() + 10 * UNIT, taken = 0;
    void *spans[20];
    uint64_t hits = limits_hit();
    set_hard(hard);
    while ((spans[taken] = sy_malloc(3 * UNIT)) != NULL) taken++;
    assert_int_equal(taken, 3);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(limits_hit(), hits + 1);
    assert_true(sy_limit_used() <= hard);
    spans[3] = sy_malloc(40); /* there is room for a slab of one unit */
    assert_non_null(spans[3]);
    for (size_t i = 0; i <= taken; i++) sy_free(spans[i]);
    spans[0] = sy_malloc(9 * UNIT);
    assert_non_null(spans[0]);
    sy_free(spans[0]);
}

static void a_cache_is_refused_slabs(void **state) {
    (void)state;
    sy_cache *cache = make("order", 64);
    sy_cache_stats stats;
    size_t got = 0;
    void **objects = calloc(MANY, sizeof *objects);
    set_hard(sy_limit_used() + 3 * UNIT);
    while (got < MANY && (objects[got] = sy_cache_alloc(cache)) != NULL) got++;
    assert_int_equal(got, 3 * UNIT / 64);
    refused(NULL, SY_REFUSAL_PROCESS_LIMIT);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.limits_hit, 1);
    assert_int_equal(stats.slabs, 3);
    sy_cache_free_batch(cache, objects, got);
    assert_int_equal(sy_cache_verify(cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    free(objects);
}

static void a_limit_below_what_is_used_takes_nothing_away(void **state) {
    (void)state;
    char *span = sy_malloc(4 * UNIT);
    memset(span, 7, 4 * UNIT);
    set_hard(1);
    refused(sy_malloc(4 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(span[4 * UNIT - 1], 7);
    sy_free(span);
    refused(sy_malloc(4 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
    set_hard(0);
    sy_free(sy_malloc(4 * UNIT));
}

static void growing_in_place_is_refused_too(void **state) {
    (void)state;
    char *span = sy_malloc(3 * UNIT);
    span[0] = 7;
    set_hard(sy_limit_used() + UNIT);
    errno = 0;
    refused(sy_realloc(span, 9 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(span[0], 7);
    assert_int_equal(sy_usable_size(span), 3 * UNIT);
    assert_ptr_equal(sy_realloc(span, 4 * UNIT), span);
    sy_free(span);
}

/* A span of 6 MiB is kept. If the limit leaves 5 MiB, the span is cut to serve 5 MiB. */
static void what_was_kept_for_reuse_is_cut(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_free(sy_malloc(6 * MIB));
    size_t hard = sy_limit_used() + 5 * MIB;
    set_hard(hard);
    void *span = sy_malloc(5 * MIB);
    assert_non_null(span);
    assert_int_equal(sy_limit_used(), hard);
    assert_int_equal(sy_usable_size(span), 5 * MIB);
    sy_free(span);
}

/* ---- making room ---- */

/* Fills `slabs` slabs with objects, and frees all of them. */
static void use_and_free(sy_cache *cache, size_t slabs) {
    size_t count = slabs * UNIT / 64;
    void **objects = calloc(count, sizeof *objects);
    must(sy_cache_alloc_batch(cache, objects, count) == count);
    sy_cache_free_batch(cache, objects, count);
    free(objects);
}

static void what_waits_makes_room_for_others(void **state) {
    (void)state;
    sy_cache *orders = make("order", 64), *trades = make("trade", 1000);
    use_and_free(orders, 3);
    assert_true(counted() > 0);
    set_hard(sy_limit_used());
    void *trade = sy_cache_alloc(trades);
    assert_non_null(trade);
    sy_cache_free(trades, trade);
    sy_cache_destroy(orders);
    sy_cache_destroy(trades);
}

static void *use_in_thread(void *cache) {
    use_and_free(cache, 3);
    return NULL;
}

static void what_ended_threads_left_does_too(void **state) {
    (void)state;
    sy_cache *orders = make("order", 64);
    in_thread(use_in_thread, orders);
    set_hard(sy_limit_used());
    void *span = sy_malloc(3 * UNIT);
    assert_non_null(span);
    sy_free(span);
    sy_cache_destroy(orders);
}

/* All objects of a slab, which are freed after the limit was reached and requests were refused.
 * Each way to free them makes room at once, though not all caches are searched at each refusal. */
typedef enum free_way {
    HERE,
    INTO_QUARANTINE,
    IN_A_THREAD_THAT_ENDS,
    IN_ONE_THAT_IDLES,
    IN_ONE_THAT_FLUSHES
} free_way;

static struct waiting {
    sy_cache *cache, *other;
    void *objects[8];
    free_way way;
    pthread_barrier_t barrier;
} waiting;

static void free_all(void) {
    for (int i = 0; i < 8; i++) sy_cache_free(waiting.cache, waiting.objects[i]);
}

static void *free_in_thread(void *unused) {
    free_all();
    if (waiting.way == IN_ONE_THAT_IDLES) sy_thread_idle();
    if (waiting.way == IN_ONE_THAT_FLUSHES) sy_thread_flush();
    pthread_barrier_wait(&waiting.barrier);
    if (waiting.way != IN_A_THREAD_THAT_ENDS) pthread_barrier_wait(&waiting.barrier);
    return unused;
}

static void reach_the_limit(void) {
    unsigned flags = waiting.way == INTO_QUARANTINE ? SY_QUARANTINE : 0;
    waiting.cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = UNIT / 2, .flags = flags});
    assert_non_null(waiting.cache);
    waiting.other = make("trade", 1000);
    for (int i = 0; i < 8; i++) assert_non_null(waiting.objects[i] = sy_cache_alloc(waiting.cache));
    assert_int_equal(sy_cache_slab_bytes(waiting.cache), 4 * UNIT);
    set_hard(sy_limit_used());
    for (int i = 0; i < 4; i++) {
        refused(sy_malloc(3 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
        refused(sy_cache_alloc(waiting.other), SY_REFUSAL_PROCESS_LIMIT);
    }
}

static void there_is_room(void) {
    void *span = sy_malloc(3 * UNIT), *trade = sy_cache_alloc(waiting.other);
    assert_non_null(span);
    assert_non_null(trade);
    sy_free(span);
    sy_cache_free(waiting.other, trade);
}

static void free_and_look(free_way way) {
    pthread_t thread;
    waiting.way = way;
    must(pthread_barrier_init(&waiting.barrier, NULL, 2) == 0);
    reach_the_limit();
    if (way < IN_A_THREAD_THAT_ENDS) {
        free_all();
    } else {
        must(pthread_create(&thread, NULL, free_in_thread, NULL) == 0);
        pthread_barrier_wait(&waiting.barrier);
        if (way == IN_A_THREAD_THAT_ENDS) must(pthread_join(thread, NULL) == 0);
    }
    there_is_room();
    if (way > IN_A_THREAD_THAT_ENDS) {
        pthread_barrier_wait(&waiting.barrier);
        must(pthread_join(thread, NULL) == 0);
    }
    pthread_barrier_destroy(&waiting.barrier);
    sy_cache_destroy(waiting.other);
    sy_cache_destroy(waiting.cache);
}

static void what_is_freed_after_a_refusal_makes_room(void **state) {
    (void)state;
    for (free_way way = HERE; way <= IN_ONE_THAT_FLUSHES; way++) {
        free_and_look(way);
        assert_int_equal(sy_set_limit(NULL), 0);
        sy_trim();
    }
}

/* A drain asks the threads for their items by a number of the client. */
static void refusals_in_a_row_drain_once(void **state) {
    (void)state;
    waiting.way = HERE;
    reach_the_limit();
    uint32_t before = atomic_load(&waiting.cache->client.generation);
    for (int i = 0; i < 100; i++) {
        refused(sy_malloc(3 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
        refused(sy_cache_alloc(waiting.other), SY_REFUSAL_PROCESS_LIMIT);
    }
    assert_int_equal(atomic_load(&waiting.cache->client.generation), before);
    free_all();
    there_is_room();
    sy_cache_destroy(waiting.other);
    sy_cache_destroy(waiting.cache);
}

static void a_reserve_stays(void **state) {
    (void)state;
    sy_cache *orders = make("order", 64), *trades = make("trade", 1000);
    assert_int_equal(sy_cache_reserve(orders, 5000), 0);
    size_t used = sy_limit_used();
    set_hard(used);
    refused(sy_cache_alloc(trades), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(sy_limit_used(), used);
    sy_cache_destroy(orders);
    sy_cache_destroy(trades);
}

/* ---- the callback ---- */

static struct told {
    unsigned calls;
    size_t used, soft;
    sy_cache *cache; /* whose objects the callback frees */
    void *objects[4000];
    size_t count;
    bool allocates;
    void *spans[8];
    unsigned span_count;
} told;

static void tell(void *arg, size_t used, size_t soft) {
    assert_ptr_equal(arg, &told);
    told.calls++;
    told.used = used;
    told.soft = soft;
    while (told.count) sy_cache_free(told.cache, told.objects[--told.count]);
    while (told.span_count) sy_free(told.spans[--told.span_count]);
    if (told.allocates) sy_free(sy_malloc(10 * UNIT));
    errno = ECHILD;
}

static void set_soft(size_t soft, size_t hard) {
    const sy_limit limit = {.hard = hard, .soft = soft, .callback = tell, .arg = &told};
    assert_int_equal(sy_set_limit(&limit), 0);
}

static void reaching_the_mark_is_told_once(void **state) {
    (void)state;
    told = (struct told){0};
    size_t before = sy_limit_used(), soft = before + 8 * UNIT;
    void *spans[8];
    set_soft(soft, 0);
    spans[0] = sy_malloc(7 * UNIT);
    assert_int_equal(told.calls, 0);
    errno = 77;
    spans[1] = sy_malloc(3 * UNIT);
    assert_int_equal(errno, 77);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.used, before + 10 * UNIT);
    assert_int_equal(told.soft, soft);
    spans[2] = sy_malloc(3 * UNIT);
    assert_int_equal(told.calls, 1);
    for (int i = 0; i < 3; i++) sy_free(spans[i]);
}

/* The soft limit is 64 units. An eighth less is 56 units. */
static void it_is_told_again_after_falling_an_eighth_below(void **state) {
    (void)state;
    told = (struct told){0};
    void *most = NULL, *rest = NULL;
    size_t before = sy_limit_used();
    assert_true(before < 4 * UNIT);
    set_soft(64 * UNIT, 0);
    most = sy_malloc(56 * UNIT - before);
    rest = sy_malloc(8 * UNIT);
    assert_int_equal(told.calls, 1);
    sy_free(rest); /* to 56 units, not below */
    rest = sy_malloc(8 * UNIT);
    assert_int_equal(told.calls, 1);
    sy_free(most);
    sy_free(rest);
    most = sy_malloc(64 * UNIT);
    assert_int_equal(told.calls, 2);
    sy_free(most);
}

static void a_mark_already_reached_is_told_by_the_next(void **state) {
    (void)state;
    told = (struct told){0};
    void *span = sy_malloc(9 * UNIT);
    set_soft(8 * UNIT, 0);
    assert_int_equal(told.calls, 0);
    void *other = sy_malloc(3 * UNIT);
    assert_int_equal(told.calls, 1);
    sy_free(other);
    sy_free(span);
}

static void fill_up(sy_cache *cache, size_t count) {
    told.cache = cache;
    while (told.count < count) {
        void *object = sy_cache_alloc(cache);
        must(object != NULL);
        told.objects[told.count++] = object;
    }
}

/* 1,000 objects of 64 bytes take one slab. The refill that needs the second slab reaches the soft
 * limit. */
static void the_callback_may_free_to_the_same_cache(void **state) {
    (void)state;
    static const unsigned kinds[] = {0, SY_CHECKED, SY_HANDLES};
    for (size_t i = 0; i < 3; i++) {
        told = (struct told){0};
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .flags = kinds[i]});
        fill_up(cache, 1000);
        set_soft(sy_limit_used() + UNIT, 0);
        void *objects[40];
        for (size_t j = 0; j < 40; j++) memset(objects[j] = sy_cache_alloc(cache), (int)j, 64);
        assert_int_equal(told.calls, 1);
        assert_int_equal(sy_cache_in_use(cache), 40);
        for (size_t j = 0; j < 40; j++) assert_int_equal(*(char *)objects[j], j);
        assert_int_equal(sy_cache_verify(cache), 0);
        sy_cache_free_batch(cache, objects, 40);
        set_soft(0, 0);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static void a_batch_tells_too(void **state) {
    (void)state;
    told = (struct told){0};
    sy_cache *cache = make("order", 64);
    void *objects[3000];
    set_soft(sy_limit_used() + 2 * UNIT, 0);
    assert_int_equal(sy_cache_alloc_batch(cache, objects, 3000), 3000);
    assert_int_equal(told.calls, 1);
    sy_cache_free_batch(cache, objects, 3000);
    sy_cache_destroy(cache);
}

static void a_reserve_tells_too(void **state) {
    (void)state;
    told = (struct told){0};
    sy_cache *cache = make("order", 64);
    set_soft(sy_limit_used() + 2 * UNIT, 0);
    assert_int_equal(sy_cache_reserve(cache, 5000), 0);
    assert_int_equal(told.calls, 1);
    sy_cache_destroy(cache);
}

static void what_the_callback_allocates_does_not_call_it(void **state) {
    (void)state;
    told = (struct told){.allocates = true};
    set_soft(sy_limit_used() + 2 * UNIT, 0);
    void *span = sy_malloc(3 * UNIT);
    assert_int_equal(told.calls, 1);
    sy_free(span);
}

static void ask_for_too_much(void *arg, size_t used, size_t soft) {
    (void)arg;
    (void)used;
    (void)soft;
    must(!sy_calloc(SIZE_MAX, 2) && sy_last_refusal() == SY_REFUSAL_SYSTEM);
}

static void what_the_callback_is_refused_is_its_own(void **state) {
    (void)state;
    const sy_limit limit = {.hard = sy_limit_used() + UNIT, .callback = ask_for_too_much};
    assert_int_equal(sy_set_limit(&limit), 0);
    refused(sy_malloc(3 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
}

static void what_the_callback_is_refused_at_the_mark_is_its_own(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .limit = 1});
    void *only = sy_cache_alloc(cache);
    assert_non_null(only);
    refused(sy_cache_alloc(cache), SY_REFUSAL_CACHE_LIMIT);
    const sy_limit limit = {.soft = sy_limit_used() + UNIT, .callback = ask_for_too_much};
    assert_int_equal(sy_set_limit(&limit), 0);
    void *span = sy_malloc(3 * UNIT);
    assert_non_null(span);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CACHE_LIMIT);
    sy_free(span);
    sy_cache_free(cache, only);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void before_it_refuses_the_callback_is_asked(void **state) {
    (void)state;
    told = (struct told){0};
    for (; told.span_count < 3; told.span_count++)
        told.spans[told.span_count] = sy_malloc(3 * UNIT);
    size_t hard = sy_limit_used();
    set_soft(0, hard);
    void *span = sy_malloc(9 * UNIT);
    assert_non_null(span);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.used, hard);
    assert_int_equal(told.soft, 0);
    errno = 0;
    refused(sy_malloc(3 * UNIT), SY_REFUSAL_PROCESS_LIMIT); /* the callback had nothing to free */
    assert_int_equal(told.calls, 2);
    sy_free(span);
}

static void what_the_callback_frees_serves_other_caches(void **state) {
    (void)state;
    told = (struct told){0};
    sy_cache *orders = make("order", 64), *trades = make("trade", 1000);
    fill_up(orders, 2000);
    set_soft(0, sy_limit_used());
    void *trade = sy_cache_alloc(trades);
    assert_non_null(trade);
    assert_int_equal(told.calls, 1);
    sy_cache_free(trades, trade);
    assert_int_equal(sy_cache_destroy(orders), 0);
    assert_int_equal(sy_cache_destroy(trades), 0);
}

static void growing_asks_it_too(void **state) {
    (void)state;
    told = (struct told){0};
    char *span = sy_malloc(3 * UNIT);
    told.spans[told.span_count++] = sy_malloc(3 * UNIT);
    set_soft(0, sy_limit_used());
    assert_ptr_equal(sy_realloc(span, 5 * UNIT), span);
    assert_int_equal(told.calls, 1);
    sy_free(span);
}

/* ---- constructors ---- */

static struct building {
    sy_cache *parts;
    unsigned calls, told_within, fails;
} building;

static int construct_of_parts(void *object, void *arg) {
    (void)object;
    (void)arg;
    unsigned before = told.calls;
    building.calls++;
    void *span = sy_malloc(3 * UNIT);
    building.told_within += told.calls - before;
    sy_free(span);
    if (building.fails) errno = EDOM;
    return building.fails ? -1 : 0;
}

static void a_constructor_is_not_interrupted(void **state) {
    (void)state;
    told = (struct told){0};
    building = (struct building){0};
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.size = 64, .construct = construct_of_parts});
    set_soft(sy_limit_used() + 4 * UNIT, 0);
    void *object = sy_cache_alloc(cache);
    assert_true(building.calls > 0);
    assert_int_equal(building.told_within, 0);
    assert_int_equal(told.calls, 1);
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}

/* ---- reasons ---- */

static void the_reason_of_each_refusal(void **state) {
    (void)state;
    sy_cache *two =
        sy_cache_create(&(sy_cache_config){.size = 64, .limit = 2, .flags = SY_LIMIT_EXACT});
    void *objects[3];
    assert_int_equal(sy_cache_alloc_batch(two, objects, 3), 2);
    refused(NULL, SY_REFUSAL_CACHE_LIMIT);
    sy_cache_stats stats;
    sy_cache_get_stats(two, &stats);
    assert_int_equal(stats.limits_hit, 1);

    building = (struct building){.fails = 1};
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.size = 64, .construct = construct_of_parts});
    errno = 0;
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, EDOM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CONSTRUCTOR);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.limits_hit, 0);

    assert_null(sy_cache_zalloc(cache)); /* EINVAL is no refusal: the reason stays */
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CONSTRUCTOR);
    refused(sy_calloc(SIZE_MAX, 2), SY_REFUSAL_SYSTEM);
    sy_cache_free_batch(two, objects, 2);
    void *object = sy_cache_alloc(two);
    assert_non_null(object); /* an allocation that succeeds leaves the reason */
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_SYSTEM);
    sy_cache_free(two, object);
    sy_cache_destroy(two);
    sy_cache_destroy(cache);
}

static void *first_refusals(void *arg) {
    (void)arg;
    must(sy_last_refusal() == SY_REFUSAL_NONE);
    must(!sy_malloc(SIZE_MAX) && sy_last_refusal() == SY_REFUSAL_SYSTEM);
    return NULL;
}

static int construct_none(void *object, void *arg) {
    (void)object;
    (void)arg;
    errno = EDOM;
    return -1;
}

static void of_two_tries_the_second_is_told(void **state) {
    (void)state;
    sy_cache *orders = make("order", 64);
    sy_cache *none = sy_cache_create(&(sy_cache_config){.size = 64, .construct = construct_none});
    use_and_free(orders, 3);
    set_hard(sy_limit_used());
    errno = 0;
    assert_null(sy_cache_alloc(none));
    assert_int_equal(errno, EDOM);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_CONSTRUCTOR);
    sy_cache_destroy(orders);
    sy_cache_destroy(none);
}

static void each_thread_has_its_own(void **state) {
    (void)state;
    void *span = sy_malloc(3 * UNIT);
    set_hard(1);
    assert_null(sy_malloc(3 * UNIT));
    in_thread(first_refusals, NULL);
    assert_int_equal(sy_last_refusal(), SY_REFUSAL_PROCESS_LIMIT);
    sy_free(span);
}

static void each_reason_has_a_text(void **state) {
    (void)state;
    for (int i = SY_REFUSAL_NONE; i <= SY_REFUSAL_CACHES + 1; i++)
        for (int j = SY_REFUSAL_NONE; j < i; j++)
            assert_string_not_equal(sy_refusal_text((sy_refusal)i), sy_refusal_text((sy_refusal)j));
}

/* ---- limits that make no sense, and limits of the system ---- */

static void what_cannot_be_set_changes_nothing(void **state) {
    (void)state;
    sy_limit wrong[] = {{.hard = 100, .soft = 101, .callback = tell}, {.soft = 100}, {.hard = 100}};
    wrong[2].reserved[3] = 1;
    set_hard(1);
    for (size_t i = 0; i < 3; i++) {
        errno = 0;
        assert_int_equal(sy_set_limit(&wrong[i]), -1);
        assert_int_equal(errno, EINVAL);
    }
    refused(sy_malloc(3 * UNIT), SY_REFUSAL_PROCESS_LIMIT);
    assert_int_equal(sy_set_limit(NULL), 0);
    sy_free(sy_malloc(3 * UNIT));
}

static unsigned ends;

static int begin_object(void *object, void *arg) {
    (void)object, (void)arg;
    return 0;
}

static void end_object(void *object, void *arg) {
    (void)object, (void)arg;
    ends++;
}

/* The thread may hold a lock that the destructor needs. */
static void where_the_system_refuses_no_destructor_is_called(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.size = 1000, .construct = begin_object, .destruct = end_object});
    assert_non_null(cache);
    sy_cache_free(cache, sy_cache_alloc(cache));
    ends = 0;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    refused(sy_malloc(200 * MIB), SY_REFUSAL_SYSTEM);
    sy_fake_reset();
    assert_int_equal(ends, 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_not_equal(ends, 0);
}

static void what_the_system_grants_is_shown(void **state) {
    needs(SY_OS_LIMITS);
    (void)state;
    sy_stats stats;
    sy_fake_set_memory_limit(300 * MIB);
    sy_fake_set_cpu_count(7);
    sy_get_stats(&stats);
    assert_int_equal(stats.memory_limit, 300 * MIB);
    assert_int_equal(stats.cpus, 7);
    sy_fake_set_memory_limit(SIZE_MAX);
    sy_get_stats(&stats);
    assert_int_equal(stats.memory_limit, 0);
}

static void set_in_a_fresh_process(void *arg) {
    (void)arg;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    must(sy_set_limit(&(sy_limit){.hard = UNIT}) == -1 && errno == ENOMEM);
    must(!sy_malloc(100) && errno == ENOMEM && sy_last_refusal() == SY_REFUSAL_SYSTEM);
    must(!sy_malloc(MIB) && errno == ENOMEM && sy_last_refusal() == SY_REFUSAL_SYSTEM);
    sy_fake_reset();
    must(sy_set_limit(&(sy_limit){.hard = UNIT}) == 0);
    must(sy_malloc(100) != NULL && !sy_malloc(40000)); /* no class of a mixed unit */
    must(sy_last_refusal() == SY_REFUSAL_PROCESS_LIMIT);
}

static void the_first_call_may_be_this(void **state) {
    (void)state;
    assert_int_equal(in_child(set_in_a_fresh_process, NULL), 0);
}

/* ---- fork ---- */

/* If a fork interrupts the release of a slab, the child's count lacks the slab. */
static void uncharge_in_child(void *arg) {
    sy_quota parent = {.hard = SIZE_MAX, .soft = SIZE_MAX};
    sy_quota quota = {.hard = UNIT, .soft = SIZE_MAX, .parent = &parent};
    (void)arg;
    must(sy_quota_charge(&quota, UNIT) == NULL);
    quota.found = UNIT / 2;
    sy_quota_recount(&quota);
    sy_quota_uncharge(&quota, UNIT);
    must(atomic_load(&quota.used) == 0 && atomic_load(&parent.used) == 0);
    must(sy_quota_charge(&quota, UNIT) == NULL);
}

static void a_count_never_falls_below_zero(void **state) {
    (void)state;
    assert_int_equal(in_child(uncharge_in_child, NULL), 0);
}

static void count_in_child(void *arg) {
    size_t used = *(size_t *)arg;
    must(counted() == used);
    void *span = sy_malloc(3 * UNIT);
    must(counted() == used + 3 * UNIT);
    sy_free(span);
    set_hard(used);
    must(!sy_malloc(3 * UNIT) && sy_last_refusal() == SY_REFUSAL_PROCESS_LIMIT);
}

static void a_child_counts_on(void **state) {
    (void)state;
    sy_cache *cache = make("order", 64);
    void *object = sy_cache_alloc(cache), *span = sy_malloc(9 * MIB);
    size_t used = counted();
    assert_int_equal(in_child(count_in_child, &used), 0);
    assert_int_equal(counted(), used);
    sy_free(span);
    sy_cache_free(cache, object);
    sy_cache_destroy(cache);
}

#define limit_test(test) cmocka_unit_test_setup(test, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_call_may_be_this),
        limit_test(slabs_and_spans_count),
        limit_test(a_span_counts_as_it_grows_and_shrinks),
        limit_test(memory_of_the_program_does_not_count),
        limit_test(what_could_not_be_taken_does_not_count),
        limit_test(never_more_than_the_hard_limit_is_taken),
        limit_test(a_cache_is_refused_slabs),
        limit_test(a_limit_below_what_is_used_takes_nothing_away),
        limit_test(growing_in_place_is_refused_too),
        limit_test(what_was_kept_for_reuse_is_cut),
        limit_test(what_waits_makes_room_for_others),
        limit_test(what_ended_threads_left_does_too),
        limit_test(what_is_freed_after_a_refusal_makes_room),
        limit_test(refusals_in_a_row_drain_once),
        limit_test(a_reserve_stays),
        limit_test(reaching_the_mark_is_told_once),
        limit_test(it_is_told_again_after_falling_an_eighth_below),
        limit_test(a_mark_already_reached_is_told_by_the_next),
        limit_test(the_callback_may_free_to_the_same_cache),
        limit_test(a_batch_tells_too),
        limit_test(a_reserve_tells_too),
        limit_test(what_the_callback_allocates_does_not_call_it),
        limit_test(what_the_callback_is_refused_is_its_own),
        limit_test(before_it_refuses_the_callback_is_asked),
        limit_test(what_the_callback_frees_serves_other_caches),
        limit_test(growing_asks_it_too),
        limit_test(a_constructor_is_not_interrupted),
        limit_test(the_reason_of_each_refusal),
        limit_test(of_two_tries_the_second_is_told),
        limit_test(each_thread_has_its_own),
        limit_test(each_reason_has_a_text),
        limit_test(what_cannot_be_set_changes_nothing),
        limit_test(where_the_system_refuses_no_destructor_is_called),
        limit_test(what_the_system_grants_is_shown),
        limit_test(a_child_counts_on),
        cmocka_unit_test(a_count_never_falls_below_zero),
        cmocka_unit_test(what_the_callback_is_refused_at_the_mark_is_its_own),
    };
    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
