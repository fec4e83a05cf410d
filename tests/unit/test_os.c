/*
 * test_os.c: the contract of os.h on the real system, one promise a test, and the fake that the
 * other tests rely on. Here the fake passes every call to the real system unless a test scripts it.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "os/fake.h"
#include "os/os.h"
#include "support/emulated.h"
#include "support/locked.h"
#include "support/sanitized.h"
#include "support/services.h"
#include "support/small_pages.h"

static size_t page;

static unsigned char *reserve_committed(size_t bytes) {
    unsigned char *start = sy_os_reserve(bytes, page, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, bytes), 0);
    return start;
}

/* Asks the kernel to read the byte, so that an unreadable byte causes no signal. */
static bool readable(const void *address) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    ssize_t written = write(ends[1], address, 1);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

static bool resident(void *address) {
    unsigned char state = 0;
    assert_int_equal(mincore(address, page, &state), 0);
    return (state & 1) != 0;
}

/* ---- memory ---- */

static void reserve_gives_every_alignment(void **state) {
    (void)state;
    for (size_t align = page; align <= (size_t)1 << 30; align *= 2) {
        void *start = sy_os_reserve(3 * page, align, "test");
        assert_non_null(start);
        assert_int_equal((uintptr_t)start % align, 0);
        assert_int_equal(sy_os_release(start, 3 * page), 0);
    }
}

static void reserve_is_not_accessible(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    unsigned char *start = sy_os_reserve(page, page, NULL);
    assert_non_null(start);
    assert_false(readable(start));
    assert_int_equal(sy_os_release(start, page), 0);
}

static void reserve_of_too_much_is_enomem(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_os_reserve(SIZE_MAX - page + 1, page, NULL));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(sy_os_reserve(SIZE_MAX - page + 1, (size_t)1 << 30, NULL));
    assert_int_equal(errno, ENOMEM);
}

static void commit_reads_as_zero_and_can_be_written(void **state) {
    (void)state;
    unsigned char *start = reserve_committed(4 * page);
    for (size_t at = 0; at < 4 * page; at++) assert_int_equal(start[at], 0);
    memset(start, 0xa5, 4 * page);
    assert_int_equal(sy_os_release(start, 4 * page), 0);
}

static void commit_takes_no_memory(void **state) {
    needs(SY_OS_FREE_ADDRESSES);
    (void)state;
    unsigned char *start = reserve_committed(page);
    assert_false(resident(start));
    assert_int_equal(sy_os_release(start, page), 0);
}

static void commit_of_a_part_leaves_the_rest(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    unsigned char *start = sy_os_reserve(3 * page, page, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start + page, page), 0);
    assert_false(readable(start));
    assert_true(readable(start + page));
    assert_false(readable(start + 2 * page));
    assert_int_equal(sy_os_release(start, 3 * page), 0);
}

static void commit_twice_keeps_the_content(void **state) {
    (void)state;
    unsigned char *start = reserve_committed(page);
    start[17] = 42;
    assert_int_equal(sy_os_commit(start, page), 0);
    assert_int_equal(start[17], 42);
    assert_int_equal(sy_os_release(start, page), 0);
}

static void populate_backs_and_keeps_the_content(void **state) {
    (void)state;
    unsigned char *start = reserve_committed(3 * page);
    start[page] = 42;
    assert_int_equal(sy_os_populate(start, 3 * page), 0);
    for (size_t i = 0; i < 3; i++) assert_true(resident(start + i * page));
    assert_int_equal(start[page], 42);
    assert_int_equal(start[0], 0);
    assert_int_equal(sy_os_release(start, 3 * page), 0);
}

static void discard_gives_memory_back_and_reads_as_zero(void **state) {
    needs(SY_OS_DISCARDS);
    (void)state;
    unsigned char *start = reserve_committed(2 * page);
    memset(start, 0xa5, 2 * page);
    assert_int_equal(sy_os_discard(start, page), 0);
    assert_false(resident(start));
    assert_int_equal(start[0], 0);
    assert_int_equal(start[page], 0xa5);
    assert_int_equal(sy_os_release(start, 2 * page), 0);
}

/* The number of mappings of the process. */
static int count_mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    int lines = 0;
    for (int c; (c = getc(maps)) != EOF;) lines += c == '\n';
    fclose(maps);
    return lines;
}

static void decommit_makes_one_mapping_of_what_was_moved(void **state) {
    needs(SY_OS_MOVES);
    (void)state;
    enum { PAGES = 16 };
    unsigned char *from = reserve_committed(PAGES * page), *to = reserve_committed(PAGES * page);
    memset(from, 0xa5, PAGES * page);
    memset(to, 0x11, PAGES * page);
    (void)count_mappings(); /* stdio allocates its buffer here */
    int before = count_mappings();
    bool lost;
    for (size_t at = 0; at < PAGES; at += 2) /* every second page, in reverse order */
        if (!sy_os_move(from + (PAGES - 2 - at) * page, to + at * page, page, &lost)) break;
    if (sy_os_can_move()) assert_true(count_mappings() >= before + PAGES / 2);
    assert_int_equal(sy_os_decommit(to, PAGES * page), 0);
    assert_false(resident(to));
    assert_int_equal(sy_os_commit(to, PAGES * page), 0);
    assert_true(count_mappings() <= before);
    for (size_t at = 0; at < PAGES * page; at++) assert_int_equal(to[at], 0);
    memset(to, 1, PAGES * page);
    assert_int_equal(sy_os_release(from, PAGES * page), 0);
    assert_int_equal(sy_os_release(to, PAGES * page), 0);
}

static void discard_works_on_locked_memory(void **state) {
    needs(SY_OS_LOCKS);
    (void)state;
    unsigned char *start = reserve_committed(page);
    bool locked = mlock(start, page) == 0, can = discards_locked(start, page);
    memset(start, 0xa5, page);
    int discarded = sy_os_discard(start, page);
    unsigned char first = start[0];
    assert_int_equal(sy_os_release(start, page), 0);
    if (!locked || !can || is_emulated()) skip(); /* the emulator ignores the advice */
    assert_int_equal(discarded, 0);
    assert_int_equal(first, 0);
}

static void release_of_a_part_leaves_the_rest(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    unsigned char *start = reserve_committed(3 * page);
    start[0] = 1;
    start[2 * page] = 3;
    assert_int_equal(sy_os_release(start + page, page), 0);
    assert_int_equal(start[0], 1);
    assert_int_equal(start[2 * page], 3);
    assert_false(readable(start + page));
    assert_int_equal(sy_os_release(start, page), 0);
    assert_int_equal(sy_os_release(start + 2 * page, page), 0);
}

static void a_word_is_written_if_it_is_not_zero(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    unsigned char *start = reserve_committed(2 * page);
    start[page + 7] = 1;
    errno = 1234;
    assert_false(sy_os_is_written(start));
    assert_false(sy_os_is_written(start + page));
    assert_true(sy_os_is_written(start + page + 4));
    assert_int_equal(sy_os_discard(start, 2 * page), 0);
    assert_false(sy_os_is_written(start + page + 4));
    assert_int_equal(sy_os_release(start, 2 * page), 0);
    assert_false(sy_os_is_written(start)); /* nothing is mapped there */
    assert_false(sy_os_is_written((void *)(uintptr_t)(UINTPTR_MAX - 3)));
    assert_int_equal(errno, 1234);
}

/* The fake takes small pages instead. */
int __real_sy_os_make_huge(void *start, size_t bytes);

/* Whether the system has a huge page at this moment is not known. */
static void a_huge_page_keeps_the_content(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    const size_t bytes = 2 << 20;
    unsigned char *start = sy_os_reserve(bytes, bytes, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, bytes), 0);
    start[page] = 42;
    errno = 1234;
    bool huge = __real_sy_os_make_huge(start, bytes) == 0;
    assert_true(!huge || errno == 1234);
    assert_true(huge || !resident(start + bytes - page));
    assert_int_equal(start[page], 42);
    assert_int_equal(start[0], 0);
    assert_int_equal(sy_os_discard(start + page, page), 0);
    assert_int_equal(start[page], 0);
    assert_int_equal(sy_os_release(start, bytes), 0);
}

static void memory_gets_no_huge_pages_unasked(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    if (!has_small_page_advice()) skip();
    unsigned char *from = reserve_committed(2 * page), *to = reserve_committed(2 * page);
    assert_true(keeps_small_pages(from));
    bool lost;
    assert_true(sy_os_move(from, to, page, &lost) == page || !sy_os_can_move());
    assert_true(keeps_small_pages(from));
    assert_true(keeps_small_pages(to));
    assert_int_equal(sy_os_decommit(to, 2 * page), 0);
    assert_true(keeps_small_pages(to));
    assert_int_equal(sy_os_release(from, 2 * page), 0);
    assert_int_equal(sy_os_release(to, 2 * page), 0);
}

/* The mapping is one before and after, and no other part of it may get huge pages. */
static void a_huge_page_does_not_split_the_mapping(void **state) {
    needs(SY_OS_HUGE_PAGES);
    (void)state;
    const size_t bytes = 2 << 20;
    if (!has_small_page_advice()) skip();
    unsigned char *start = sy_os_reserve(3 * bytes, bytes, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, 3 * bytes), 0);
    (void)count_mappings(); /* stdio allocates its buffer here */
    int before = count_mappings();
    (void)__real_sy_os_make_huge(start + bytes, bytes);
    assert_int_equal(count_mappings(), before);
    for (size_t i = 0; i < 3; i++) assert_true(keeps_small_pages(start + i * bytes));
    start[bytes - 1] = start[2 * bytes] = 1;
    assert_false(resident(start));
    assert_false(resident(start + 3 * bytes - page));
    assert_int_equal(sy_os_release(start, 3 * bytes), 0);
}

static void huge_advice_leaves_the_content(void **state) {
    (void)state;
    size_t bytes = (size_t)2 << 20;
    unsigned char *start = sy_os_reserve(bytes, bytes, "test");
    assert_non_null(start);
    assert_int_equal(sy_os_commit(start, bytes), 0);
    start[5] = 42;
    (void)sy_os_huge(start, bytes, true);
    assert_int_equal(start[5], 42);
    (void)sy_os_huge(start, bytes, false);
    assert_int_equal(start[5], 42);
    assert_int_equal(sy_os_release(start, bytes), 0);
}

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    size_t lines = 0;
    for (int byte; (byte = fgetc(maps)) != EOF;) lines += byte == '\n';
    fclose(maps);
    return lines;
}

static void guard_shuts_pages_and_loses_the_content(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    unsigned char *start = reserve_committed(3 * page);
    memset(start, 0xa5, 3 * page);
    errno = 1234;
    assert_int_equal(sy_os_guard(start + page, page, true), 0);
    assert_int_equal(errno, 1234);
    assert_true(readable(start + page - 1));
    assert_false(readable(start + page));
    assert_false(readable(start + 2 * page - 1));
    assert_true(readable(start + 2 * page));
    assert_int_equal(sy_os_guard(start, 3 * page, false), 0);
    assert_int_equal(start[page - 1], 0xa5);
    assert_int_equal(start[page], 0);
    assert_int_equal(start[2 * page - 1], 0);
    assert_int_equal(start[2 * page], 0xa5);
    start[page] = 1;
    assert_int_equal(sy_os_release(start, 3 * page), 0);
}

static void guard_twice_is_once(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    unsigned char *start = reserve_committed(2 * page);
    assert_int_equal(sy_os_guard(start, 2 * page, true), 0);
    assert_int_equal(sy_os_guard(start, 2 * page, true), 0);
    assert_int_equal(sy_os_guard(start, 2 * page, false), 0);
    assert_int_equal(sy_os_guard(start, 2 * page, false), 0);
    assert_true(readable(start) && readable(start + page));
    assert_int_equal(sy_os_release(start, 2 * page), 0);
}

/* Guards every second page. sy_os_guards_split says whether each guard is a mapping of its own, or
 * none is. */
static void guards_are_mappings_if_they_say_so(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    enum { PAGES = 64 };
    unsigned char *start = reserve_committed(PAGES * page);
    bool split = sy_os_guards_split();
    size_t before = mappings();
    for (size_t i = 0; i < PAGES; i += 2)
        assert_int_equal(sy_os_guard(start + i * page, page, true), 0);
    size_t after = mappings();
    assert_int_equal(sy_os_release(start, PAGES * page), 0);
    if (split)
        assert_true(after >= before + PAGES - 2);
    else
        assert_true(after <= before + 2);
}

static void guards_hold_in_the_child_of_a_fork(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    unsigned char *start = reserve_committed(2 * page);
    assert_int_equal(sy_os_guard(start, page, true), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool held = !readable(start) && readable(start + page);
        held &= sy_os_guard(start, page, false) == 0 && readable(start);
        _exit(held ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(readable(start));
    assert_int_equal(sy_os_release(start, 2 * page), 0);
}

/* Makes the process's kernel answer `error` to the advice `least` and to those with larger numbers.
 * 0: it accepts them and does nothing. */
static bool change_advice(unsigned least, unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

enum { POPULATE_WRITE = 23, GUARD_INSTALL = 102 };

/* Runs the body in a child with such a kernel, unless the system refuses the change. A process asks
 * its kernel once what it can do, so no earlier test may have asked. */
static void with_advice(unsigned least, unsigned error, void (*body)(void **state), void **state) {
    enum { REFUSED = 77 };
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!change_advice(least, error)) _exit(REFUSED);
        body(state);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED) skip();
    assert_int_equal(status, 0);
}

static void guard_by_mappings(void **state) {
    if (!sy_os_guards_split()) abort();
    guard_shuts_pages_and_loses_the_content(state);
    guard_twice_is_once(state);
    guards_are_mappings_if_they_say_so(state);
    guards_hold_in_the_child_of_a_fork(state);
}

/* The first of the guards' tests but for the one below. */
static void an_older_kernel_has_guards_too(void **state) {
    needs(SY_OS_FORKS);
    with_advice(GUARD_INSTALL, EINVAL, guard_by_mappings, state);
}

static void believe_no_advice(void **state) {
    if (sy_os_can_move()) abort();
    unsigned char *start = reserve_committed(page);
    if (__real_sy_os_make_huge(start, page) == 0) abort(); /* no kernel does that */
    populate_backs_and_keeps_the_content(state);
    guard_by_mappings(state);
}

/* Emulators do this. The first of all tests. */
static void a_kernel_that_accepts_any_advice_is_not_believed(void **state) {
    needs(SY_OS_FORKS);
    with_advice(POPULATE_WRITE, 0, believe_no_advice, state);
}

static void discard_nothing(void **state) {
    (void)state;
    unsigned char *start = reserve_committed(page);
    start[0] = 42;
    if (sy_os_discard(start, page) != -1 || start[0] != 42) abort();
}

/* Filters of system calls do this. */
static void a_discard_that_did_nothing_is_a_failure(void **state) {
    needs(SY_OS_DISCARDS | SY_OS_MOVES);
    with_advice(MADV_DONTNEED, 0, discard_nothing, state);
}

static void success_leaves_errno(void **state) {
    (void)state;
    errno = 1234;
    unsigned char *start = sy_os_reserve(page, (size_t)1 << 22, "test");
    int results = sy_os_commit(start, page);
    results |= sy_os_populate(start, page);
    if (sy_os_has(SY_OS_DISCARDS)) results |= sy_os_discard(start, page);
    if (sy_os_has(SY_OS_GUARDS)) results |= sy_os_guard(start, page, true);
    (void)sy_os_guards_split();
    results |= sy_os_release(start, page);
    (void)sy_os_cpu();
    (void)sy_os_cpu_count();
    (void)sy_os_memory_limit();
    (void)sy_os_random();
    int after = errno;
    assert_non_null(start);
    assert_int_equal(results, 0);
    assert_int_equal(after, 1234);
}

static void page_size_is_a_power_of_two(void **state) {
    (void)state;
    assert_true(page >= 4096);
    assert_int_equal(page & (page - 1), 0);
    assert_int_equal(sy_os_page_size(), page);
}

/* ---- processors and limits ---- */

static void cpu_is_a_small_number(void **state) {
    (void)state;
    assert_true((long)sy_os_cpu() < sysconf(_SC_NPROCESSORS_CONF));
}

/* Two threads bound to a processor each, and the numbers that they see while both run. */
typedef struct meeting {
    pthread_barrier_t barrier;
    _Atomic unsigned seen[2];
    _Atomic bool stop;
} meeting;

/* Binds the calling thread to the number-th of the processors that it may use. */
static void bind_to(unsigned number) {
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t p = 0; p < CPU_SETSIZE; p++)
        if (CPU_ISSET(p, &all) && number-- == 0) CPU_SET(p, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *look_at_cpu(void *arg) {
    meeting *met = arg;
    bind_to(1);
    pthread_barrier_wait(&met->barrier);
    while (!met->stop) met->seen[1] = sy_os_cpu();
    return NULL;
}

static void *compare_cpus(void *arg) {
    meeting *met = arg;
    bind_to(0);
    pthread_barrier_wait(&met->barrier);
    bool differed = false;
    for (uint64_t end = sy_os_now() + UINT64_C(20000000000); !differed && sy_os_now() < end;)
        differed = sy_os_cpu() != met->seen[1];
    met->stop = true;
    return differed ? met : NULL;
}

static void cpu_differs_between_running_threads(void **state) {
    (void)state;
    if (sy_os_cpu_count() < 2) skip();
    meeting met = {.seen = {0, 0}};
    assert_int_equal(pthread_barrier_init(&met.barrier, NULL, 2), 0);
    pthread_t looking, comparing;
    void *differed = NULL;
    assert_int_equal(pthread_create(&looking, NULL, look_at_cpu, &met), 0);
    assert_int_equal(pthread_create(&comparing, NULL, compare_cpus, &met), 0);
    pthread_join(looking, NULL);
    pthread_join(comparing, &differed);
    pthread_barrier_destroy(&met.barrier);
    assert_non_null(differed);
}

static void *count_on_one_processor(void *count) {
    bind_to(0);
    *(unsigned *)count = sy_os_affinity_count();
    return NULL;
}

/* The library may be used first by a thread that is bound to a processor. */
static void a_bound_thread_counts_the_processors_of_the_first_thread(void **state) {
    (void)state;
    if (sy_os_affinity_count() == 1) skip();
    unsigned count = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, count_on_one_processor, &count), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(count, sy_os_affinity_count());
}

static void cpu_count_honours_affinity(void **state) {
    needs(SY_OS_LIMITS | SY_OS_OBSERVER);
    (void)state;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    bind_to(0);
    unsigned count = sy_os_cpu_count();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(count, 1);
    assert_true(sy_os_cpu_count() >= 1);
    assert_true((int)sy_os_cpu_count() <= CPU_COUNT(&before));
}

static void memory_limit_honours_resource_limits(void **state) {
    needs(SY_OS_LIMITS);
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    struct rlimit lower = {.rlim_cur = (rlim_t)SIZE_MAX / 8 + 1, .rlim_max = before.rlim_max};
    if (before.rlim_cur < lower.rlim_cur || is_emulated()) skip(); /* it ignores limits */
    assert_int_equal(setrlimit(RLIMIT_DATA, &lower), 0);
    size_t limit = sy_os_memory_limit();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_true(limit <= SIZE_MAX / 8 + 1);
    assert_true(sy_os_memory_limit() >= limit);
}

/* ---- time and random numbers ---- */

static void now_does_not_go_back(void **state) {
    (void)state;
    uint64_t before = sy_os_now();
    usleep(1000);
    assert_true(sy_os_now() >= before + 1000000);
}

static void random_differs(void **state) {
    (void)state;
    uint64_t first = sy_os_random(), second = sy_os_random();
    assert_true(first != second);
}

/* ---- threads ---- */

static void wait_returns_at_once_if_the_word_differs(void **state) {
    (void)state;
    _Atomic uint32_t word = 1;
    sy_os_wait(&word, 0);
    assert_int_equal(word, 1);
}

static _Atomic uint32_t gate;

static void *wait_at_gate(void *arg) {
    while (gate == 0) sy_os_wait(&gate, 0);
    return arg;
}

static void wake_wakes(void **state) {
    (void)state;
    gate = 0;
    pthread_t sleepers[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&sleepers[i], NULL, wait_at_gate, NULL), 0);
    sy_fake_await_waiting(3);
    gate = 1;
    sy_os_wake(&gate, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(pthread_join(sleepers[i], NULL), 0);
}

/* No thread wakes it: it ends because its time is over. */
static void wait_for_ends_by_itself(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    errno = 77;
    sy_os_wait_for(&word, 0, 1000000);
    sy_os_wait_for(&word, 1, UINT64_MAX);
    sy_os_wait_for(&word, 0, 0);
    assert_int_equal(errno, 77);
}

static void *wait_for_gate(void *arg) {
    while (gate == 0) sy_os_wait_for(&gate, 0, UINT64_C(3600) * 1000000000);
    return arg;
}

static void wake_wakes_from_wait_for(void **state) {
    (void)state;
    gate = 0;
    pthread_t sleeper;
    assert_int_equal(pthread_create(&sleeper, NULL, wait_for_gate, NULL), 0);
    sy_fake_await_waiting(1);
    gate = 1;
    sy_os_wake(&gate, 1);
    assert_int_equal(pthread_join(sleeper, NULL), 0);
}

static void open_gate(void) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    bool all = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1) &&
               sigismember(&blocked, SIGINT);
    gate = all ? 1 : 2;
    sy_os_wake(&gate, 1);
}

static const sy_os_background gate_opener = {.body = open_gate, .name = "opener"};

static void a_thread_starts_without_signals(void **state) {
    needs(SY_OS_BACKGROUND);
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    gate = 0;
    errno = 77;
    assert_int_equal(sy_os_start_thread(&gate_opener), 0);
    while (gate == 0) sy_os_wait(&gate, 0);
    assert_int_equal(gate, 1);
    assert_int_equal(errno, 77);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
    sy_fake_fail_nth(SY_FAKE_START_THREAD, 1);
    assert_int_equal(sy_os_start_thread(&gate_opener), -1);
}

typedef struct exit_record {
    int runs, again;
    pthread_t thread;
    int registered;
    void *arg;
} exit_record;

static void note_exit(void *arg) {
    exit_record *record = arg;
    record->runs++;
    record->thread = pthread_self();
    if (record->again-- > 0) record->registered |= sy_os_at_thread_exit(note_exit, record);
}

static void *register_and_exit(void *arg) {
    exit_record *record = arg;
    record->registered = sy_os_at_thread_exit(note_exit, record);
    return NULL;
}

static exit_record run_thread(exit_record record, void *(*body)(void *)) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, &record), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(record.registered, 0);
    if (record.runs > 0) assert_true(pthread_equal(thread, record.thread));
    return record;
}

static void thread_exit_runs_the_hook_on_the_thread(void **state) {
    (void)state;
    assert_int_equal(run_thread((exit_record){0}, register_and_exit).runs, 1);
}

static void thread_exit_hook_may_register_again(void **state) {
    (void)state;
    assert_int_equal(run_thread((exit_record){.again = 2}, register_and_exit).runs, 3);
}

static void *register_and_take_back(void *arg) {
    exit_record *record = arg;
    record->registered = sy_os_at_thread_exit(note_exit, record);
    record->registered |= sy_os_at_thread_exit(note_exit, NULL);
    return NULL;
}

static void thread_exit_null_takes_it_back(void **state) {
    (void)state;
    assert_int_equal(run_thread((exit_record){0}, register_and_take_back).runs, 0);
}

static void other_hook(void *arg) { (void)arg; }

static void thread_exit_refuses_a_second_hook(void **state) {
    (void)state;
    assert_int_equal(sy_os_at_thread_exit(note_exit, NULL), 0);
    errno = 0;
    assert_int_equal(sy_os_at_thread_exit(other_hook, NULL), -1);
    assert_int_equal(errno, EINVAL);
}

static char fork_order[5];
static size_t fork_steps;

static void note_fork_step(char step) {
    if (fork_steps < sizeof fork_order - 1) fork_order[fork_steps++] = step;
}

static void first_prepare(void) { note_fork_step('p'); }
static void second_prepare(void) { note_fork_step('P'); }
static void first_after(void) { note_fork_step('a'); }
static void second_after(void) { note_fork_step('A'); }

static void fork_hooks_run_in_order(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(sy_os_at_fork(first_prepare, first_after, first_after), 0);
    assert_int_equal(sy_os_at_fork(second_prepare, second_after, second_after), 0);
    pid_t child = fork();
    if (child == 0) _exit(strcmp(fork_order, "PpaA"));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(fork_order, "PpaA");
}

/* ---- options and texts ---- */

static void option_is_what_the_environment_says(void **state) {
    (void)state;
    setenv("SLABYARD_TEST", "one,two", 1);
    errno = 1234;
    assert_string_equal(sy_os_option("SLABYARD_TEST"), "one,two");
    unsetenv("SLABYARD_TEST");
    assert_null(sy_os_option("SLABYARD_TEST"));
    assert_int_equal(errno, 1234);
}

/* A copy of this program that runs with its owner's rights, started by another user. */
static int ask_with_more_rights(const char *copy, unsigned mode) {
    char command[512];
    snprintf(command, sizeof command, "cp /proc/%d/exe %s && chmod %o %s", (int)getpid(), copy,
             mode, copy);
    assert_int_equal(system(command), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("SLABYARD_TEST", "here", 1);
        if (setgid(65534) != 0 || setuid(65534) != 0) _exit(100);
        execl(copy, copy, "option", (char *)NULL);
        _exit(101);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(unlink(copy), 0);
    return status;
}

static void option_is_none_with_more_rights_than_the_user(void **state) {
    (void)state;
    struct statvfs about;
    assert_int_equal(statvfs("/tmp", &about), 0);
    bool possible = geteuid() == 0 && !(about.f_flag & (ST_NOSUID | ST_NOEXEC)) &&
                    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
    if (!possible || SANITIZED) skip(); /* setarch has no effect on such a copy */
    if (is_emulated()) skip();          /* the system cannot start the copy */
    char copy[] = "/tmp/test_os_XXXXXX";
    int file = mkstemp(copy);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(WEXITSTATUS(ask_with_more_rights(copy, 0755)), 1);
    assert_int_equal(WEXITSTATUS(ask_with_more_rights(copy, 04755)), 0);
}

static void a_pipe_is_no_terminal_and_a_terminal_is(void **state) {
    (void)state;
    int ends[2], terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_int_equal(pipe(ends), 0);
    errno = 1234;
    assert_false(sy_os_is_terminal(ends[1]));
    assert_int_equal(errno, 1234);
    if (terminal >= 0) assert_true(sy_os_is_terminal(terminal));
    close(terminal);
    close(ends[0]);
    close(ends[1]);
}

static void append_makes_a_file_and_adds_to_it(void **state) {
    (void)state;
    char path[] = "/tmp/test_os_XXXXXX", text[16] = {0};
    int file = mkstemp(path);
    assert_true(file >= 0 && unlink(path) == 0);
    close(file);
    errno = 1234;
    assert_int_equal(sy_os_append(path, "slab", 4), 0);
    assert_int_equal(sy_os_append(path, "yards", 4), 0);
    assert_int_equal(errno, 1234);
    file = open(path, O_RDONLY);
    assert_int_equal(read(file, text, sizeof text), 8);
    assert_string_equal(text, "slabyard");
    struct stat about;
    assert_int_equal(fstat(file, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    close(file);
    unlink(path);
}

static void append_says_what_went_wrong(void **state) {
    (void)state;
    errno = 0;
    assert_int_equal(sy_os_append("/nowhere/report", "slab", 4), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(sy_os_append("/dev/full", "slab", 4), -1);
    assert_int_equal(errno, ENOSPC);
}

static void write_writes_all(void **state) {
    (void)state;
    int ends[2];
    char text[7] = {0};
    assert_int_equal(pipe(ends), 0);
    sy_os_write(ends[1], "slabyard", 6);
    assert_int_equal(read(ends[0], text, 6), 6);
    assert_string_equal(text, "slabya");
    close(ends[0]);
    close(ends[1]);
}

enum { LONG_TEXT = 1 << 20 };
static _Atomic bool text_is_written;

static void interrupt(int signal) { (void)signal; }

static void *write_long_text(void *end) {
    static char text[LONG_TEXT];
    for (size_t i = 0; i < LONG_TEXT; i++) text[i] = (char)('a' + i % 23);
    int error = sy_os_write(*(int *)end, text, LONG_TEXT);
    atomic_store(&text_is_written, true);
    return error ? end : NULL;
}

/* The pipe takes a part of the text at a time. Signals interrupt the rest. */
static void write_goes_on_after_signals(void **state) {
    (void)state;
    static char got[LONG_TEXT];
    int ends[2], waiting;
    pthread_t writer;
    void *failed = NULL;
    struct sigaction old, handler = {.sa_handler = interrupt};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sigaction(SIGUSR1, &handler, &old), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_long_text, &ends[1]), 0);
    for (size_t length = 0; length < LONG_TEXT;) {
        for (int i = 0; i < 20 && !atomic_load(&text_is_written); i++) {
            assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
            pthread_kill(writer, SIGUSR1);
            sched_yield();
        }
        struct pollfd more = {.fd = ends[0], .events = POLLIN};
        if (atomic_load(&text_is_written) && poll(&more, 1, 0) == 0) break;
        size_t most = LONG_TEXT - length < 9999 ? LONG_TEXT - length : 9999;
        ssize_t some = read(ends[0], got + length, most);
        assert_true(some > 0);
        length += (size_t)some;
    }
    pthread_join(writer, &failed);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    assert_null(failed);
    for (size_t i = 0; i < LONG_TEXT; i++)
        if (got[i] != (char)('a' + i % 23)) fail_msg("another text at %zu", i);
    close(ends[0]);
    close(ends[1]);
}

static void write_leaves_errno(void **state) {
    (void)state;
    errno = 1234;
    sy_os_write(-1, "slabyard", 8);
    assert_int_equal(errno, 1234);
}

/* ---- the end of the process ---- */

/* Runs `body` in a child. Returns the signal that ended the child, or 0. */
static int death_of(void (*body)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 2);
        body();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void end_process(void) { sy_os_abort(NULL); }

static int where_it_says_why[2];

static void say_why_and_end(void) {
    dup2(where_it_says_why[1], STDERR_FILENO);
    sy_os_abort("test: why\n");
}

static void abort_ends_the_process(void **state) {
    (void)state;
    char said[32] = "";
    assert_int_equal(death_of(end_process), SIGABRT);
    assert_int_equal(pipe(where_it_says_why), 0);
    assert_int_equal(death_of(say_why_and_end), SIGABRT);
    assert_true(read(where_it_says_why[0], said, 10) == 10); /* an emulator says more */
    assert_string_equal(said, "test: why\n");
    close(where_it_says_why[0]);
    close(where_it_says_why[1]);
}

/* ---- the fake ---- */

static bool reserve_works(void) {
    void *start = sy_os_reserve(page, page, NULL);
    if (start == NULL) return false;
    assert_int_equal(sy_os_release(start, page), 0);
    return true;
}

static void fake_fails_the_nth_call_once(void **state) {
    (void)state;
    sy_fake_fail_nth(SY_FAKE_RESERVE, 2);
    assert_true(reserve_works());
    errno = 0;
    assert_false(reserve_works());
    assert_int_equal(errno, ENOMEM);
    assert_true(reserve_works());
    assert_int_equal(sy_fake_failures(SY_FAKE_RESERVE), 1);
    assert_int_equal(sy_fake_failures(SY_FAKE_ANY), 1);
}

static void fake_fails_from_a_call_on(void **state) {
    (void)state;
    sy_fake_fail_from(SY_FAKE_RESERVE, 2);
    assert_true(reserve_works());
    assert_false(reserve_works());
    assert_false(reserve_works());
    sy_fake_succeed(SY_FAKE_RESERVE);
    assert_true(reserve_works());
}

static void fake_counts_calls_of_any_kind(void **state) {
    (void)state;
    sy_fake_fail_nth(SY_FAKE_ANY, 3); /* a reserve, after a reserve and a release */
    assert_true(reserve_works());
    assert_false(reserve_works());
    assert_int_equal(sy_fake_calls(SY_FAKE_ANY), 3);
}

static void fake_fails_above_a_size(void **state) {
    (void)state;
    sy_fake_fail_above(SY_FAKE_RESERVE, page);
    assert_true(reserve_works());
    assert_null(sy_os_reserve(2 * page, page, NULL));
}

static unsigned random_failures(uint64_t seed) {
    unsigned pattern = 0;
    sy_fake_fail_randomly(SY_FAKE_RESERVE, 500, seed);
    for (int i = 0; i < 30; i++) pattern = pattern << 1 | reserve_works();
    return pattern;
}

static void fake_fails_randomly_by_seed(void **state) {
    (void)state;
    unsigned first = random_failures(1);
    assert_int_equal(first, random_failures(1));
    assert_int_not_equal(first, random_failures(2));
    assert_true(first != 0 && first != (1u << 30) - 1);
}

static void fake_accounts_for_ranges(void **state) {
    (void)state;
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    unsigned char *start = sy_os_reserve(8 * page, page, NULL);
    assert_int_equal(sy_os_commit(start, 4 * page), 0);
    assert_int_equal(sy_os_commit(start + 2 * page, 4 * page), 0);
    assert_int_equal(sy_fake_reserved() - reserved, 8 * page);
    assert_int_equal(sy_fake_committed() - committed, 6 * page);
    assert_true(sy_fake_is_committed(start, 6 * page));
    assert_false(sy_fake_is_committed(start, 7 * page));
    size_t pieces = sy_fake_pieces();
    assert_int_equal(sy_os_release(start + page, 2 * page), 0);
    assert_int_equal(sy_fake_pieces(), pieces + 1);
    assert_int_equal(sy_fake_reserved() - reserved, 6 * page);
    assert_int_equal(sy_fake_committed() - committed, 4 * page);
    assert_int_equal(sy_os_release(start, page), 0);
    assert_int_equal(sy_os_release(start + 3 * page, 5 * page), 0);
    assert_int_equal(sy_fake_reserved(), reserved);
    assert_int_equal(sy_fake_committed(), committed);
    assert_int_equal(sy_fake_bytes(SY_FAKE_COMMIT), 8 * page);
}

static void fake_dictates_processor_and_clock(void **state) {
    (void)state;
    sy_fake_set_cpu(77);
    sy_fake_set_cpu_count(5);
    sy_fake_set_memory_limit(12345);
    sy_fake_set_clock(1000);
    sy_fake_advance_clock(5);
    assert_int_equal(sy_os_cpu(), 77);
    assert_int_equal(sy_os_cpu_count(), 5);
    assert_int_equal(sy_os_memory_limit(), 12345);
    assert_int_equal(sy_os_now(), 1005);
    assert_int_equal(sy_os_thread_time(), 1005);
    sy_fake_reset();
    assert_int_not_equal(sy_os_now(), 1005);
}

static void say_and_abort(void *text) {
    sy_os_write(2, text, strlen(text));
    sy_os_abort(" and why");
}

static void fake_catches_the_end(void **state) {
    (void)state;
    char words[] = "the last words";
    assert_true(sy_fake_catch(say_and_abort, words));
    assert_string_equal(sy_fake_written(), "the last words and why");
    assert_false(sy_fake_catch(other_hook, NULL));
    assert_string_equal(sy_fake_written(), "");
}

static void guard_of_reserved_only(void) {
    void *start = sy_os_reserve(page, page, NULL);
    (void)sy_os_guard(start, page, true);
}

static void commit_of_nothing_reserved(void) {
    static char ours[1 << 16];
    (void)sy_os_commit(ours + (-(uintptr_t)ours & (page - 1)), page);
}

static void discard_of_reserved_only(void) {
    void *start = sy_os_reserve(page, page, NULL);
    (void)sy_os_discard(start, page);
}

static void release_twice(void) {
    void *start = sy_os_reserve(page, page, NULL);
    (void)sy_os_release(start, page);
    (void)sy_os_release(start, page);
}

static void reserve_of_part_of_a_page(void) { (void)sy_os_reserve(page / 2, page, NULL); }

static void fake_aborts_on_broken_preconditions(void **state) {
    (void)state;
    assert_int_equal(death_of(commit_of_nothing_reserved), SIGABRT);
    assert_int_equal(death_of(discard_of_reserved_only), SIGABRT);
    assert_int_equal(death_of(guard_of_reserved_only), SIGABRT);
    assert_int_equal(death_of(release_twice), SIGABRT);
    assert_int_equal(death_of(reserve_of_part_of_a_page), SIGABRT);
}

static int reset_fake(void **state) {
    (void)state;
    sy_fake_reset();
    return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, reset_fake)

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return sy_os_option("SLABYARD_TEST") ? 1 : 0; /* run by ask_with_more_rights */
    page = sy_os_page_size();
    const struct CMUnitTest tests[] = {
        TEST(a_kernel_that_accepts_any_advice_is_not_believed),
        TEST(a_discard_that_did_nothing_is_a_failure),
        TEST(reserve_gives_every_alignment),
        TEST(reserve_is_not_accessible),
        TEST(reserve_of_too_much_is_enomem),
        TEST(commit_reads_as_zero_and_can_be_written),
        TEST(commit_takes_no_memory),
        TEST(commit_of_a_part_leaves_the_rest),
        TEST(commit_twice_keeps_the_content),
        TEST(populate_backs_and_keeps_the_content),
        TEST(discard_gives_memory_back_and_reads_as_zero),
        TEST(decommit_makes_one_mapping_of_what_was_moved),
        TEST(discard_works_on_locked_memory),
        TEST(release_of_a_part_leaves_the_rest),
        TEST(a_word_is_written_if_it_is_not_zero),
        TEST(a_huge_page_keeps_the_content),
        TEST(memory_gets_no_huge_pages_unasked),
        TEST(a_huge_page_does_not_split_the_mapping),
        TEST(huge_advice_leaves_the_content),
        TEST(an_older_kernel_has_guards_too),
        TEST(guard_shuts_pages_and_loses_the_content),
        TEST(guard_twice_is_once),
        TEST(guards_are_mappings_if_they_say_so),
        TEST(guards_hold_in_the_child_of_a_fork),
        TEST(success_leaves_errno),
        TEST(page_size_is_a_power_of_two),
        TEST(cpu_is_a_small_number),
        TEST(cpu_differs_between_running_threads),
        TEST(cpu_count_honours_affinity),
        TEST(a_bound_thread_counts_the_processors_of_the_first_thread),
        TEST(memory_limit_honours_resource_limits),
        TEST(now_does_not_go_back),
        TEST(random_differs),
        TEST(wait_returns_at_once_if_the_word_differs),
        TEST(wake_wakes),
        TEST(wait_for_ends_by_itself),
        TEST(wake_wakes_from_wait_for),
        TEST(a_thread_starts_without_signals),
        TEST(thread_exit_runs_the_hook_on_the_thread),
        TEST(thread_exit_hook_may_register_again),
        TEST(thread_exit_null_takes_it_back),
        TEST(thread_exit_refuses_a_second_hook),
        TEST(fork_hooks_run_in_order),
        TEST(option_is_what_the_environment_says),
        TEST(option_is_none_with_more_rights_than_the_user),
        TEST(a_pipe_is_no_terminal_and_a_terminal_is),
        TEST(append_makes_a_file_and_adds_to_it),
        TEST(append_says_what_went_wrong),
        TEST(write_writes_all),
        TEST(write_leaves_errno),
        TEST(abort_ends_the_process),
        TEST(fake_fails_the_nth_call_once),
        TEST(fake_fails_from_a_call_on),
        TEST(fake_counts_calls_of_any_kind),
        TEST(fake_fails_above_a_size),
        TEST(fake_fails_randomly_by_seed),
        TEST(fake_accounts_for_ranges),
        TEST(fake_dictates_processor_and_clock),
        TEST(fake_catches_the_end),
        TEST(fake_aborts_on_broken_preconditions),
        TEST(write_goes_on_after_signals),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
