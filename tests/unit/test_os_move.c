/*
 * test_os_move.c: sy_os_move on the real system: what moves, what stays, and what is lost if the
 * system refuses; and reservations near the most mappings that a process may have.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/sanitized.h"
#include "support/services.h"

static size_t page;

static unsigned char *reserve_committed(size_t bytes) {
    unsigned char *start = sy_os_reserve(bytes, page, "test");
    must(start != NULL);
    must(sy_os_commit(start, bytes) == 0);
    return start;
}

static bool readable(const void *address) {
    int ends[2];
    must(pipe(ends) == 0);
    ssize_t written = write(ends[1], address, 1);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

static bool resident(void *address) {
    unsigned char state = 0;
    must(mincore(address, page, &state) == 0);
    return (state & 1) != 0;
}

/* For tests that change the whole process. */
static void run_in_child(void (*body)(void *), void *arg) {
    if (SANITIZED) skip();
    assert_int_equal(in_child(body, arg), 0);
}

static void move_takes_memory_along(void **state) {
    (void)state;
    unsigned char *from = reserve_committed(4 * page), *to = reserve_committed(4 * page);
    memset(from, 0xa5, 3 * page);
    memset(to, 0x11, 4 * page);
    bool lost;
    if (sy_os_move(from, to, 3 * page, &lost) == 0) { /* older kernels cannot */
        assert_int_equal(from[0], 0xa5);
        to[0] = 1;
    } else {
        assert_int_equal(to[0], 0xa5);
        assert_int_equal(to[3 * page - 1], 0xa5);
        assert_int_equal(to[3 * page], 0x11);
        assert_false(resident(from));
        assert_int_equal(from[0], 0);
        from[0] = 1;
    }
    assert_int_equal(sy_os_release(from, 4 * page), 0);
    assert_int_equal(sy_os_release(to, 4 * page), 0);
}

/* A limit that leaves no room for more is no obstacle, since a move takes nothing. */
static void move_below_a_limit(void *of_data) {
    unsigned char *from = reserve_committed(page), *to = reserve_committed(page);
    struct rlimit limit = {(rlim_t)PTRDIFF_MAX / 2, RLIM_INFINITY};
    bool lost;
    must(setrlimit(*(int *)of_data ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0);
    from[0] = 1;
    errno = 7;
    must(sy_os_move(from, to, page, &lost) == (sy_os_can_move() ? page : 0));
    must(errno == 7 && !lost);
    must(from[0] + to[0] == 1);
}

static void memory_moves_below_a_limit(void **state) {
    (void)state;
    for (int of_data = 0; of_data < 2; of_data++) run_in_child(move_below_a_limit, &of_data);
}

/* The kernel unmaps the target, refuses, and maps nothing there again. */
static void move_above_a_limit(void *of_data) {
    unsigned char *from = reserve_committed(3 * page), *to = reserve_committed(3 * page);
    struct rlimit limit = {page, RLIM_INFINITY};
    bool lost, can = sy_os_can_move();
    must(setrlimit(*(int *)of_data ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0);
    from[0] = 1;
    errno = 7;
    must(sy_os_move(from, to, page, &lost) == 0 && errno == 7 && lost == can && from[0] == 1);
    if (!can) return;
    must(!sy_os_can_move() && !readable(to));
    must(sy_os_move(from, to + page, page, &lost) == 0 && !lost && readable(to + page));
}

static void a_target_that_was_lost_is_told(void **state) {
    (void)state;
    for (int of_data = 0; of_data < 2; of_data++) run_in_child(move_above_a_limit, &of_data);
}

/* As many mappings as the kernel allows, but for `spare`. False: it allows very many. */
static bool use_up_mappings(int spare) {
    enum { MOST = 1 << 18 };
    const int private = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char *start = mmap(NULL, 2 * MOST * page, PROT_NONE, private, -1, 0);
    must(start != MAP_FAILED);
    size_t count = 0;
    while (count < MOST && mprotect(start + 2 * count * page, page, PROT_READ) == 0) count++;
    for (size_t i = 0; i < (size_t)spare / 2; i++)
        must(munmap(start + 2 * i * page, 2 * page) == 0);
    return count < MOST;
}

/* What moves and what stays are the front and the end of the range, and nothing is lost. */
static void move_without_mappings(void *spare) {
    enum { PAGES = 64 };
    unsigned char *from = reserve_committed(PAGES * page), *to = reserve_committed(PAGES * page);
    bool lost;
    for (size_t i = 0; i < PAGES; i++) from[i * page] = (unsigned char)(i + 1);
    for (size_t i = 0; i < PAGES; i += 2) must(mprotect(from + i * page, page, PROT_READ) == 0);
    if (!use_up_mappings(*(int *)spare)) return;
    size_t moved = sy_os_move(from, to, PAGES * page, &lost);
    must(!lost && moved % page == 0 && moved <= PAGES * page);
    for (size_t i = 0; i < PAGES; i++) {
        must(to[i * page] == (i < moved / page ? i + 1 : 0));
        must(from[i * page] == (i < moved / page ? 0 : i + 1));
    }
    if (sy_os_can_move() && *(int *)spare == 40) must(moved > 0 && moved < PAGES * page);
}

static void near_the_most_mappings_a_part_moves(void **state) {
    (void)state;
    for (int spare = 0; spare <= 200; spare += 20) run_in_child(move_without_mappings, &spare);
}

/* Two mappings, which some kernels do not move in one call. */
static void move_of_two_mappings_is_whole_or_not_at_all(void **state) {
    (void)state;
    unsigned char *from = reserve_committed(2 * page), *to = reserve_committed(2 * page);
    bool lost;
    memset(from, 0xa5, 2 * page);
    assert_int_equal(mprotect(from + page, page, PROT_READ), 0);
    errno = 0;
    bool moved = sy_os_move(from, to, 2 * page, &lost) == 2 * page;
    assert_int_equal(moved, sy_os_can_move());
    assert_false(lost);
    assert_int_equal(errno, 0);
    assert_int_equal(moved ? to[2 * page - 1] : from[2 * page - 1], 0xa5);
    assert_int_equal(from[0], moved ? 0 : 0xa5);
    assert_int_equal(sy_os_commit(to, 2 * page), 0);
    memset(to, 1, 2 * page);
    assert_int_equal(sy_os_release(from, 2 * page), 0);
    assert_int_equal(sy_os_release(to, 2 * page), 0);
}

/* ---- reservations near the most mappings ---- */

/* Reservations of several alignments, which are released in part: the last one, one between. */
static void reserve_without_mappings(void *arg) {
    (void)arg;
    enum { COUNT = 24 };
    unsigned char *starts[COUNT];
    sy_os_release(reserve_committed(page), page);
    if (!use_up_mappings(0)) return;
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            size_t align = page << i % 11;
            starts[i] = sy_os_reserve(4 * page, align, "test");
            must(starts[i] && (uintptr_t)starts[i] % align == 0);
            must(sy_os_commit(starts[i], page) == 0 && sy_os_commit(starts[i], 4 * page) == 0);
            for (size_t at = 0; at < 4 * page; at++) must(starts[i][at] == 0);
            memset(starts[i], 1, 4 * page);
        }
        for (size_t i = COUNT; i-- > 0;)
            if (sy_os_release(starts[i], 4 * page) != 0) must(errno == ENOMEM);
    }
    must(!sy_os_reserve(SIZE_MAX - page + 1, page, "test") && errno == ENOMEM);
}

static void without_mappings_there_is_still_address_space(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    run_in_child(reserve_without_mappings, NULL);
}

/* ---- reservations where all memory is locked ---- */

/* More than the process may lock, if it may not lock all: a reservation counts for nothing. */
static void reserve_where_all_is_locked(void *arg) {
    (void)arg;
    const size_t much = sizeof(size_t) == 4 ? (size_t)1 << 30 : (size_t)(UINT64_C(1) << 32);
    struct rlimit limit;
    sy_os_release(reserve_committed(page), page);
    if (sy_os_locks_all()) return; /* the caller of the tests has locked all */
    if (is_emulated()) return;     /* what is locked cannot be discarded there */
    must(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (limit.rlim_cur < 64 * page || mlockall(MCL_FUTURE) != 0) return;
    for (size_t align = page; align && align <= 1024 * page; align *= 1024) {
        unsigned char *start = sy_os_reserve(much, align, "test");
        must(start && (uintptr_t)start % align == 0 && sy_os_locks_all() && !sy_os_can_move());
        must(sy_os_commit(start, much / 2) == 0 && !resident(start));
        must(sy_os_lock(start, page, true) == 0 && resident(start));
        must(sy_os_discard(start, page) == 0 && start[0] == 0);
        must(sy_os_lock(start, page, false) == 0 && sy_os_release(start, much) == 0);
    }
    must(munlockall() == 0);
    must(sy_os_release(sy_os_reserve(page, page, NULL), page) == 0 && !sy_os_locks_all());
}

static void reserve_without_rights(void *arg) {
    if (setresuid(65534, 65534, 65534) == 0) reserve_where_all_is_locked(arg);
}

static void reservations_are_never_locked(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    run_in_child(reserve_where_all_is_locked, NULL);
    if (geteuid() == 0) run_in_child(reserve_without_rights, NULL);
}

int main(void) {
    page = sy_os_page_size();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(move_takes_memory_along),
        cmocka_unit_test(memory_moves_below_a_limit),
        cmocka_unit_test(a_target_that_was_lost_is_told),
        cmocka_unit_test(near_the_most_mappings_a_part_moves),
        cmocka_unit_test(move_of_two_mappings_is_whole_or_not_at_all),
        cmocka_unit_test(without_mappings_there_is_still_address_space),
        cmocka_unit_test(reservations_are_never_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
