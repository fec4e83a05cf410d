/*
 * test_trim_some.c: sy_trim_some stops after so many bytes or so much time, and the next call goes
 * on from there.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"
#include "reclaim/reclaim.h"
#include "support/ages.h"
#include "support/page_size.h"
#include "support/services.h"

enum { STEP_MOST = 8 << 20 }; /* bytes of one step at most: the end of a long span */

static const uint64_t EVER = UINT64_MAX;

/* Memory for each stage of a trim: free units, holes, empty slabs, magazines and kept spans. */
static sy_cache *with_much_to_give(void) {
    sy_cache *cache = make(64, 0);
    sy_cache *gone = make(1000, 0);
    for (size_t i = 0; i < COUNT; i++) memset(objects[i] = sy_cache_alloc(gone), 1, 1000);
    give(gone, 0, COUNT);
    must(sy_cache_destroy(gone) == 0);
    take(cache, 64, 0, COUNT);
    give(cache, 1, COUNT);
    unsigned char *span = sy_calloc(20, 1 << 20); /* which takes no memory of free units */
    memset(span, 1, 20 << 20);
    sy_free(span);
    return cache;
}

static void give_up(sy_cache *cache) {
    is_whole(64, 0);
    sound(cache);
    assert_int_equal(sy_cache_in_use(cache), 1);
    give(cache, 0, 1);
    end(cache);
}

static void nothing_asked_is_nothing_given(void **state) {
    (void)state;
    sy_cache *cache = with_much_to_give();
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    assert_int_equal(sy_trim_some(0, EVER), 0);
    assert_int_equal(sy_trim_some(SIZE_MAX, 0), 0);
    discards_nothing(before);
    give_up(cache);
}

static void it_stops_at_the_bytes_asked_for(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    static const size_t sizes[] = {1, 4096, 100 << 10, 1 << 20, 3 << 20, 9 << 20};
    for (int s = 0; s < 6; s++) {
        sy_cache *cache = with_much_to_give();
        uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
        size_t bytes = sy_trim_some(sizes[s], EVER);
        assert_in_range(bytes, sizes[s], sizes[s] + STEP_MOST);
        assert_true(sy_fake_bytes(SY_FAKE_DISCARD) - before >= bytes / 2);
        give_up(cache);
    }
}

static void repeated_calls_reach_everything(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = with_much_to_give();
    size_t bytes = 0, some, calls = 0;
    while ((some = sy_trim_some(64 << 10, EVER)) >= 64 << 10) bytes += some, calls++;
    assert_true(calls >= 10);
    assert_true(bytes + some >= (size_t)(20 << 20) + COUNT * 1000);
    sy_cache_stats stats = stats_of(cache);
    assert_int_equal(stats.in_depot + stats.in_loaded, 0);
    assert_int_equal(stats.slabs, 1);
    assert_int_equal(sy_chunk_count().large_kept, 0);
    assert_int_equal(sy_trim(), 0);
    give_up(cache);
}

/* A call after the end of a trim counts its own bytes only. */
static void each_call_counts_for_itself(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    for (int i = 0; i < 3; i++) {
        sy_cache *cache = with_much_to_give();
        assert_in_range(sy_trim_some(1, EVER), 1, 1 + STEP_MOST);
        assert_in_range(sy_trim_some(SIZE_MAX, EVER), 1, 2 * ((20 << 20) + COUNT * 1064));
        assert_int_equal(sy_trim_some(SIZE_MAX, EVER), 0);
        assert_int_equal(sy_trim_some(1, EVER), 0);
        give_up(cache);
    }
}

/* If a call gives back fewer bytes than were asked for, there is no more to give back, wherever the
 * call before stopped. */
static void fewer_bytes_say_that_there_is_no_more(void **state) {
    (void)state;
    for (size_t first = 0; first < 12; first++) {
        sy_cache *cache = with_much_to_give();
        sy_trim_some(first << 20, EVER);
        take(cache, 64, 1, COUNT);
        give(cache, 1, COUNT);
        sy_trim_some(SIZE_MAX, EVER);
        assert_int_equal(sy_trim(), 0);
        assert_int_equal(stats_of(cache).in_depot, 0);
        give_up(cache);
    }
}

/* Also what was freed meanwhile in a cache that the pass had left behind when it stopped. */
static void what_lies_before_the_last_stop_is_reached(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *early = make(64, 0), *late = make(64, 0);
    static void *others[COUNT];
    take(early, 64, 0, COUNT);
    for (size_t i = 0; i < COUNT; i++) others[i] = sy_cache_alloc(late);
    while (sy_trim_some(SIZE_MAX, EVER) > 0) {}
    for (size_t i = 0; i < COUNT; i++) sy_cache_free(late, others[i]);
    sy_thread_flush();
    size_t mapped = stats_of(late).mapped;
    while (stats_of(late).mapped == mapped) assert_true(sy_trim_some(1, EVER) > 0);
    give(early, 0, COUNT);
    sy_thread_flush();
    sy_trim_some(SIZE_MAX, EVER);
    assert_int_equal(stats_of(early).mapped, 0);
    end(early);
    end(late);
}

static void what_was_reserved_goes_too(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(64, 0);
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    assert_true(sy_trim_some(SIZE_MAX, EVER) >= COUNT * 64);
    assert_int_equal(stats_of(cache).mapped, 0);
    end(cache);
}

/* As the maintenance thread does it for `slabyard trim`. */
static void a_trim_asked_from_outside_ends_no_reserve(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *reserved = make(64, 0);
    sy_cache *cache = with_much_to_give();
    assert_int_equal(sy_cache_reserve(reserved, COUNT), 0);
    size_t mapped = stats_of(reserved).mapped;
    assert_int_equal(sy_reclaim_some(0), 0);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    assert_in_range(sy_reclaim_some(1 << 20), 1 << 20, (1 << 20) + STEP_MOST);
    assert_true(sy_fake_bytes(SY_FAKE_DISCARD) > before);
    sy_reclaim_some(SIZE_MAX);
    assert_int_equal(sy_reclaim_some(1), 0);
    assert_int_equal(stats_of(reserved).mapped, mapped);
    end(reserved);
    give_up(cache);
}

/* ---- time ---- */

static size_t destructed;

static int construct(void *object, void *arg) {
    (void)object;
    (void)arg;
    return 0;
}

/* Takes a microsecond of the fake's clock. */
static void destruct_slowly(void *object, void *arg) {
    (void)object;
    (void)arg;
    destructed++;
    sy_fake_advance_clock(1000);
}

static sy_cache *with_slow_destructors(void) {
    sy_cache *cache = make_with(
        (sy_cache_config){.size = 200, .construct = construct, .destruct = destruct_slowly});
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    destructed = 0;
    return cache;
}

/* In a nanosecond a call does all steps that take no time, and one step that takes time. */
static void it_stops_when_the_time_is_over(void **state) {
    (void)state;
    sy_cache *cache = with_slow_destructors();
    size_t calls = 0;
    while (destructed == 0) sy_trim_some(SIZE_MAX, 1);
    assert_true(destructed <= 16 * stats_of(cache).slots_per_slab);
    for (size_t before = 0; before != destructed; calls++) {
        before = destructed;
        sy_trim_some(SIZE_MAX, 1);
        assert_true(destructed - before <= 16 * stats_of(cache).slots_per_slab);
    }
    assert_true(calls >= 3);
    while (sy_trim_some(SIZE_MAX, 1) > 0) {}
    assert_int_equal(stats_of(cache).slots, 0);
    end(cache);
}

static void a_longer_budget_gets_further(void **state) {
    (void)state;
    sy_cache *cache = with_slow_destructors();
    sy_trim_some(SIZE_MAX, 1000000);
    assert_in_range(destructed, 1000, 1000 + 16 * stats_of(cache).slots_per_slab);
    end(cache);
}

/* ---- with other threads ---- */

static _Atomic bool over;

static void *trim_on(void *seed) {
    uint64_t random = (uintptr_t)seed;
    while (!over) sy_trim_some(next_random(&random) % (1 << 20), next_random(&random) % 100000);
    return NULL;
}

static void calls_at_once_disturb_nobody(void **state) {
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    sy_fake_reset(); /* the real clock, so time passes */
    sy_cache *cache = make(64, SY_CHECKED);
    over = false;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trim_on, (void *)(i + 1)), 0);
    for (int round = 0; round < 10; round++) {
        take(cache, 64, 0, COUNT);
        for (size_t i = 0; i < COUNT; i++) is_whole(64, i);
        give(cache, 0, COUNT);
    }
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    sy_trim_some(SIZE_MAX, EVER);
    assert_int_equal(stats_of(cache).mapped, 0);
    end(cache);
}

static void *trim_all(void *arg) {
    sy_trim_some(SIZE_MAX, EVER);
    return arg;
}

static pthread_barrier_t barrier;
static _Thread_local bool meets;

static void meet_once(void *object, void *arg) {
    (void)object;
    (void)arg;
    if (meets) return;
    meets = true;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

/* A call without time only begins a trim, or goes on with the trim of the call before.
 */
static bool goes_on(void) {
    sy_trim_some(SIZE_MAX, 0);
    uint64_t trims = sy_memory_main.trims;
    sy_trim_some(SIZE_MAX, 0);
    return sy_memory_main.trims == trims;
}

static void trim_without_the_other(void *arg) {
    (void)arg;
    meets = true;
    must(goes_on());
    sy_cache *cache = with_much_to_give();
    while (sy_trim_some(4096, EVER) >= 4096) {}
    must(stats_of(cache).in_depot == 0);
    must(stats_of(cache).discarded > 0);
    must(sy_chunk_count().large_kept == 0);
}

static void the_child_of_a_fork_can_go_on(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    needs_small_pages();
    pthread_t thread;
    sy_cache *cache =
        make_with((sy_cache_config){.size = 200, .construct = construct, .destruct = meet_once});
    pthread_barrier_init(&barrier, NULL, 2);
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    meets = true;
    give(cache, 0, COUNT);
    assert_int_equal(pthread_create(&thread, NULL, trim_all, NULL), 0);
    pthread_barrier_wait(&barrier);
    assert_false(goes_on()); /* another thread does the trim */
    int status = in_child(trim_without_the_other, NULL);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(status, 0);
    end(cache);
}

static void be_first(void *arg) {
    (void)arg;
    must(sy_trim_some(SIZE_MAX, EVER) == 0);
    must(sy_trim() == 0);
    sy_set_decay(1);
    sy_free(sy_malloc(100));
    must(sy_trim_some(SIZE_MAX, EVER) > 0);
}

/* errno is unchanged, whatever fails. */
static void failures_lose_nothing(void **state) {
    (void)state;
    sy_cache *cache = with_much_to_give();
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = KEPT_ERRNO;
    sy_trim_some(SIZE_MAX, EVER);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_true(sy_fake_failures(SY_FAKE_ANY) > 0);
    sound(cache);
    sy_fake_succeed(SY_FAKE_ANY);
    for (uint64_t nth = 1, failed = 1; failed; nth++) {
        take(cache, 64, 1, COUNT);
        give(cache, 1, COUNT);
        uint64_t before = sy_fake_failures(SY_FAKE_ANY);
        sy_fake_fail_nth(SY_FAKE_ANY, nth);
        while (sy_trim_some(100 << 10, EVER) >= 100 << 10) {}
        failed = sy_fake_failures(SY_FAKE_ANY) - before;
        sy_fake_succeed(SY_FAKE_ANY);
        sound(cache);
        is_whole(64, 0);
    }
    sy_trim_some(SIZE_MAX, EVER);
    assert_int_equal(sy_trim(), 0);
    give_up(cache);
}

int main(void) {
    if (in_child(be_first, NULL) != 0) return 1; /* the first call into the library */
    const struct CMUnitTest tests[] = {
        TEST(nothing_asked_is_nothing_given),
        TEST(it_stops_at_the_bytes_asked_for),
        TEST(repeated_calls_reach_everything),
        TEST(each_call_counts_for_itself),
        TEST(fewer_bytes_say_that_there_is_no_more),
        TEST(what_lies_before_the_last_stop_is_reached),
        TEST(what_was_reserved_goes_too),
        TEST(a_trim_asked_from_outside_ends_no_reserve),
        TEST(it_stops_when_the_time_is_over),
        TEST(a_longer_budget_gets_further),
        TEST(calls_at_once_disturb_nobody),
        TEST(the_child_of_a_fork_can_go_on),
        TEST(failures_lose_nothing),
    };
    return cmocka_run_group_tests_name("trim_some", tests, NULL, NULL);
}
