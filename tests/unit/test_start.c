/*
 * test_start.c: the library starts once, whichever thread comes first and whatever fails; and after
 * a fork both processes go on.
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
#include "heap/classes.h"
#include "magazine/store.h"
#include "magazine/thread.h"
#include "os/fake.h"
#include "os/start.h"
#include "support/child.h"
#include "support/services.h"

static void sound(sy_cache *cache) {
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
}

static sy_cache *make(size_t size) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = size});
    must(cache != NULL);
    return cache;
}

/* ---- start ---- */

/* The n-th call to the system fails. The child ends with 1 if there were fewer calls. */
static void start_fails_at(void *arg) {
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)arg);
    errno = 0;
    int result = sy_start();
    uint64_t failures = sy_fake_failures(SY_FAKE_ANY);
    sy_fake_reset();
    if (result != 0) {
        must(failures && errno == ENOMEM);
        sy_fake_fail_nth(SY_FAKE_ANY, 1); /* fails again, at the first call that is left */
        must(sy_start() == -1);
    }
    sy_fake_reset();
    must(sy_start() == 0);
    size_t reserved = sy_fake_reserved();
    must(sy_start() == 0);
    must(sy_fake_reserved() == reserved);
    sy_cache *cache = make(64);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sound(cache);
    must(sy_cache_destroy(cache) == 0);
    if (!failures) _exit(1);
}

static void starting_fails_and_is_tried_again(void **state) {
    (void)state;
    uint64_t n = 1;
    int status;
    while ((status = in_child(start_fails_at, &n)) == 0) n++;
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(n > 2); /* at least two calls, for the depots */
}

static void calls_without_a_start(void *arg) {
    (void)arg;
    sy_stats stats;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    errno = 0;
    must(sy_cache_create(&(sy_cache_config){.size = 64}) == NULL && errno == ENOMEM);
    for (size_t size = 0; size < 10 << 20; size = size * 3 + 1) {
        errno = 0;
        must(sy_malloc(size) == NULL && errno == ENOMEM);
        errno = 0;
        must(sy_calloc(1, size) == NULL && errno == ENOMEM);
        errno = 0;
        must(sy_aligned_alloc(4096, size) == NULL && errno == ENOMEM);
        errno = 0;
        must(sy_realloc(NULL, size) == NULL && errno == ENOMEM);
    }
    must(sy_usable_size(&stats) == 0);
    sy_free(NULL);
    sy_thread_idle();
    must(sy_cache_destroy(NULL) == 0);
    sy_fake_reset();
    char *object = sy_malloc(100);
    must(object != NULL);
    memset(object, 1, 100);
    sy_free(object);
}

static void every_call_fails_well_before_a_start(void **state) {
    (void)state;
    assert_int_equal(in_child(calls_without_a_start, NULL), 0);
}

static void *come_first(void *arg) {
    must(sy_start() == 0);
    sy_cache *cache = make(64);
    sy_cache_free(cache, sy_cache_alloc(cache));
    must(sy_cache_destroy(cache) == 0);
    return arg;
}

static void all_come_first(void *arg) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) must(pthread_create(&threads[i], NULL, come_first, arg) == 0);
    for (int i = 0; i < 8; i++) must(pthread_join(threads[i], NULL) == 0);
    must(sy_fake_calls(SY_FAKE_AT_FORK) == 1);
}

static void of_several_who_come_first_one_starts(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) assert_int_equal(in_child(all_come_first, NULL), 0);
}

/* ---- calls of the library from within its start ---- */

static unsigned entered, served;

/* Calls the library from a function of the system, as the C library does if the heap is the
 * program's malloc. */
static void enter_again(void) {
    static bool inside;
    if (inside) return;
    inside = true;
    entered++;
    for (size_t size = 1; size < 1 << 20; size *= 3) {
        errno = 0;
        char *object = sy_malloc(size);
        if (object) memset(object, 3, size);
        must(object || errno == ENOMEM);
        served += object != NULL;
        sy_free(object);
    }
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 100});
    must(cache || errno == ENOMEM);
    if (cache) must(sy_cache_destroy(cache) == 0);
    inside = false;
}

static void start_and_enter_again(void *arg) {
    alarm(60);
    for (unsigned call = 0; call < SY_FAKE_ANY; call++) sy_fake_run_before(call, enter_again);
    if (arg) sy_fake_set_option("SLABYARD", arg);
    char *object = sy_malloc(100);
    must(object != NULL);
    must(entered > 1);
    sy_free(object);
    sy_fake_reset();
    sy_cache *cache = make(64);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sound(cache);
    must(sy_cache_destroy(cache) == 0);
}

/* The last step of the start makes this call. Nothing makes it after the start. */
static void start_and_enter_at_its_last_step(void *arg) {
    (void)arg;
    sy_fake_set_option("SLABYARD", "leaks=exit");
    sy_fake_run_before(SY_FAKE_AT_EXIT, enter_again);
    void *object = sy_malloc(100);
    must(object && entered == 1);
    must(served > 0);
    sy_free(object);
}

static void a_start_may_be_entered_again(void **state) {
    (void)state;
    assert_int_equal(in_child(start_and_enter_at_its_last_step, NULL), 0);
    assert_int_equal(in_child(start_and_enter_again, NULL), 0);
    assert_int_equal(in_child(start_and_enter_again, "audit,leaks=exit"), 0);
}

/* Starts the library, or waits while another thread starts it. */
static void *start_in_thread(void *arg) {
    must(sy_start() == 0);
    return arg;
}

static pthread_t other;

static void let_another_come(void) {
    static bool came;
    if (came) return;
    came = true;
    must(pthread_create(&other, NULL, start_in_thread, NULL) == 0);
    sy_fake_await_waiting(1);
    enter_again();
}

static void start_beside_another(void *arg) {
    alarm(60);
    sy_fake_run_before(SY_FAKE_RESERVE, let_another_come);
    start_in_thread(arg);
    must(pthread_join(other, NULL) == 0);
    must(entered == 1);
}

static void others_wait_for_a_start_that_is_entered_again(void **state) {
    (void)state;
    assert_int_equal(in_child(start_beside_another, NULL), 0);
}

/* ---- fork while other threads stand still ---- */

static pthread_barrier_t barrier;
static sy_cache *shared;
static unsigned char *others[4][300];

static void *hold_and_stand_still(void *arg) {
    unsigned char **mine = others[(uintptr_t)arg];
    for (int i = 0; i < 300; i++) memset(mine[i] = sy_cache_alloc(shared), (int)(uintptr_t)arg, 48);
    for (int i = 200; i < 300; i++) sy_cache_free(shared, mine[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200; i++) sy_cache_free(shared, mine[i]);
    return NULL;
}

static void free_all_of_the_others(void *arg) {
    (void)arg;
    sound(shared);
    must(sy_cache_in_use(shared) == 800);
    sy_cache_stats stats;
    sy_cache_get_stats(shared, &stats);
    must(stats.in_loaded == 0); /* these threads are not in the child */
    for (int thread = 0; thread < 4; thread++)
        for (int i = 0; i < 200; i++) {
            for (int at = 0; at < 48; at++) must(others[thread][i][at] == thread);
            sy_cache_free(shared, others[thread][i]);
        }
    must(sy_cache_in_use(shared) == 0);
    sy_trim();
    sound(shared);
    must(sy_cache_destroy(shared) == 0);
}

static void fork_again(void *arg) {
    int status = in_child(free_all_of_the_others, arg);
    must(status == 0);
    free_all_of_the_others(arg);
}

static void a_child_has_what_its_parents_threads_held(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t threads[4];
    shared = make(48);
    pthread_barrier_init(&barrier, NULL, 5);
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_stand_still, (void *)i), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(in_child(free_all_of_the_others, NULL), 0);
    assert_int_equal(in_child(fork_again, NULL), 0);
    assert_int_equal(sy_cache_in_use(shared), 800);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(sy_cache_in_use(shared), 0);
    sound(shared);
    assert_int_equal(sy_cache_destroy(shared), 0);
}

/* ---- fork while other threads run ---- */

enum { CACHES = 3, LIVE = 100 };
static sy_cache *caches[CACHES];
static _Atomic bool stop;

static void *keep_running(void *arg) {
    void *objects[CACHES + 1][LIVE] = {{NULL}};
    uint64_t random = (uintptr_t)arg;
    while (!atomic_load(&stop)) {
        size_t kind = next_random(&random) % (CACHES + 1), i = next_random(&random) % LIVE;
        void **object = &objects[kind][i];
        if (*object) {
            if (kind < CACHES)
                sy_cache_free(caches[kind], *object);
            else
                sy_free(*object);
            *object = NULL;
        } else {
            *object = kind < CACHES ? sy_cache_alloc(caches[kind])
                                    : sy_malloc(next_random(&random) % 200000);
            must(*object != NULL);
            memset(*object, 1, 8);
        }
        if (next_random(&random) % 2000 == 0) sy_trim();
        if (next_random(&random) % 500 == 0) sy_thread_idle();
    }
    for (size_t kind = 0; kind <= CACHES; kind++)
        for (size_t i = 0; i < LIVE; i++)
            if (kind < CACHES)
                sy_cache_free(caches[kind], objects[kind][i]);
            else
                sy_free(objects[kind][i]);
    return NULL;
}

static void go_on_in_the_child(void *arg) {
    (void)arg;
    alarm(30); /* nothing must wait for a lock whose holder is gone */
    for (int i = 0; i < CACHES; i++) must(sy_cache_verify(caches[i]) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
    void *objects[500];
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < CACHES; i++) {
            for (int j = 0; j < 500; j++) {
                must((objects[j] = sy_cache_alloc(caches[i])) != NULL);
                memset(objects[j], j % 251, 40);
            }
            for (int j = 0; j < 500; j++) {
                for (int at = 0; at < 40; at++) must(((unsigned char *)objects[j])[at] == j % 251);
                sy_cache_free(caches[i], objects[j]);
            }
        }
    for (unsigned class_number = 1; class_number < SY_CLASSES; class_number++) {
        void *object = sy_malloc(sy_class_size(class_number));
        must(object != NULL);
        sy_free(object);
    }
    sy_free(sy_malloc(6 << 20));
    sy_trim();
    for (int i = 0; i < CACHES; i++) {
        must(sy_cache_verify(caches[i]) == 0);
        sy_cache_destroy_all(caches[i]);
    }
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
    must(sy_cache_destroy(make(100)) == 0);
}

static void both_go_on_whatever_other_threads_were_at(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    pthread_t threads[3];
    for (size_t i = 0; i < CACHES; i++) caches[i] = make((size_t)40 << 2 * i);
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_running, (void *)(i + 1)), 0);
    for (int i = 0; i < 60; i++) assert_int_equal(in_child(go_on_in_the_child, NULL), 0);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CACHES; i++) {
        assert_int_equal(sy_cache_in_use(caches[i]), 0);
        sound(caches[i]);
        assert_int_equal(sy_cache_destroy(caches[i]), 0);
    }
}

/* ---- fork while another thread opens a class of the heap ---- */

static void open_a_class(void *arg) {
    (void)arg;
    alarm(30);
    must(sy_malloc(sy_class_size(60)) != NULL);
}

static void *open_the_next_class(void *arg) {
    must(sy_malloc(sy_class_size((unsigned)(uintptr_t)arg)) != NULL);
    return NULL;
}

static void *fork_meanwhile(void *arg) {
    (void)arg;
    must(in_child(open_a_class, NULL) == 0);
    return NULL;
}

/* A thread that opens a class and a thread that forks wait for the lock of the thread list. */
static void fork_in_the_midst_of_opening(void *arg) {
    must(sy_start() == 0);
    for (uintptr_t class_number = 30; class_number < 50; class_number++) {
        pthread_t opener, forker;
        sy_threads_lock();
        must(pthread_create(&opener, NULL, open_the_next_class, (void *)class_number) == 0);
        sy_fake_await_waiting(1);
        must(pthread_create(&forker, NULL, fork_meanwhile, arg) == 0);
        sy_fake_await_waiting(2);
        sy_threads_unlock();
        must(pthread_join(opener, NULL) == 0);
        must(pthread_join(forker, NULL) == 0);
    }
}

static void a_class_is_opened_or_not_when_a_fork_comes(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(in_child(fork_in_the_midst_of_opening, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First, before the library has started. */
        cmocka_unit_test(starting_fails_and_is_tried_again),
        cmocka_unit_test(every_call_fails_well_before_a_start),
        cmocka_unit_test(of_several_who_come_first_one_starts),
        cmocka_unit_test(a_start_may_be_entered_again),
        cmocka_unit_test(others_wait_for_a_start_that_is_entered_again),
        cmocka_unit_test(a_class_is_opened_or_not_when_a_fork_comes),
        cmocka_unit_test(a_child_has_what_its_parents_threads_held),
        cmocka_unit_test(both_go_on_whatever_other_threads_were_at),
    };
    return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
