/*
 * test_handle_dispose.c: the function that disposes of objects with handles: it is called once, by
 * the thread that was the last to hold the object.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/handles.h"

static size_t disposed;
static void *last_disposed;

static void dispose(void *object, void *arg) {
    must(arg == &disposed);
    memset(object, 0xdd, 48);
    last_disposed = object;
    disposed++;
}

static sy_cache *make_disposing(void) {
    disposed = 0;
    return make((sy_cache_config){.size = 48, .dispose = dispose, .arg = &disposed});
}

static void each_function_disposes_of_what_it_frees(void **state) {
    (void)state;
    sy_cache *cache = make_disposing();
    take_all(cache, 48);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0) must(sy_handle_free(cache, handles[i]));
        if (i % 3 == 1) sy_cache_free(cache, objects[i]);
        if (i % 3 == 2) must(sy_cache_try_free(cache, objects[i]));
        must(disposed == i + 1 && last_disposed == objects[i]);
        refused(cache, handles[i]);
    }
    end(cache);
}

static void whoever_holds_it_last_disposes_of_it(void **state) {
    (void)state;
    sy_cache *cache = make_disposing();
    take_all(cache, 48);
    must(sy_handle_pin(cache, handles[0]) && sy_handle_pin(cache, handles[0]));
    must(sy_handle_free(cache, handles[0]) && !sy_handle_free(cache, handles[0]));
    must(disposed == 0 && is_filled(0, 48));
    sy_handle_unpin(cache, handles[0]);
    must(disposed == 0 && is_filled(0, 48));
    sy_handle_unpin(cache, handles[0]);
    must(disposed == 1 && last_disposed == objects[0]);
    for (size_t i = 1; i < COUNT; i++) must(sy_handle_free(cache, handles[i]));
    must(disposed == COUNT);
    end(cache);
}

static int free_it(void *arg, sy_handle handle, void *object) {
    size_t before = disposed;
    (void)object;
    must(sy_handle_free(arg, handle) && disposed == before);
    return 0;
}

static void a_visit_may_free_what_it_holds(void **state) {
    (void)state;
    sy_cache *cache = make_disposing();
    take_all(cache, 48);
    must(sy_handle_each(cache, free_it, cache) == 0);
    must(disposed == COUNT);
    end(cache);
}

static void live_objects_are_not_disposed_of_with_the_cache(void **state) {
    (void)state;
    sy_cache *cache = make_disposing();
    take_all(cache, 48);
    sy_cache_destroy_all(cache);
    must(disposed == 0);
    sy_cache_config plain = {.size = 48, .dispose = dispose};
    errno = 0;
    must(!sy_cache_create(&plain) && errno == EINVAL);
}

static void what_is_prepared_is_seen_when_it_is_published(void **state) {
    (void)state;
    sy_cache *cache = make_disposing();
    for (size_t i = 0; i < COUNT; i++) {
        must((objects[i] = sy_handle_prepare(cache, &handles[i])) != NULL);
        refused(cache, handles[i]);
        must(sy_handle_each(cache, free_it, cache) == 0);
        if (i % 2) {
            sy_handle_cancel(cache, handles[i]);
            refused(cache, handles[i]);
        } else {
            sy_handle_publish(cache, handles[i]);
            must(sy_handle_get(cache, handles[i]) == objects[i]);
            must(sy_handle_free(cache, handles[i]));
        }
        must(disposed == i / 2 + 1);
    }
    end(cache);
}

static void only_what_is_prepared_is_published_or_cancelled(void **state) {
    (void)state;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    sy_cache *cache = make_disposing(), *plain = make_plain(48);
    sy_handle handle;
    must(sy_handle_alloc(cache, &handle) != NULL);
    for (size_t i = 0; i < 3; i++) {
        sy_handle wrong[] = {handle, 0, ~UINT64_C(0)};
        faults = 0;
        sy_handle_publish(cache, wrong[i]);
        must(faults == 1 && last_fault.kind == SY_FAULT_NOT_PINNED);
        sy_handle_cancel(cache, wrong[i]);
        must(faults == 2 && last_fault.kind == SY_FAULT_NOT_PINNED);
    }
    must(sy_handle_free(cache, handle));
    errno = 0;
    must(!sy_handle_prepare(plain, &handle) && errno == EINVAL);
    must(sy_cache_destroy(plain) == 0);
    end(cache);
    sy_set_fault_handler(before);
}

enum { DISPOSERS = 4 };
static sy_handle shared[COUNT];

static void *hold_and_free(void *cache) {
    for (size_t i = 0; i < COUNT; i++) {
        bool held = sy_handle_pin(cache, shared[i]) != NULL;
        sy_handle_free(cache, shared[i]);
        if (held) sy_handle_unpin(cache, shared[i]);
    }
    return NULL;
}

static _Atomic size_t ends[COUNT];

static void count_end(void *object, void *arg) {
    (void)arg;
    atomic_fetch_add(&ends[*(size_t *)object], 1);
}

static void each_is_disposed_of_once_whoever_frees_it(void **state) {
    (void)state;
    sy_cache *cache = make((sy_cache_config){.size = 48, .dispose = count_end});
    for (size_t round = 0; round < 5; round++) {
        pthread_t threads[DISPOSERS];
        for (size_t i = 0; i < COUNT; i++) {
            *(size_t *)get(cache, &shared[i]) = i;
            atomic_store(&ends[i], 0);
        }
        for (size_t i = 0; i < DISPOSERS; i++)
            must(pthread_create(&threads[i], NULL, hold_and_free, cache) == 0);
        for (size_t i = 0; i < DISPOSERS; i++) must(pthread_join(threads[i], NULL) == 0);
        for (size_t i = 0; i < COUNT; i++) must(atomic_load(&ends[i]) == 1);
    }
    end(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_function_disposes_of_what_it_frees),
        cmocka_unit_test(whoever_holds_it_last_disposes_of_it),
        cmocka_unit_test(a_visit_may_free_what_it_holds),
        cmocka_unit_test(live_objects_are_not_disposed_of_with_the_cache),
        cmocka_unit_test(what_is_prepared_is_seen_when_it_is_published),
        cmocka_unit_test(only_what_is_prepared_is_published_or_cancelled),
        cmocka_unit_test(each_is_disposed_of_once_whoever_frees_it),
    };
    return cmocka_run_group_tests_name("handle dispose", tests, NULL, NULL);
}
