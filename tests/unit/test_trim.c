/*
 * test_trim.c: free memory goes back to the system, and no other memory does.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "os/os.h"
#include "support/child.h"
#include "support/page_size.h"
#include "support/services.h"

enum { COUNT = 20000 };
static unsigned char *objects[COUNT];

static void sound(sy_cache *cache) {
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
}

static sy_cache *make(size_t size, unsigned flags) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = size, .flags = flags});
    must(cache != NULL);
    return cache;
}

static void take_all(sy_cache *cache, size_t size) {
    for (size_t i = 0; i < COUNT; i++)
        memset(objects[i] = sy_cache_alloc(cache), (int)(i % 251), size);
}

static bool is_resident(const void *address) {
    uintptr_t page = (uintptr_t)address & ~(sy_os_page_size() - 1);
    unsigned char state;
    must(mincore((void *)page, sy_os_page_size(), &state) == 0);
    return state & 1;
}

static void all_that_was_freed_goes_back(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 48, 64, 1000, 5000};
    for (int s = 0; s < 5; s++) {
        sy_cache *cache = make(sizes[s], 0);
        take_all(cache, sizes[s]);
        for (size_t i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
        assert_true(sy_cache_trim(cache) >= COUNT * sizes[s]);
        sy_cache_stats stats;
        sy_cache_get_stats(cache, &stats);
        assert_int_equal(stats.slabs, 0);
        assert_int_equal(stats.mapped, 0);
        assert_int_equal(sy_cache_trim(cache), 0);
        sound(cache);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

/* A few objects are live. Pages without live objects go back, and the objects keep their
 * content. */
static void pages_without_live_objects_go_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    size_t page = sy_os_page_size();
    sy_cache *cache = make(64, 0);
    take_all(cache, 64);
    uint64_t random = 13;
    size_t kept = 0;
    for (size_t i = 0; i < COUNT; i++)
        if (next_random(&random) % 200)
            sy_cache_free(cache, objects[i]), objects[i] = NULL;
        else
            kept++;
    sy_cache_stats stats;
    size_t bytes = sy_cache_trim(cache);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_use, kept);
    size_t resident = stats.mapped - stats.discarded - stats.never_used;
    assert_true(resident <= kept * page);
    assert_true(bytes + (kept + 20) * page >= COUNT * 64);
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i])
            for (int at = 0; at < 64; at++) assert_int_equal(objects[i][at], i % 251);
    sound(cache);
    assert_int_equal(sy_cache_trim(cache), 0);
    for (size_t i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void what_went_back_holds_no_memory_and_comes_back(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    size_t per_page = sy_os_page_size() / 64;
    sy_cache *cache = make(64, 0);
    take_all(cache, 64);
    unsigned char *low = objects[0];
    for (size_t i = 0; i < COUNT; i++)
        if (objects[i] < low) low = objects[i];
    for (size_t i = 1; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    assert_true(is_resident(objects[0]));
    sy_cache_trim(cache);
    assert_true(is_resident(objects[0]));
    unsigned char *freed = low + 64 * per_page * 3; /* a page of the same slab */
    assert_false(is_resident(freed));
    for (size_t i = 1; i < COUNT; i++) {
        objects[i] = sy_cache_alloc(cache);
        memset(objects[i], 1, 64);
    }
    assert_true(is_resident(freed));
    for (int at = 0; at < 64; at++) assert_int_equal(objects[0][at], 0);
    sound(cache);
    sy_cache_destroy_all(cache);
}

static pthread_barrier_t barrier;

static void *free_and_run_on(void *arg) {
    for (size_t i = 0; i < COUNT; i++) sy_cache_free(arg, objects[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 300; i++) objects[i] = sy_cache_alloc(arg); /* makes exchanges */
    for (int i = 0; i < 300; i++) sy_cache_free(arg, objects[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void running_threads_give_theirs_at_their_next_exchange(void **state) {
    (void)state;
    pthread_t thread;
    sy_cache_stats stats;
    sy_cache *cache = make(64, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    take_all(cache, 64);
    assert_int_equal(pthread_create(&thread, NULL, free_and_run_on, cache), 0);
    pthread_barrier_wait(&barrier);
    sy_cache_trim(cache);
    sy_cache_get_stats(cache, &stats);
    size_t before = stats.in_loaded;
    assert_true(before > 0); /* the thread runs, so it keeps its magazines */
    assert_int_equal(stats.in_depot, 0);
    uint64_t flushes = stats.flushes;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.flushes > flushes);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_cache_trim(cache); /* the thread is idle, so the trim takes its magazines */
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_loaded, 0);
    assert_int_equal(stats.slabs, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    sound(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void a_trim_ends_a_reserve(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(64, 0);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_reserve(cache, 50000), 0);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.mapped >= 50000 * 64);
    assert_true(sy_cache_trim(cache) >= 50000 * 64);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.mapped, 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void after_a_trim_nothing_is_reserved(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_reserve(cache, 20000), 0);
    sy_cache_trim(cache);
    for (size_t i = 0; i < 5000; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < 5000; i++) sy_cache_free(cache, objects[i]);
    sy_client_drain(&cache->client);
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.slabs, 1);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void trim_of_all_takes_every_cache_and_the_heap(void **state) {
    (void)state;
    sy_cache *caches[20];
    sy_stats before, after;
    sy_trim();
    sy_get_stats(&before);
    for (int c = 0; c < 20; c++) {
        caches[c] = make(40 + 64 * (size_t)c, 0);
        for (size_t i = 0; i < 500; i++) objects[i] = sy_cache_alloc(caches[c]);
        for (size_t i = 0; i < 500; i++) sy_cache_free(caches[c], objects[i]);
    }
    for (size_t i = 0; i < 500; i++) objects[i] = sy_malloc(i * 100);
    for (size_t i = 0; i < 500; i++) sy_free(objects[i]);
    assert_true(sy_trim() > 0);
    sy_get_stats(&after);
    assert_int_equal(after.mapped, before.mapped);
    assert_int_equal(after.slabs, before.slabs);
    for (int c = 0; c < 20; c++) assert_int_equal(sy_cache_destroy(caches[c]), 0);
}

static void a_trim_makes_nothing(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    sy_trim();
    size_t reserved = sy_fake_reserved(), threads = sy_thread_count();
    sy_stats before, after;
    sy_get_stats(&before);
    for (int i = 0; i < 10; i++) sy_trim();
    sy_get_stats(&after);
    assert_int_equal(sy_fake_reserved(), reserved);
    assert_int_equal(sy_thread_count(), threads);
    assert_int_equal(after.magazines, before.magazines);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void *in_fresh_thread(void *body) {
    ((void (*)(void **))(uintptr_t)body)(NULL);
    return NULL;
}

static void a_trim_by_a_thread_without_magazines_makes_nothing(void **state) {
    (void)state;
    in_thread(in_fresh_thread, (void *)(uintptr_t)a_trim_makes_nothing);
}

/* Every discard fails, of pages in slabs and of whole slabs. Nothing is lost, and the next trim
 * succeeds. */
static void a_trim_that_fails_loses_nothing(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    needs_small_pages();
    for (unsigned flags = 0; flags < 2; flags++) {
        sy_cache *cache = make(64, flags ? SY_CHECKED : 0);
        take_all(cache, 64);
        for (size_t i = 0; i < COUNT; i++)
            if (i % 500) sy_cache_free(cache, objects[i]);
        sy_fake_fail_from(SY_FAKE_DISCARD, 1);
        assert_int_equal(sy_cache_trim(cache), 0);
        sy_fake_reset();
        sound(cache);
        assert_int_equal(sy_cache_in_use(cache), COUNT / 500);
        for (size_t i = 0; i < COUNT; i += 500)
            for (int at = 0; at < 64; at++) assert_int_equal(objects[i][at], i % 251);
        assert_true(sy_cache_trim(cache) > COUNT * 64 / 2);
        for (size_t i = 0; i < COUNT; i += 500) sy_cache_free(cache, objects[i]);
        sound(cache);
        assert_int_equal(sy_cache_destroy(cache), 0);
    }
}

static _Atomic bool stop;

static void *keep_trimming(void *arg) {
    while (!atomic_load(&stop)) sy_cache_trim(arg);
    return NULL;
}

/* An object that is allocated while pages are given back keeps its content. */
static void objects_taken_during_a_trim_are_whole(void **state) {
    (void)state;
    pthread_t thread;
    sy_cache *cache = make(96, SY_CHECKED); /* every operation uses the slabs */
    uint64_t random = 14;
    memset(objects, 0, sizeof objects);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_trimming, cache), 0);
    for (int step = 0; step < 100000; step++) {
        size_t i = next_random(&random) % 2000;
        if (objects[i]) {
            for (int at = 0; at < 96; at++) must(objects[i][at] == i % 251);
            sy_cache_free(cache, objects[i]);
            objects[i] = NULL;
        } else if (step / 10000 % 2 == 0 || next_random(&random) % 8 == 0) {
            memset(objects[i] = sy_cache_alloc(cache), (int)(i % 251), 96);
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < 2000; i++) sy_cache_free(cache, objects[i]);
    sound(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

/* ---- no room while a trim runs ---- */

static sem_t discarding, go_on;

static void wait_once(void) {
    static _Atomic bool waited;
    if (atomic_exchange(&waited, true)) return;
    sem_post(&discarding);
    while (sem_wait(&go_on) != 0) continue;
}

static void *trim_in_thread(void *arg) {
    sy_trim();
    return arg;
}

static void *alloc_in_thread(void *arg) {
    (void)arg;
    return sy_malloc(256 << 10);
}

/* All free memory is one span, which a trim has set aside. */
static void an_allocation_waits_for_the_system(void *arg) {
    alarm(60);
    sem_init(&discarding, 0, 0);
    sem_init(&go_on, 0, 0);
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    size_t count = 0;
    while ((objects[count] = alloc_in_thread(arg)) != NULL) count++;
    must(count > 1 && count < COUNT);
    sy_fake_run_before(SY_FAKE_DISCARD, wait_once);
    sy_free(objects[0]);
    pthread_t trimmer, allocator;
    must(pthread_create(&trimmer, NULL, trim_in_thread, NULL) == 0);
    while (sem_wait(&discarding) != 0) continue;
    must(pthread_create(&allocator, NULL, alloc_in_thread, NULL) == 0);
    sy_fake_await_waiting(1);
    sem_post(&go_on);
    void *object;
    must(pthread_join(allocator, &object) == 0);
    must(pthread_join(trimmer, NULL) == 0);
    must(object == objects[0]);
    must(sy_chunk_verify(&sy_memory_main) == 0);
}

static void units_that_a_trim_has_aside_are_waited_for(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(in_child(an_allocation_waits_for_the_system, NULL), 0);
}

/* ---- figures while a trim runs ---- */

static unsigned discards;

/* All that was taken is free, though the units that are being discarded are in no list. */
static void count_while_discarding(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    must(stats.spans == 0);
    must(stats.units_free == stats.mapped - stats.chunk_headers - stats.slabs);
    discards++;
}

static void units_that_a_trim_has_aside_are_free(void *arg) {
    (void)arg;
    void *kept = sy_malloc(64); /* so that the chunk stays */
    for (int i = 0; i < 20; i++) memset(objects[i] = sy_malloc(1 << 20), 1, 1 << 20);
    for (int i = 0; i < 20; i++) sy_free(objects[i]);
    sy_fake_run_before(SY_FAKE_DISCARD, count_while_discarding);
    must(sy_trim() > 0 && discards > 0);
    sy_free(kept);
}

static void the_figures_add_up_while_a_trim_runs(void **state) {
    needs(SY_OS_FORKS | SY_OS_DISCARDS);
    (void)state;
    assert_int_equal(in_child(units_that_a_trim_has_aside_are_free, NULL), 0);
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_fake, reset_fake)

static void one_empty_slab_is_kept(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    for (int i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    sy_client_drain(&cache->client);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_int_equal(stats.empty, 1);
    assert_int_equal(stats.slabs, 1);
    sound(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void what_was_reserved_stays_when_it_was_used(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    assert_int_equal(sy_cache_reserve(cache, COUNT), 0);
    for (int i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    sy_client_drain(&cache->client);
    sy_cache_stats stats;
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_true(stats.free >= COUNT);
    sound(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

static void a_cache_that_is_busy_can_be_trimmed(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    sy_cache *cache = make(4096, 0);
    void *stays = sy_cache_alloc(cache);
    for (int i = 0; i < 100; i++) memset(objects[i] = sy_cache_alloc(cache), 1, 4096);
    for (int i = 0; i < 100; i++) sy_cache_free(cache, objects[i]);
    errno = 0;
    assert_int_equal(sy_cache_destroy(cache), -1);
    assert_int_equal(errno, EBUSY);
    assert_true(sy_cache_trim(cache) >= 90 * 4096);
    sy_cache_free(cache, stays);
    sound(cache);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_that_was_freed_goes_back),
        TEST(pages_without_live_objects_go_back),
        TEST(what_went_back_holds_no_memory_and_comes_back),
        TEST(running_threads_give_theirs_at_their_next_exchange),
        TEST(a_trim_ends_a_reserve),
        TEST(trim_of_all_takes_every_cache_and_the_heap),
        TEST(a_trim_makes_nothing),
        TEST(a_trim_by_a_thread_without_magazines_makes_nothing),
        TEST(a_trim_that_fails_loses_nothing),
        TEST(objects_taken_during_a_trim_are_whole),
        TEST(units_that_a_trim_has_aside_are_waited_for),
        TEST(the_figures_add_up_while_a_trim_runs),
        TEST(after_a_trim_nothing_is_reserved),
        TEST(one_empty_slab_is_kept),
        TEST(what_was_reserved_stays_when_it_was_used),
        TEST(a_cache_that_is_busy_can_be_trimmed),
    };
    return cmocka_run_group_tests_name("trim", tests, NULL, NULL);
}
