/*
 * test_cache_threads.c: what cache.h promises for threads that start, are idle, end, and use
 * Slabyard while they end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "magazine/thread.h"
#include "support/caches.h"
#include "support/child.h"

static void *use_cache(void *arg) {
    void *objects[30];
    for (int i = 0; i < 30; i++) memset(objects[i] = get(arg), 1, 16);
    for (int i = 0; i < 30; i++) sy_cache_free(arg, objects[i]);
    return NULL;
}

static pthread_barrier_t barrier;
static sy_cache *inner;

static void *take_and_end(void *arg) {
    void **objects = arg;
    sy_cache *cache = objects[0];
    for (int i = 1; i <= 1000; i++) objects[i] = get(cache);
    return NULL;
}

static void *free_and_end(void *arg) {
    void **objects = arg;
    for (int i = 1; i <= 1000; i++) sy_cache_free(objects[0], objects[i]);
    return NULL;
}

static void objects_outlive_the_thread_that_took_them(void **state) {
    (void)state;
    void *objects[1001];
    sy_cache *cache = objects[0] = make((sy_cache_config){.size = 64});
    in_thread(take_and_end, objects);
    assert_int_equal(sy_cache_in_use(cache), 1000);
    for (int i = 1; i <= 1000; i++) memset(objects[i], 1, 64);
    in_thread(free_and_end, objects);
    assert_int_equal(sy_cache_in_use(cache), 0);
    end(cache);
}

static void threads_that_end_leave_nothing_behind(void **state) {
    (void)state;
    void *objects[1001];
    sy_cache *cache = objects[0] = make((sy_cache_config){.size = 64});
    sy_stats before, after;
    for (int i = 0; i < 200; i++) {
        in_thread(take_and_end, objects);
        in_thread(free_and_end, objects);
        if (i == 10) sy_get_stats(&before);
    }
    sy_get_stats(&after);
    assert_int_equal(after.mapped, before.mapped);
    assert_int_equal(after.magazines, before.magazines);
    sy_cache_stats stats;
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_loaded, 0);
    assert_true(stats.slots <= 5000);
    end(cache);
}

static sy_cache *late_cache;
static pthread_key_t late_key;
static _Atomic int late_calls;

/* Runs at the thread's end, before and after the library's hook: it sets its key again. */
static void use_late(void *arg) {
    void *objects[200];
    for (int i = 0; i < 200; i++) memset(objects[i] = get(late_cache), 1, 64);
    for (int i = 0; i < 200; i++) sy_cache_free(late_cache, objects[i]);
    char *memory = sy_malloc(100);
    must(memory != NULL);
    memset(memory, 1, 100);
    sy_free(memory);
    sy_thread_flush();
    sy_thread_idle();
    int call = atomic_fetch_add(&late_calls, 1);
    if (call > 0) must(sy_thread_self() == NULL); /* items taken now would never be returned */
    if (call < 2) pthread_setspecific(late_key, arg);
}

static void *end_late(void *arg) {
    pthread_setspecific(late_key, arg);
    sy_cache_free(late_cache, get(late_cache));
    return NULL;
}

static void *end_late_unknown(void *arg) {
    pthread_setspecific(late_key, arg); /* the first use is in the destructor */
    return NULL;
}

static void a_thread_may_allocate_after_its_end(void **state) {
    (void)state;
    assert_int_equal(pthread_key_create(&late_key, use_late), 0);
    late_cache = make((sy_cache_config){.size = 64});
    unsigned threads = sy_thread_count();
    for (int i = 0; i < 2; i++) {
        atomic_store(&late_calls, 0);
        in_thread(i ? end_late_unknown : end_late, &late_cache);
        assert_int_equal(late_calls, 3);
        assert_int_equal(sy_cache_in_use(late_cache), 0);
        assert_int_equal(sy_thread_count(), threads);
    }
    pthread_key_delete(late_key);
    end(late_cache);
}

static void *hold_and_idle(void *arg) {
    void *objects[100];
    for (int i = 0; i < 100; i++) objects[i] = get(arg);
    for (int i = 0; i < 100; i++) sy_cache_free(arg, objects[i]);
    sy_thread_idle();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 100; i++) objects[i] = get(arg); /* works again at once */
    for (int i = 0; i < 100; i++) sy_cache_free(arg, objects[i]);
    return NULL;
}

static void an_idle_threads_objects_are_for_others(void **state) {
    (void)state;
    pthread_t thread;
    sy_cache *cache = make((sy_cache_config){.size = 64, .limit = 1600});
    void *objects[1600];
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, hold_and_idle, cache), 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1600; i++) objects[i] = get(cache); /* all slots */
    for (int i = 0; i < 1600; i++) sy_cache_free(cache, objects[i]);
    sy_thread_flush();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    end(cache);
}

static void flush_gives_a_threads_objects_back(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 64});
    void *objects[100];
    sy_cache_stats stats;
    for (int i = 0; i < 100; i++) objects[i] = get(cache);
    for (int i = 0; i < 100; i++) sy_cache_free(cache, objects[i]);
    sy_cache_get_stats(cache, &stats);
    assert_true(stats.in_loaded > 0);
    sy_thread_flush();
    sy_cache_get_stats(cache, &stats);
    assert_int_equal(stats.in_loaded, 0);
    end(cache);
}

/* The last thread that used the cache is made to end. It may still be ending while the cache is
 * destroyed. */
static void *use_and_tell(void *arg) {
    use_cache(arg);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void a_cache_can_go_while_a_thread_ends(void **state) {
    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        sy_cache *cache = make((sy_cache_config){.size = 64});
        assert_int_equal(pthread_create(&thread, NULL, use_and_tell, cache), 0);
        pthread_barrier_wait(&barrier);
        assert_int_equal(sy_cache_destroy(cache), 0);
        pthread_join(thread, NULL);
    }
    pthread_barrier_destroy(&barrier);
}

static _Atomic bool stop;

static void *keep_flushing(void *arg) {
    for (bool last = false; !last;) {
        pthread_barrier_wait(&barrier);
        use_cache(inner);
        last = atomic_load(&stop);
        pthread_barrier_wait(&barrier);
        sy_thread_flush(); /* while the other thread destroys `inner` */
    }
    return arg;
}

static void a_cache_can_go_while_a_thread_flushes(void **state) {
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_flushing, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        inner = make((sy_cache_config){.size = 64});
        if (i == 1999) atomic_store(&stop, true);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        must(sy_cache_destroy(inner) == 0);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static void *keep_trimming(void *arg) {
    while (!atomic_load(&stop)) sy_trim();
    return arg;
}

static void a_cache_can_go_while_another_thread_trims(void **state) {
    (void)state;
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_trimming, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        sy_cache *cache = make((sy_cache_config){.size = 64});
        use_cache(cache);
        if (i % 50 == 0) in_thread(use_cache, cache);
        must(sy_cache_destroy(cache) == 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* ---- two threads free one object by sy_cache_try_free ---- */

enum { TRIES = 2, ROUNDS = 100, IN_HAND = 2048 };

static sy_cache *tried;
static void *wanted;

static void *try_free(void *freed) {
    if (sy_cache_try_free(tried, wanted)) atomic_fetch_add((_Atomic int *)freed, 1);
    return NULL;
}

/* Takes all slots out of the slabs, as a refill does before its magazine is visible. Repeats this
 * until `wanted` is among the slots. Returns the number of slots. */
static size_t take_in_hand(uintptr_t *items) {
    for (;;) {
        size_t count = sy_cache_refill(tried, items, IN_HAND);
        for (size_t i = 0; i < count; i++)
            if (items[i] == (uintptr_t)wanted) return count;
        sy_cache_flush(tried, items, count, NULL);
    }
}

/*
 * Both threads are about to free the object, and wait. One thread frees it. Before the other thread
 * looks at the slot, the slot is on its way to a magazine: it is not in its slab and not in a
 * magazine, as that of a live object.
 */
static void one_frees_what_goes_to_a_magazine_before_the_other_looks(void **state) {
    (void)state;
    tried = make((sy_cache_config){.size = 64});
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[TRIES];
        _Atomic int freed = 0;
        uintptr_t items[IN_HAND];
        wanted = get(tried);
        sy_thread_flush(); /* all other slots are in their slab */
        sy_clients_lock();
        sy_lock_acquire(&tried->lock);
        for (int i = 0; i < TRIES; i++) { /* a thread is waiting once the list has a new head */
            const void *before = atomic_load(&tried->tries);
            assert_int_equal(pthread_create(&threads[i], NULL, try_free, (void *)&freed), 0);
            while (atomic_load(&tried->tries) == before) sched_yield();
        }
        sy_clients_unlock();
        sy_lock_release(&tried->lock);
        size_t count = take_in_hand(items);
        for (int i = 0; i < TRIES; i++) pthread_join(threads[i], NULL);
        assert_int_equal(freed, 1);
        sy_cache_flush(tried, items, count, NULL);
    }
    end(tried);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_outlive_the_thread_that_took_them),
        cmocka_unit_test(threads_that_end_leave_nothing_behind),
        cmocka_unit_test(a_thread_may_allocate_after_its_end),
        cmocka_unit_test(an_idle_threads_objects_are_for_others),
        cmocka_unit_test(flush_gives_a_threads_objects_back),
        cmocka_unit_test(a_cache_can_go_while_a_thread_ends),
        cmocka_unit_test(a_cache_can_go_while_a_thread_flushes),
        cmocka_unit_test(a_cache_can_go_while_another_thread_trims),
        cmocka_unit_test(one_frees_what_goes_to_a_magazine_before_the_other_looks),
    };
    return cmocka_run_group_tests_name("cache threads", tests, NULL, NULL);
}
