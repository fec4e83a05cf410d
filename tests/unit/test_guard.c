/*
 * test_guard.c: objects on pages of their own. There is one region a process, so each test is a
 * child, with as many slots as it wants.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "debug/guard.h"
#include "debug/options.h"
#include "os/fake.h"
#include "os/os.h"
#include "os/start.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/services.h"

static size_t page;
static sy_watch watch, other;

/* ---- the last fault ---- */

static sy_fault last;
static unsigned faults;

static void note_fault(const sy_fault *fault) {
    last = *fault;
    faults++;
}

static sy_fault_kind take_fault(void) {
    must(faults <= 1);
    bool any = faults;
    faults = 0;
    return any ? last.kind : 0;
}

static bool explain(uintptr_t address) {
    return sy_guard_explain(&(sy_os_access){.address = address, .placed = true});
}

/* ---- a process of its own ---- */

static void begin(uint32_t slots, uint32_t every) {
    page = sy_os_page_size();
    must(sy_start() == 0);
    atomic_store(&sy_options_now.guard_slots, slots);
    atomic_store(&sy_options_now.guard_every, every);
    must(sy_watch_open(&watch, "watched", 100, SY_GUARD) == 0);
    must(sy_watch_open(&other, "other", 200, SY_GUARD) == 0);
    sy_set_fault_handler(note_fault);
}

#define RUN_WITH(services, name)                          \
    static void name(void **state) {                      \
        needs(SY_OS_GUARDS | (services));                 \
        (void)state;                                      \
        assert_int_equal(in_child(name##_here, NULL), 0); \
    }

#define RUN(name) RUN_WITH(0, name)

static bool readable(const void *address) {
    int ends[2];
    must(pipe(ends) == 0);
    ssize_t written = write(ends[1], address, 1);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

static char *take(size_t size, size_t align) {
    char *object = sy_guard_alloc(&watch, size, align);
    must(object && (uintptr_t)object % align == 0);
    must(sy_guard_verify() == 0);
    return object;
}

static void give(void *object) {
    must(sy_guard_free(&watch, object, SIZE_MAX, NULL, NULL));
    must(sy_guard_verify() == 0);
}

/* One that ends at its page's end, or begins at its start. */
static char *take_side(size_t size, bool left) {
    char *object = take(size, 1);
    if (((uintptr_t)object % page == 0) == left) return object;
    char *wanted = take_side(size, left);
    give(object);
    return wanted;
}

/* ---- where they lie ---- */

static void sides_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *one = take(100, 4), *two = take(100, 4), *three = take(100, 4);
    bool left = (uintptr_t)one % page == 0;
    must(((uintptr_t)two % page == 0) == !left && ((uintptr_t)three % page == 0) == left);
    char *at_left = left ? one : two, *at_right = left ? two : one;
    must((uintptr_t)(at_right + 100) % page == 0);
    must(!readable(at_left - 1) && readable(at_left) && readable(at_left + 99));
    must(!readable(at_right + 100) && readable(at_right) && readable(at_right + 99));
}
RUN(sides)

static void sizes_and_aligns_here(void *arg) {
    (void)arg;
    begin(2, 1000);
    for (size_t align = 1; align <= page; align *= 2)
        for (size_t size = 1; size <= page; size = size * 3 / 2 + 1) {
            char *objects[2] = {take(size, align), take(size, align)};
            for (int i = 0; i < 2; i++) {
                uintptr_t start = (uintptr_t)objects[i], end = start + size;
                must(start % page == 0 || page - 1 - (end - 1) % page < align);
                memset(objects[i], 0xa5, size);
            }
            give(objects[0]);
            give(objects[1]);
        }
}
RUN(sizes_and_aligns)

static void they_read_as_zero_here(void *arg) {
    (void)arg;
    begin(1, 1000);
    for (int round = 0; round < 4; round++) {
        char *object = take(64, 16);
        for (int i = 0; i < 64; i++) must(object[i] == 0);
        memset(object, 0xa5, 64);
        give(object);
    }
}
RUN(they_read_as_zero)

static void what_is_larger_than_a_page_is_not_guarded_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    errno = 1234;
    must(!sy_guard_alloc(&watch, page + 1, 16));
    must(!sy_guard_alloc(&watch, 64, 2 * page));
    must(!sy_guard_alloc(&watch, SIZE_MAX, 16));
    must(errno == 1234);
    give(take(page, page));
}
RUN(what_is_larger_than_a_page_is_not_guarded)

/* Of what is larger only the pages that it touches are open, in a run that has room for it. */
static void larger_ones_are_if_all_are_here(void *arg) {
    (void)arg;
    begin(8, 1);
    for (size_t align = 1; align <= 64 * page; align *= 8)
        for (size_t size = page; size <= 100 * page; size = size * 2 + 77)
            for (int side = 0; side < 2; side++) {
                char *object = take(size, align);
                memset(object, 0xa5, size);
                must(!readable((void *)(((uintptr_t)object & -page) - 1)));
                must(!readable((void *)(((uintptr_t)object + size + page - 1) & -page)));
                give(object);
                must(!readable(object) && !readable(object + size - 1));
            }
    must(!sy_guard_alloc(&watch, 256 * page, 1));
    must(!sy_guard_alloc(&watch, SIZE_MAX - page, 1));
}
RUN(larger_ones_are_if_all_are)

/* ---- reuse ---- */

static void the_one_freed_longest_ago_is_reused_here(void *arg) {
    (void)arg;
    begin(4, 1000);
    char *objects[4];
    for (int i = 0; i < 4; i++) objects[i] = take(page, page);
    errno = 1234;
    must(!sy_guard_alloc(&watch, 64, 16) && errno == 1234); /* there is none */
    static const int order[4] = {2, 0, 3, 1};
    for (int i = 0; i < 4; i++) give(objects[order[i]]);
    for (int i = 0; i < 4; i++) must(take(page, page) == objects[order[i]]);
}
RUN(the_one_freed_longest_ago_is_reused)

/* If all objects are guarded, slots are reused only after all of them were used. */
static void the_unused_come_before_the_freed_here(void *arg) {
    (void)arg;
    enum { SLOTS = 8192 };
    begin(SLOTS, 1);
    sy_fake_set_guards_split(true);
    static char *objects[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        objects[i] = sy_guard_alloc(&watch, page, page);
        if (i) must(objects[i] == objects[i - 1] + 2 * page);
        must(sy_guard_free(&watch, objects[i], SIZE_MAX, NULL, NULL));
    }
    for (int i = 0; i < SLOTS; i++) {
        must(!readable(objects[i]));
        must(sy_guard_alloc(&watch, page, page) == objects[i]);
    }
    must(!sy_guard_alloc(&watch, 64, 16) && sy_guard_verify() == 0);
}
RUN(the_unused_come_before_the_freed)

static sy_guard_counts counts_now(void) {
    sy_guard_counts counts;
    sy_guard_get_counts(&counts);
    return counts;
}

/* Slots of samples grow with the live objects: more than half wait, or are fresh. */
static void slots_grow_with_the_live_here(void *arg) {
    (void)arg;
    begin(2000, 1000);
    for (int i = 0; i < 1000; i++) give(take(64, 16));
    must(counts_now().held == 0 && counts_now().freed == 256);
    for (size_t live = 1; live <= 900; live++) {
        take(64, 16);
        char *object = take(page, page);
        give(object);
        for (size_t i = 0; i < 64 && live % 8 == 0; i++) {
            char *later = take(page, page);
            must(later != object);
            give(later);
        }
        must(counts_now().held == live && counts_now().freed < live + 513);
    }
    must(counts_now().left_out == 0);
}
RUN(slots_grow_with_the_live)

static __attribute__((noinline)) void *keep_one(void) {
    void *object = sy_guard_alloc(&watch, 64, 16);
    __asm__ volatile("" : "+r"(object));
    return object;
}

static __attribute__((noinline)) void *use_one(void) {
    void *object = sy_guard_alloc(&watch, 64, 16);
    __asm__ volatile("" : "+r"(object));
    return object;
}

/* However many objects a site keeps, others find a slot. What the site does not get is counted. */
static void a_site_that_keeps_all_leaves_some_here(void *arg) {
    (void)arg;
    begin(1024, 1000);
    size_t kept = 0;
    for (int i = 0; i < 5000; i++) kept += keep_one() != NULL;
    must(kept == 1024 - 256 && counts_now().left_out == 5000 - kept);
    must(counts_now().held == kept);
    for (int i = 0; i < 1000; i++) give(use_one());
    must(counts_now().left_out == 5000 - kept && sy_guard_verify() == 0);
}
RUN_WITH(SY_OS_STACKS, a_site_that_keeps_all_leaves_some)

/* Where there are no addresses for all slots, the first step is made. */
static void few_addresses_hold_a_step_here(void *arg) {
    (void)arg;
    begin(16384, 1000);
    sy_fake_fail_above(SY_FAKE_RESERVE, 4096 * page);
    take(64, 16);
    must(atomic_load(&sy_guard_bytes) == (2 * 256 + 1) * page);
}
RUN(few_addresses_hold_a_step)

static void guards_that_split_mappings_are_few_here(void *arg) {
    (void)arg;
    begin(8, 1);
    sy_fake_set_guards_split(true);
    size_t count = 0;
    while (sy_guard_alloc(&watch, 64, 16)) count++;
    must(count == 8192 && sy_guard_verify() == 0);
}
RUN(guards_that_split_mappings_are_few)

/* ---- frees ---- */

static void a_freed_one_cannot_be_accessed_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *object = take(100, 4);
    errno = 1234;
    give(object);
    must(errno == 1234 && !readable(object) && !readable(object + 99) && take_fault() == 0);
}
RUN(a_freed_one_cannot_be_accessed)

static bool refused(sy_watch *by, void *object, size_t told) {
    return !sy_guard_free(by, object, told, NULL, NULL) && last.address == object &&
           strcmp(last.cache, by->name) == 0 && last.object_size == by->size;
}

static void misuse_is_found_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *object = take(100, 4);
    must(refused(&watch, object + 4, SIZE_MAX));
    must(take_fault() == SY_FAULT_MISALIGNED_POINTER && last.offset == 4 && last.object == object);
    must(refused(&other, object, SIZE_MAX));
    must(take_fault() == SY_FAULT_WRONG_CACHE && strcmp(last.found_cache, "watched") == 0);
    must(refused(&watch, object, 99));
    must(take_fault() == SY_FAULT_WRONG_SIZE && last.found_size == 100 && last.told_size == 99);
    must(refused(&watch, (void *)atomic_load(&sy_guard_start), SIZE_MAX));
    must(take_fault() == SY_FAULT_FOREIGN_POINTER);
    must(refused(&watch, (void *)(atomic_load(&sy_guard_start) + 5 * page), SIZE_MAX));
    must(take_fault() == SY_FAULT_FOREIGN_POINTER); /* no object has been there */
    must(sy_guard_free(&watch, object, 100, NULL, NULL) && take_fault() == 0);
    must(refused(&watch, object, 100));
    must(take_fault() == SY_FAULT_DOUBLE_FREE && last.allocated.depth && last.freed.depth);
}
RUN_WITH(SY_OS_STACKS, misuse_is_found)

static void damage_beside_it_is_found_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *left = take_side(100, true), *right = take_side(100, false);
    left[103] ^= 1;
    left[105] ^= 1;
    give(left);
    must(take_fault() == SY_FAULT_OVERFLOW && last.offset == 103 && last.object == left);
    must(last.damage == left + 103 && last.damage_bytes == 3 && last.freed.depth == 0);
    right[-1] ^= 1;
    give(right);
    must(take_fault() == SY_FAULT_UNDERFLOW && last.offset == -1);
    char *object = take(101, 8); /* a gap of its alignment, too */
    while ((uintptr_t)object % page == 0) object = take(101, 8);
    object[101] = 0;
    give(object);
    must(take_fault() == SY_FAULT_OVERFLOW && last.offset == 101);
}
RUN(damage_beside_it_is_found)

static void *seen;

static void see(void *object, void *arg) {
    must(readable(object) && *(char *)object == 42);
    must(arg == &seen);
    seen = object;
}

static void it_is_seen_while_it_is_there_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *object = take(100, 4);
    *object = 42;
    must(sy_guard_free(&watch, object, SIZE_MAX, see, &seen) && seen == object);
    seen = NULL;
    must(!sy_guard_free(&watch, object, SIZE_MAX, see, &seen) && !seen);
}
RUN(it_is_seen_while_it_is_there)

static void it_is_found_by_address_here(void *arg) {
    (void)arg;
    sy_watch *whose;
    must(!sy_guard_owns((uintptr_t)&whose) && !sy_guard_owns(0));
    begin(8, 1000);
    char *object = take(100, 4);
    must(sy_guard_owns((uintptr_t)object) && !sy_guard_owns((uintptr_t)&whose));
    must(sy_guard_owns(atomic_load(&sy_guard_start) + 17 * page - 1));
    must(!sy_guard_owns(atomic_load(&sy_guard_start) + 17 * page));
    must(sy_guard_size(object, &whose) == 100 && whose == &watch);
    must(sy_guard_size(object + 1, &whose) == 0 && whose == &watch);
    must(sy_guard_size((void *)((uintptr_t)object & -page), &whose) == 0 ||
         (uintptr_t)object % page == 0);
    must(sy_guard_size((void *)(((uintptr_t)object & -page) + page), &whose) == 0 && !whose);
    give(object);
    must(sy_guard_size(object, &whose) == 0 && whose == &watch);
}
RUN(it_is_found_by_address)

static unsigned visits;

static void count_visit(void *object, void *arg) {
    (void)object;
    (void)arg;
    visits++;
}

static void all_of_one_owner_are_forgotten_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *object = take(100, 4), *freed = take(100, 4), *mine = take(100, 4);
    char *others = sy_guard_alloc(&other, 100, 4);
    sy_watch *whose;
    give(freed);
    must(sy_guard_live(&watch) == 2 && sy_guard_live(&other) == 1);
    sy_guard_forget(&watch, count_visit, NULL);
    must(visits == 2 && sy_guard_live(&watch) == 0 && sy_guard_live(&other) == 1);
    must(!readable(object) && !readable(mine) && readable(others) && sy_guard_verify() == 0);
    must(sy_guard_size(object, &whose) == 0 && !whose);
    must(refused(&watch, object, SIZE_MAX) && take_fault() == SY_FAULT_FOREIGN_POINTER);
    must(explain((uintptr_t)object) && strcmp(last.cache, "watched") == 0);
}
RUN(all_of_one_owner_are_forgotten)

/* ---- explanations ---- */

static bool explained(const char *address, sy_fault_kind kind, const char *object) {
    return explain((uintptr_t)address) && take_fault() == kind && last.object == object &&
           last.address == address && last.offset == address - object;
}

static void accesses_are_explained_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    char *right = take_side(100, false), *left = take_side(100, true);
    must(!explain((uintptr_t)right) && !explain((uintptr_t)&right));
    must(explained(right + 100, SY_FAULT_GUARD_OVERFLOW, right));
    must(explained(right + 100 + page - 1, SY_FAULT_GUARD_OVERFLOW, right) ||
         left < right + 2 * page + 100);
    must(explained(left - 1, SY_FAULT_GUARD_UNDERFLOW, left));
    must(last.found_size == 100 && last.object_size == 100 && last.allocated.depth);
    must(last.freed.depth == 0 && strcmp(last.cache, "watched") == 0);
    give(right);
    must(explained(right + 8, SY_FAULT_USE_AFTER_FREE, right) && last.freed.depth);
    must(explained(right + 104, SY_FAULT_USE_AFTER_FREE, right));
    must(!explain(atomic_load(&sy_guard_start) + 16 * page)); /* no object was near */
}
RUN_WITH(SY_OS_STACKS, accesses_are_explained)

static void nothing_is_told_of_an_earlier_object_here(void *arg) {
    (void)arg;
    begin(1, 1000);
    give(take(100, 4));
    char *object = take(50, 4);
    must(explain(((uintptr_t)object | (page - 1)) + 1));
    must(take_fault() == SY_FAULT_GUARD_OVERFLOW && last.freed.depth == 0);
    must(last.freed.thread == 0 && last.found_size == 50);
}
RUN(nothing_is_told_of_an_earlier_object)

/* The guard between two is the nearer one's. */
static void a_guard_is_of_the_nearer_object_here(void *arg) {
    (void)arg;
    begin(2, 1000);
    char *first = take(100, 1), *second = take(100, 1);
    if ((uintptr_t)first % page == 0) {
        give(first);
        give(second);
        second = take(100, 1);
        first = take(100, 1);
        if (first > second) {
            char *swap = first;
            first = second;
            second = swap;
        }
    }
    must(((uintptr_t)first + 100) % page == 0 && (uintptr_t)second % page == 0);
    must(second == first + 100 + page);
    must(explained(first + 100 + page / 2 - 1, SY_FAULT_GUARD_OVERFLOW, first));
    must(explained(first + 100 + page / 2 + 1, SY_FAULT_GUARD_UNDERFLOW, second));
    give(first);
    must(explained(first + 100, SY_FAULT_USE_AFTER_FREE, first));
    must(explained(second - 1, SY_FAULT_GUARD_UNDERFLOW, second));
}
RUN(a_guard_is_of_the_nearer_object)

static void pages_of_a_run_are_explained_here(void *arg) {
    (void)arg;
    begin(64, 1);
    char *object = take(2 * page, 8 * page); /* shut pages are left on both sides of some */
    char *end = object + 2 * page;
    must(explained(end, SY_FAULT_GUARD_OVERFLOW, object));
    must(explained(object - 1, SY_FAULT_GUARD_UNDERFLOW, object));
    must(!explain((uintptr_t)object) && !explain((uintptr_t)(end - 1)));
    give(object);
    must(explained(object + page, SY_FAULT_USE_AFTER_FREE, object));
}
RUN(pages_of_a_run_are_explained)

/* ---- the whole way: the process ends by the signal, having said why ---- */

static void handle_signal(int signal_number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    must(sigaction(signal_number, &action, NULL) == 0);
}

typedef struct bad_access {
    size_t size;
    ptrdiff_t offset;
    bool left, freed;
    void (*handler)(int);
    int *report; /* a pipe */
} bad_access;

static void do_access(void *arg) {
    const bad_access *access = arg;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    handle_signal(SIGSEGV, access->handler); /* in place of a sanitizer's */
    dup2(access->report[1], 2);
    atomic_store(&sy_options_now.explain, SY_EXPLAIN_YES);
    begin(8, 1000);
    atomic_store(&sy_options_now.explain, SY_EXPLAIN_YES);
    sy_set_fault_handler(NULL);
    char *object = take_side(access->size, access->left);
    if (access->freed) give(object);
    *(volatile char *)(object + access->offset) = 1;
}

/* Whether its report begins as it has to; `status`: how the process ended. */
static bool told(bad_access access, const char *headline, int *status) {
    int ends[2];
    char text[1 << 16] = "slabyard: ";
    must(pipe(ends) == 0);
    access.report = ends;
    *status = in_child(do_access, &access);
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    if (length < 0) return false;
    text[length] = 0;
    return strstr(text, headline) && strstr(text, "in cache \"watched\" (100 bytes)");
}

static void a_bad_access_is_reported_and_ends_the_process(void **state) {
    needs(SY_OS_ACCESSES);
    (void)state;
    if (is_emulated()) skip(); /* a report cannot say whether it was a read or a write */
    static const struct {
        bad_access access;
        const char *headline;
    } cases[] = {
        {{100, 100, false, false, SIG_DFL, NULL}, "write behind an object (guard page)"},
        {{100, -1, true, false, SIG_DFL, NULL}, "write before an object (guard page)"},
        {{100, 50, true, true, SIG_DFL, NULL}, "write after free (guard page)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status;
        assert_true(told(cases[i].access, cases[i].headline, &status));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

static void exit_handled(int signal_number) { _exit(signal_number + 1); }

static void the_handler_there_was_comes_after_the_report(void **state) {
    needs(SY_OS_ACCESSES);
    (void)state;
    if (is_emulated()) skip(); /* a report cannot say whether it was a read or a write */
    const bad_access access = {100, 100, false, false, exit_handled, NULL};
    int status;
    assert_true(told(access, "write behind an object (guard page)", &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SIGSEGV + 1);
}

/* ---- failures ---- */

/* One more at a time, in a process of its own, until all succeed. */
static void fail_one(void *n) {
    begin(8, 1000);
    sy_fake_fail_nth(SY_FAKE_ANY, *(uint64_t *)n);
    errno = 1234;
    char *object = sy_guard_alloc(&watch, 64, 16);
    uint64_t failed = sy_fake_failures(SY_FAKE_ANY); /* it can do without some */
    sy_fake_reset();
    must(errno == 1234 && (object || failed) && sy_guard_verify() == 0);
    if (object) give(object);
    for (int i = 0; i < 8; i++) take(64, 16); /* no slot was lost */
    must(!sy_guard_alloc(&watch, 64, 16));
    _exit(failed ? 1 : 0);
}

static void what_fails_on_the_way_loses_nothing_here(void *arg) {
    (void)arg;
    int status = 1 << 8;
    for (uint64_t n = 1; status == 1 << 8; n++) status = in_child(fail_one, &n);
    must(status == 0);
}
RUN(what_fails_on_the_way_loses_nothing)

static void in_want_of_addresses_all_is_fewer_here(void *arg) {
    (void)arg;
    begin(8, 1);
    sy_fake_fail_above(SY_FAKE_RESERVE, 256 * sy_os_page_size());
    for (int i = 0; i < 8; i++) take(64, 16);
    must(!sy_guard_alloc(&watch, 64, 16));
}
RUN(in_want_of_addresses_all_is_fewer)

static void a_longer_run_will_do_here(void *arg) {
    (void)arg;
    begin(4, 1);
    sy_fake_fail_above(SY_FAKE_RESERVE, 1 << 20);
    char *larger = take(2 * page, page);
    take(64, 16);
    take(64, 16);
    must(!sy_guard_alloc(&watch, 64, 16) && !sy_guard_alloc(&watch, 2 * page, 16));
    give(larger);
    char *small = take(64, 16);
    must(small >= larger - page && small < larger + 3 * page);
    give(small);
    take(2 * page, page);
}
RUN(a_longer_run_will_do)

static void what_cannot_be_shut_is_free_here(void *arg) {
    (void)arg;
    begin(1, 1000);
    char *object = take(64, 16);
    sy_fake_fail_nth(SY_FAKE_GUARD, 1);
    give(object);
    must(readable(object) && sy_guard_live(&watch) == 0);
    must(refused(&watch, object, SIZE_MAX) && take_fault() == SY_FAULT_DOUBLE_FREE);
    must(take(64, 16) != NULL);
}
RUN(what_cannot_be_shut_is_free)

/* ---- fork ---- */

static char *shared[3];

static void use_after_fork(void *arg) {
    (void)arg;
    must(shared[0][0] == 7 && !readable(shared[1]) && sy_guard_verify() == 0);
    give(shared[0]);
    must(refused(&watch, shared[1], SIZE_MAX) && take_fault() == SY_FAULT_DOUBLE_FREE);
    must(explain((uintptr_t)shared[1]) && take_fault() == SY_FAULT_USE_AFTER_FREE);
    take(64, 16);
}

static void a_child_has_them_too_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    shared[0] = take(64, 16);
    shared[1] = take(64, 16);
    shared[0][0] = 7;
    give(shared[1]);
    must(in_child(use_after_fork, NULL) == 0);
    must(shared[0][0] == 7 && sy_guard_live(&watch) == 1);
    give(shared[0]);
}
RUN(a_child_has_them_too)

static atomic_bool at_it;
static int forked_status;

static void verify_and_use_all(void *arg) {
    (void)arg;
    must(sy_guard_verify() == 0);
    for (int i = 0; i < 8; i++) take(64, 16);
}

/* Frees in a thread that is stopped in the midst of it: in the child it has not begun to exist. */
static void fork_in_the_midst(void *object, void *arg) {
    (void)object;
    (void)arg;
    atomic_store(&at_it, true);
    while (atomic_load(&at_it)) sched_yield();
}

static void *free_slowly(void *object) {
    must(sy_guard_free(&watch, object, SIZE_MAX, fork_in_the_midst, NULL));
    return NULL;
}

static void what_another_thread_was_freeing_is_free_here(void *arg) {
    (void)arg;
    begin(8, 1000);
    pthread_t thread;
    must(pthread_create(&thread, NULL, free_slowly, take(64, 16)) == 0);
    while (!atomic_load(&at_it)) sched_yield();
    forked_status = in_child(verify_and_use_all, NULL);
    atomic_store(&at_it, false);
    pthread_join(thread, NULL);
    must(forked_status == 0);
    verify_and_use_all(NULL);
}
RUN(what_another_thread_was_freeing_is_free)

/* ---- which allocations ---- */

static void *count_due(void *arg) {
    size_t *due = arg;
    for (int i = 0; i < 1000000; i++) *due += sy_guard_due();
    return NULL;
}

static void one_in_so_many_is_due_here(void *arg) {
    (void)arg;
    static const uint32_t every[] = {2, 3, 10, 100, 1000};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        size_t due = 0;
        begin(8, every[i]);
        count_due(&due);
        in_thread(count_due, &due);
        double expected = 2e6 / every[i], off = ((double)due - expected) / expected;
        must(off > -.12 && off < .12); /* some 5 standard deviations of the rarest */
    }
}
RUN(one_in_so_many_is_due)

static void all_are_due_if_all_are_wanted_here(void *arg) {
    (void)arg;
    begin(8, 1);
    for (int i = 0; i < 100; i++) must(sy_guard_due());
}
RUN(all_are_due_if_all_are_wanted)

/* Threads of few allocations have their share: nothing is in step with their beginning. */
static void *one_allocation(void *due) {
    *(size_t *)due += sy_guard_due();
    return NULL;
}

static void the_first_is_as_likely_as_any_here(void *arg) {
    (void)arg;
    begin(8, 4);
    size_t due = 0;
    for (int i = 0; i < 2000; i++) in_thread(one_allocation, &due);
    must(due > 350 && due < 650);
}
RUN(the_first_is_as_likely_as_any)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides),
        cmocka_unit_test(sizes_and_aligns),
        cmocka_unit_test(they_read_as_zero),
        cmocka_unit_test(what_is_larger_than_a_page_is_not_guarded),
        cmocka_unit_test(larger_ones_are_if_all_are),
        cmocka_unit_test(the_one_freed_longest_ago_is_reused),
        cmocka_unit_test(the_unused_come_before_the_freed),
        cmocka_unit_test(slots_grow_with_the_live),
        cmocka_unit_test(a_site_that_keeps_all_leaves_some),
        cmocka_unit_test(few_addresses_hold_a_step),
        cmocka_unit_test(guards_that_split_mappings_are_few),
        cmocka_unit_test(a_freed_one_cannot_be_accessed),
        cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(damage_beside_it_is_found),
        cmocka_unit_test(it_is_seen_while_it_is_there),
        cmocka_unit_test(it_is_found_by_address),
        cmocka_unit_test(all_of_one_owner_are_forgotten),
        cmocka_unit_test(accesses_are_explained),
        cmocka_unit_test(nothing_is_told_of_an_earlier_object),
        cmocka_unit_test(a_guard_is_of_the_nearer_object),
        cmocka_unit_test(pages_of_a_run_are_explained),
        cmocka_unit_test(a_bad_access_is_reported_and_ends_the_process),
        cmocka_unit_test(the_handler_there_was_comes_after_the_report),
        cmocka_unit_test(what_fails_on_the_way_loses_nothing),
        cmocka_unit_test(in_want_of_addresses_all_is_fewer),
        cmocka_unit_test(a_longer_run_will_do),
        cmocka_unit_test(what_cannot_be_shut_is_free),
        cmocka_unit_test(a_child_has_them_too),
        cmocka_unit_test(what_another_thread_was_freeing_is_free),
        cmocka_unit_test(one_in_so_many_is_due),
        cmocka_unit_test(all_are_due_if_all_are_wanted),
        cmocka_unit_test(the_first_is_as_likely_as_any),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
