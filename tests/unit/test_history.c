/*
 * test_history.c: a cache keeps its last operations, as many as were asked for. A reader gets each
 * operation whole while other threads write.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "debug/history.h"
#include "debug/options.h"
#include "os/fake.h"
#include "support/child.h"

enum { SEEN_MAX = 64 };

typedef struct seen {
    size_t count, stop; /* note() ends the visit at operation number `stop`; 0: never */
    sy_operation operation[SEEN_MAX];
} seen;

static int note(void *arg, const sy_operation *operation) {
    seen *all = arg;
    must(all->count < SEEN_MAX);
    all->operation[all->count++] = *operation;
    return all->count == all->stop ? 7 : 0;
}

static sy_cache *make(uint32_t operations) {
    sy_options_load();
    atomic_store(&sy_options_now.audit_log, operations);
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "past", .size = 24, .flags = SY_AUDIT});
    atomic_store(&sy_options_now.audit_log, 0);
    return cache;
}

/* ---- of a cache ---- */

static void the_latest_comes_first(void **state) {
    (void)state;
    sy_cache *cache = make(16);
    char *one = sy_cache_alloc(cache), *two = sy_cache_alloc(cache);
    sy_cache_free(cache, one);
    seen all = {0};
    assert_int_equal(sy_cache_history(cache, note, &all), 0);
    assert_int_equal(all.count, 3);
    assert_true(all.operation[0].freed);
    assert_ptr_equal(all.operation[0].object, one);
    assert_false(all.operation[1].freed);
    assert_ptr_equal(all.operation[1].object, two);
    assert_ptr_equal(all.operation[2].object, one);
    assert_int_equal(all.operation[2].size, 24);
    assert_int_not_equal(all.operation[2].trace.thread, 0);
    assert_true(all.operation[2].trace.age >= all.operation[0].trace.age);
    sy_cache_destroy_all(cache);
}

static int note_slowly(void *arg, const sy_operation *operation) {
    sy_fake_advance_clock(UINT64_C(1000000000)); /* as a visitor that looks up a stack */
    return note(arg, operation);
}

/* All ages are those at the beginning of the visit. */
static void ages_are_those_at_the_beginning(void **state) {
    (void)state;
    sy_cache *cache = make(8);
    seen all = {0};
    sy_fake_set_clock(1000);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_fake_advance_clock(500);
    assert_int_equal(sy_cache_history(cache, note_slowly, &all), 0);
    sy_fake_reset();
    assert_int_equal(all.count, 2);
    assert_int_equal(all.operation[0].trace.age, 500);
    assert_int_equal(all.operation[1].trace.age, 500);
    sy_cache_destroy(cache);
}

static void as_many_are_kept_as_was_asked_for(void **state) {
    (void)state;
    sy_cache *cache = make(8);
    void *last = NULL;
    for (int i = 0; i < 100; i++) {
        last = sy_cache_alloc(cache);
        sy_cache_free(cache, last);
    }
    seen all = {0};
    assert_int_equal(sy_cache_history(cache, note, &all), 0);
    assert_int_equal(all.count, 8);
    for (size_t i = 0; i < 8; i++) assert_int_equal(all.operation[i].freed, i % 2 == 0);
    assert_ptr_equal(all.operation[0].object, last);
    sy_cache_destroy(cache);
}

static void a_visit_ends_when_it_is_told(void **state) {
    (void)state;
    sy_cache *cache = make(8);
    for (int i = 0; i < 4; i++) assert_non_null(sy_cache_alloc(cache));
    seen all = {.stop = 2};
    assert_int_equal(sy_cache_history(cache, note, &all), 7);
    assert_int_equal(all.count, 2);
    sy_cache_destroy_all(cache);
}

static void none_is_kept_without_the_option_or_audit(void **state) {
    (void)state;
    seen all = {0};
    sy_cache *cache = make(0);
    assert_non_null(sy_cache_alloc(cache));
    assert_int_equal(sy_cache_history(cache, note, &all), 0);
    sy_cache_destroy_all(cache);
    atomic_store(&sy_options_now.audit_log, 8);
    cache = sy_cache_create(&(sy_cache_config){.size = 24});
    sy_cache *checked = sy_cache_create(&(sy_cache_config){.size = 24, .flags = SY_CHECKED});
    atomic_store(&sy_options_now.audit_log, 0);
    assert_non_null(sy_cache_alloc(cache));
    assert_non_null(sy_cache_alloc(checked));
    assert_int_equal(sy_cache_history(cache, note, &all), 0);
    assert_int_equal(sy_cache_history(checked, note, &all), 0);
    assert_int_equal(all.count, 0);
    sy_cache_destroy_all(cache);
    sy_cache_destroy_all(checked);
}

static void a_sized_object_has_its_size(void **state) {
    (void)state;
    sy_history *history = sy_history_make(4);
    const sy_stamp stamp = {.time = 1, .thread = 5};
    sy_history_note(history, true, &stamp, SIZE_MAX / 4, &stamp);
    seen all = {0};
    assert_int_equal(sy_history_each(history, note, &all), 0);
    assert_int_equal(all.operation[0].size, SIZE_MAX / 4);
    assert_true(all.operation[0].freed);
    assert_int_equal(all.operation[0].trace.thread, 5);
    sy_history_end(history);
}

/* An entry of the ring has one writer at a time. An operation is dropped if another thread is
 * writing the entry, or if the entry holds a later operation. */
static void no_operation_is_written_over_another(void **state) {
    (void)state;
    sy_history *history = sy_history_make(2);
    const sy_stamp stamp = {.time = 1};
    seen all = {0};
    atomic_store(&history->entries[0].sequence, 2 * 4 + 1); /* operation 4, being written */
    atomic_store(&history->entries[1].sequence, 2 * 3 + 2); /* operation 3, complete */
    for (int i = 0; i < 2; i++) sy_history_note(history, false, &stamp, 8, &stamp);
    assert_int_equal(sy_history_each(history, note, &all), 0);
    assert_int_equal(all.count, 0);
    assert_int_equal(atomic_load(&history->entries[0].sequence), 2 * 4 + 1);
    assert_int_equal(atomic_load(&history->entries[1].sequence), 2 * 3 + 2);
    sy_history_end(history);
}

static void it_goes_with_its_cache(void **state) {
    (void)state;
    sy_cache_destroy(make(1 << 12));
    size_t before = sy_fake_reserved();
    sy_cache_destroy(make(1 << 12));
    assert_int_equal(sy_fake_reserved(), before);
}

/* ---- failures ---- */

static void a_cache_without_its_history_is_none(void **state) {
    (void)state;
    sy_cache *warm = make(8); /* starts the library */
    size_t before = sy_fake_reserved();
    for (int call = SY_FAKE_RESERVE; call <= SY_FAKE_COMMIT; call++) {
        sy_fake_fail_nth((sy_fake_call)call, 1);
        errno = 0;
        assert_null(make(1 << 16));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(sy_fake_reserved(), before);
        sy_fake_reset();
    }
    atomic_store(&sy_options_now.audit_log, 8);
    sy_fake_fail_nth(SY_FAKE_RESERVE, 2); /* the call for the quarantine */
    assert_null(sy_cache_create(&(sy_cache_config){.size = 24, .flags = SY_AUDIT | SY_QUARANTINE}));
    atomic_store(&sy_options_now.audit_log, 0);
    sy_fake_reset();
    assert_int_equal(sy_fake_reserved(), before);
    sy_cache_destroy(warm);
}

static void looking_fails_without_memory(void **state) {
    (void)state;
    sy_cache *cache = make(8);
    assert_non_null(sy_cache_alloc(cache));
    size_t before = sy_fake_reserved();
    seen all = {0};
    sy_fake_fail_nth(SY_FAKE_RESERVE, 1);
    errno = 0;
    assert_int_equal(sy_cache_history(cache, note, &all), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(all.count, 0);
    sy_fake_reset();
    assert_int_equal(sy_cache_history(cache, note, &all), 0);
    assert_int_equal(all.count, 1);
    assert_int_equal(sy_fake_reserved(), before);
    sy_cache_destroy_all(cache);
    sy_fake_reset();
}

/* ---- threads ---- */

enum { WRITERS = 3, WRITES = 200000 };
static sy_history *ring;
static _Atomic int writing = WRITERS;
static _Atomic uintptr_t next_value;

/* All fields of an operation hold the same number. */
static void *write_many(void *arg) {
    for (int i = 0; i < WRITES; i++) {
        uintptr_t value = atomic_fetch_add(&next_value, 1) + 1;
        const sy_stamp stamp = {.time = value, .thread = (uint32_t)value};
        sy_history_note(ring, value & 1, (void *)value, value, &stamp);
    }
    atomic_fetch_sub(&writing, 1);
    return arg;
}

static int expect_whole(void *arg, const sy_operation *operation) {
    uintptr_t value = (uintptr_t)operation->object;
    must(operation->size == value && operation->trace.thread == (uint32_t)value);
    must(operation->freed == (value & 1) && value > 0);
    ++*(size_t *)arg;
    return 0;
}

static void what_is_read_is_whole(void **state) {
    (void)state;
    pthread_t threads[WRITERS];
    size_t seen_there = 0;
    ring = sy_history_make(1); /* so that the writers meet in one entry */
    for (int i = 0; i < WRITERS; i++) must(!pthread_create(&threads[i], NULL, write_many, NULL));
    while (atomic_load(&writing)) must(sy_history_each(ring, expect_whole, &seen_there) == 0);
    for (int i = 0; i < WRITERS; i++) must(pthread_join(threads[i], NULL) == 0);
    seen_there = 0;
    must(sy_history_each(ring, expect_whole, &seen_there) == 0);
    assert_in_range(seen_there, 0, 1);
    sy_history_end(ring);
}

/* A thread may still be writing an entry when other threads, once round the ring, come to it again.
 * Then their operation is dropped. */
static void an_entry_is_left_to_who_writes_it(void **state) {
    (void)state;
    enum { OPERATIONS = 4 };
    sy_history *history = sy_history_make(OPERATIONS);
    assert_non_null(history);
    const sy_stamp stamp = {0};
    atomic_store(&history->next, OPERATIONS);
    atomic_store(&history->entries[0].sequence, 1); /* the first operation, being written */
    sy_history_note(history, false, &stamp, 24, &stamp);
    assert_int_equal(atomic_load(&history->entries[0].sequence), 1);
    assert_int_equal(atomic_load(&history->entries[0].object), 0);
    sy_history_end(history);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_comes_first),
        cmocka_unit_test(ages_are_those_at_the_beginning),
        cmocka_unit_test(as_many_are_kept_as_was_asked_for),
        cmocka_unit_test(a_visit_ends_when_it_is_told),
        cmocka_unit_test(none_is_kept_without_the_option_or_audit),
        cmocka_unit_test(a_sized_object_has_its_size),
        cmocka_unit_test(no_operation_is_written_over_another),
        cmocka_unit_test(it_goes_with_its_cache),
        cmocka_unit_test(a_cache_without_its_history_is_none),
        cmocka_unit_test(looking_fails_without_memory),
        cmocka_unit_test(what_is_read_is_whole),
        cmocka_unit_test(an_entry_is_left_to_who_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
