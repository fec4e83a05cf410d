/*
 * test_os_windows.c: tests what os.h promises, where Windows does it in a way of its own: parts of
 * reservations, discards under readers, alignment, the error of the system's last call, blocks, and
 * the end of a thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "os/os.h"
#include "support/child.h"

enum { PAGE = 4096, PARTS = 16, LAST_ERROR = 4711 };
static const size_t BYTES = (size_t)1 << 20, ALIGN = (size_t)4 << 20;

static DWORD state_of(const void *address) {
    MEMORY_BASIC_INFORMATION about;
    assert_true(VirtualQuery(address, &about, sizeof about) != 0);
    return about.State;
}

static char *committed(size_t bytes) {
    char *start = sy_os_reserve(bytes, PAGE, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, bytes), 0);
    memset(start, 1, bytes);
    return start;
}

static void a_reservation_ends_with_its_last_part(void **state) {
    (void)state;
    const size_t part = BYTES / PARTS;
    char *start = committed(BYTES);
    for (size_t i = 0; i < PARTS - 1; i++) {
        char *released = start + i * 7 % PARTS * part;
        assert_int_equal(sy_os_release(released, part), 0);
        assert_int_equal(state_of(released), MEM_RESERVE);
    }
    char *last = start + (PARTS - 1) * 7 % PARTS * part;
    assert_int_equal(last[part - 1], 1);
    assert_int_equal(sy_os_release(last, part), 0);
    assert_int_equal(state_of(start), MEM_FREE);
    assert_int_equal(state_of(last), MEM_FREE);
}

static char *shared;
static _Atomic unsigned next_part;
static pthread_barrier_t all_there; /* the stack of a later one could lie at the same addresses */

static void *release_parts(void *arg) {
    unsigned i;
    pthread_barrier_wait(&all_there);
    while ((i = atomic_fetch_add(&next_part, 1)) < PARTS)
        must(sy_os_release(shared + i * (BYTES / PARTS), BYTES / PARTS) == 0);
    return arg;
}

static void threads_may_release_the_parts(void **state) {
    (void)state;
    assert_int_equal(pthread_barrier_init(&all_there, NULL, 3), 0);
    for (int round = 0; round < 50; round++) {
        pthread_t threads[3];
        shared = committed(BYTES);
        next_part = 0;
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, release_parts, NULL), 0);
        for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(state_of(shared), MEM_FREE);
    }
    pthread_barrier_destroy(&all_there);
}

static const uint64_t FILLED = UINT64_C(0x0123456789abcdef);
static _Atomic bool over;
static _Atomic unsigned zeros, patterns;

static void *read_words(void *arg) {
    const uint64_t *words = arg;
    while (!over) {
        for (size_t i = 0; i < BYTES / sizeof *words; i += 37) {
            uint64_t seen = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
            must(seen == 0 || seen == FILLED);
            atomic_fetch_add(seen == 0 ? &zeros : &patterns, 1);
        }
    }
    return NULL;
}

static void readers_see_the_old_content_or_zero(void **state) {
    (void)state;
    uint64_t *words = (uint64_t *)(void *)committed(BYTES);
    pthread_t reader;
    memset(words, 0, BYTES);
    over = false;
    assert_int_equal(pthread_create(&reader, NULL, read_words, words), 0);
    for (int round = 0; round < 200 || !zeros || !patterns; round++) {
        for (size_t i = 0; i < BYTES / sizeof *words; i++)
            __atomic_store_n(&words[i], FILLED, __ATOMIC_RELAXED);
        assert_int_equal(sy_os_discard(words, BYTES), 0);
        for (size_t i = 0; i < BYTES / sizeof *words; i++) assert_int_equal(words[i], 0);
    }
    over = true;
    assert_int_equal(pthread_join(reader, NULL), 0);
    words[1] = FILLED; /* a write after the discard is kept */
    Sleep(1);
    assert_int_equal(words[1], FILLED);
    assert_int_equal(sy_os_release(words, BYTES), 0);
}

static void reservations_are_aligned(void **state) {
    (void)state;
    char *all[50];
    for (size_t i = 0; i < 50; i++) {
        all[i] = sy_os_reserve(BYTES + i * PAGE, ALIGN, "test");
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % ALIGN, 0);
    }
    for (size_t i = 0; i < 50; i++) assert_int_equal(sy_os_release(all[i], BYTES + i * PAGE), 0);
}

static void the_systems_last_error_stays(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    SetLastError(LAST_ERROR);
    char *start = sy_os_reserve(BYTES, ALIGN, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, BYTES), 0);
    assert_int_equal(sy_os_guard(start, PAGE, true), 0);
    assert_false(sy_os_is_written(start));
    assert_int_equal(sy_os_discard(start + PAGE, BYTES - PAGE), 0);
    sy_os_wait_for(&word, 0, 1000);
    (void)sy_os_random();
    assert_int_equal(sy_os_release(start, PAGE), 0);
    assert_int_equal(sy_os_release(start + PAGE, BYTES - PAGE), 0);
    assert_int_equal(GetLastError(), LAST_ERROR);
}

static void guards_cost_nothing_and_read_as_zero_afterwards(void **state) {
    (void)state;
    char *start = committed(4 * PAGE);
    assert_int_equal(sy_os_guard(start + PAGE, PAGE, true), 0);
    assert_int_equal(state_of(start + PAGE), MEM_RESERVE);
    assert_int_equal(sy_os_guard(start, 4 * PAGE, false), 0);
    assert_int_equal(start[PAGE], 0);
    assert_int_equal(start[2 * PAGE], 1);
    assert_int_equal(sy_os_release(start, 4 * PAGE), 0);
}

static void blocks_have_any_alignment(void **state) {
    (void)state;
    for (size_t align = 1; align <= 1 << 16; align *= 2) {
        char *block = sy_os_block(100, align);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % align, 0);
        memset(block, 1, 100);
        sy_os_block_free(block);
    }
    sy_os_block_free(malloc(100));
}

static _Atomic unsigned ends;

static void at_end(void *arg) {
    int *rounds = arg;
    ends++;
    if (--*rounds > 0) must(sy_os_at_thread_exit(at_end, rounds) == 0);
}

static void *end_with_hook(void *arg) {
    must(sy_os_at_thread_exit(at_end, arg) == 0);
    return NULL;
}

static void a_hook_runs_at_the_end_of_its_thread(void **state) {
    (void)state;
    int rounds = 2; /* it registers itself once more */
    in_thread(end_with_hook, &rounds);
    assert_int_equal(ends, 2);
    int none = 1;
    assert_int_equal(sy_os_at_thread_exit(at_end, &none), 0);
    assert_int_equal(sy_os_at_thread_exit(at_end, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_ends_with_its_last_part),
        cmocka_unit_test(threads_may_release_the_parts),
        cmocka_unit_test(readers_see_the_old_content_or_zero),
        cmocka_unit_test(reservations_are_aligned),
        cmocka_unit_test(the_systems_last_error_stays),
        cmocka_unit_test(guards_cost_nothing_and_read_as_zero_afterwards),
        cmocka_unit_test(blocks_have_any_alignment),
        cmocka_unit_test(a_hook_runs_at_the_end_of_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
