/*
 * test_account.c: sy_cache_each visits each cache with its kind; sy_print_stats prints the caches
 * as text; failures of both.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "debug/profile.h"
#include "debug/stack.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/services.h"

/* The text in the file behind a descriptor, from its beginning. */
static const char *text_of(int fd) {
    static char text[64 << 10];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    must(got >= 0);
    text[got] = 0;
    return text;
}

/* ---- printed because of an option, in a process that has not used the library yet ---- */

static void (*at_start)(void); /* called after the first use of the library, unless NULL */

static const char *said_with_options(const char *options) {
    int fd = memfd_create("stderr", 0), status;
    fflush(NULL);
    pid_t pid = fork();
    must(fd >= 0 && pid >= 0);
    if (pid == 0) {
        must(setenv("SLABYARD", options, 1) == 0 && dup2(fd, 2) == 2);
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "at the end", .size = 24});
        must(sy_cache_alloc(cache) != NULL);
        if (at_start) at_start();
        exit(0);
    }
    must(waitpid(pid, &status, 0) == pid && status == 0);
    const char *said = text_of(fd);
    close(fd);
    return said;
}

static void the_option_has_it_written_at_exit(void **state) {
    (void)state;
    const char *said = said_with_options("tools=off,stats");
    assert_non_null(strstr(said, "slabyard: memory of process "));
    assert_non_null(strstr(said, "\nat the end                  24 B         1 "));
    assert_string_equal(said_with_options("tools=off"), "");
}

static void turn_off(void) { must(sy_set_options("stats=no") == 0); }

static void the_option_may_be_turned_off_before_the_exit(void **state) {
    (void)state;
    at_start = turn_off;
    assert_string_equal(said_with_options("tools=off,stats"), "");
    at_start = NULL;
}

static int is_in_help(void *help, const sy_option *option) {
    char line[80];
    snprintf(line, sizeof line, "\n  %s=", option->name);
    must(strstr(help, line) != NULL);
    return 0;
}

static void the_option_help_lists_all_options_and_the_program_goes_on(void **state) {
    (void)state;
    char *help = strdup(said_with_options("tools=off,help"));
    assert_non_null(strstr(help, "\n  redzone=BYTES, 16 to 64K, or off  (default: off; name "
                                 "alone: 64)\n      This many bytes"));
    assert_int_equal(sy_option_each(is_in_help, help), 0);
    free(help);
}

/* ---- each cache ---- */

typedef struct seen {
    const char *name;
    sy_cache_kind kind;
    size_t in_use;
    unsigned times;
} seen;

static int note(void *seen_, const sy_cache_account *account) {
    seen *of = seen_;
    if (strcmp(account->stats.name, of->name) != 0) return 0;
    of->times++;
    of->kind = account->kind;
    of->in_use = account->stats.in_use;
    return 0;
}

static void expect(const char *name, sy_cache_kind kind, size_t in_use) {
    seen of = {.name = name};
    must(sy_cache_each(note, &of) == 0);
    must(of.times == 1 && of.kind == kind && of.in_use == in_use);
}

static bool is_there(const char *name) {
    seen of = {.name = name};
    must(sy_cache_each(note, &of) == 0);
    return of.times > 0;
}

static void caches_of_all_kinds_are_visited(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 72});
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    void *order = sy_cache_alloc(cache), *small = sy_malloc(200);
    assert_non_null(sy_heap_alloc(heap, 100));
    expect("order", SY_CACHE_OF_PROGRAM, 1);
    expect("tenant-112", SY_CACHE_OF_HEAP, 1);
    expect("heap-208", SY_CACHE_OF_SIZES, 1);
    sy_free(small);
    sy_cache_free(cache, order);
    sy_cache_destroy(cache);
    sy_heap_destroy_all(heap);
    assert_false(is_there("order"));
    assert_false(is_there("tenant-112"));
}

static int stop_at_once(void *times, const sy_cache_account *account) {
    (void)account;
    return 40 + ++*(int *)times;
}

static void a_visitor_ends_it(void **state) {
    (void)state;
    int times = 0;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 72});
    assert_int_equal(sy_cache_each(stop_at_once, &times), 41);
    assert_int_equal(times, 1);
    errno = 0;
    assert_int_equal(sy_cache_each(NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    sy_cache_destroy(cache);
}

static int destroy_it(void *cache, const sy_cache_account *account) {
    if (account->cache != *(sy_cache **)cache) return 0;
    must(sy_cache_destroy(*(sy_cache **)cache) == 0);
    *(sy_cache **)cache = NULL;
    return 0;
}

static void a_visitor_may_destroy_the_cache(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "short life", .size = 72});
    assert_int_equal(sy_cache_each(destroy_it, &cache), 0);
    assert_null(cache);
    assert_false(is_there("short life"));
}

static _Atomic bool over;

static void *create_and_destroy(void *arg) {
    while (!over) {
        sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "come and go", .size = 72});
        must(cache != NULL);
        sy_cache_free(cache, sy_cache_alloc(cache));
        must(sy_cache_destroy(cache) == 0);
    }
    return arg;
}

static int look(void *arg, const sy_cache_account *account) {
    (void)arg;
    must(strcmp(account->stats.name, "come and go") != 0 || account->stats.object_size == 72);
    must(account->stats.in_use <= account->stats.slots);
    return 0;
}

static void caches_may_come_and_go_meanwhile(void **state) {
    (void)state;
    pthread_t threads[2];
    int fd = memfd_create("account", 0);
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, create_and_destroy, NULL) == 0);
    for (int i = 0; i < 2000; i++) must(sy_cache_each(look, NULL) == 0);
    for (int i = 0; i < 50; i++) must(sy_print_stats(fd) == 0);
    over = true;
    for (int i = 0; i < 2; i++) must(pthread_join(threads[i], NULL) == 0);
    close(fd);
}

/* ---- as a struct ---- */

static sy_account account_now(void) {
    sy_account account;
    sy_get_account(&account);
    return account;
}

/* Each object adds its size to the live bytes, and the rest of its slot to the rounding. */
static void the_struct_counts_what_is_live(void **state) {
    (void)state;
    enum { MANY = 1000, LARGE = 3 << 20 };
    void *objects[MANY];
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "odd", .size = 60, .align = 16});
    sy_account before = account_now();
    must(sy_cache_alloc_batch(cache, objects, MANY) == MANY);
    void *large = sy_malloc(LARGE);
    sy_account with = account_now();
    assert_int_equal(with.live_bytes - before.live_bytes, MANY * 60);
    assert_int_equal(with.rounding_bytes - before.rounding_bytes, MANY * 4);
    assert_in_range(with.large_bytes - before.large_bytes, LARGE, LARGE + (64 << 10));
    sy_cache_free_batch(cache, objects, MANY);
    sy_free(large);
    sy_account after = account_now();
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.large_bytes, before.large_bytes);
    size_t kept = after.thread_magazines_bytes + after.depot_magazines_bytes;
    assert_true(kept > before.thread_magazines_bytes + before.depot_magazines_bytes);
    sy_cache_destroy(cache);
}

/* What is in no row is the difference to what the system counts. */
static void the_struct_adds_up(void **state) {
    (void)state;
    const size_t resident = SIZE_MAX / 4;
    sy_fake_set_resident(resident);
    sy_account account = account_now();
    const size_t *rows = &account.live_bytes;
    size_t sum = 0;
    while (rows < &account.address_space_bytes) sum += *rows++;
    assert_int_equal(account.resident_bytes, resident);
    assert_int_equal(account.other_bytes, account.resident_bytes - sum);
    sy_fake_set_resident(SIZE_MAX);
    account = account_now();
    assert_int_equal(account.resident_bytes, 0);
    assert_int_equal(account.other_bytes, 0);
    sy_fake_reset();
}

static void sample_all(void *arg) {
    (void)arg;
    size_t before = account_now().traces_bytes, stacks = sy_stack_bytes();
    must(sy_profile_start(1) == 0);
    for (int i = 0; i < 1000; i++) must(sy_malloc(300) != NULL);
    size_t more = account_now().traces_bytes - before;
    must(sy_profile_bytes() > 0 && more == sy_stack_bytes() - stacks + sy_profile_bytes());
}

static void the_tables_of_a_profile_are_traces(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    assert_int_equal(in_child(sample_all, NULL), 0);
}

static void objects_in_quarantine_are_apart(void **state) {
    (void)state;
    enum { MANY = 100 };
    void *objects[MANY];
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = "waits", .size = 64, .flags = SY_CHECKED | SY_QUARANTINE});
    sy_cache_stats stats;
    sy_account before = account_now();
    must(sy_cache_alloc_batch(cache, objects, MANY) == MANY);
    sy_cache_free_batch(cache, objects, MANY);
    must(sy_cache_get_stats(cache, &stats) == 0 && stats.in_quarantine > 0);
    sy_account after = account_now();
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.quarantine_bytes - before.quarantine_bytes,
                     stats.in_quarantine * stats.slot_size);
    sy_cache_destroy(cache);
}

static void a_struct_of_another_size_is_filled(void **state) {
    (void)state;
    unsigned char bytes[sizeof(sy_account) + 8];
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(sy_get_account_sized((sy_account *)(void *)bytes, sizeof bytes), 0);
    assert_int_equal(bytes[sizeof(sy_account)], 0);
    assert_int_equal(sy_get_account_sized(NULL, sizeof(sy_account)), -1);
    assert_int_equal(sy_get_account_sized((sy_account *)(void *)bytes, 8), -1);
    assert_int_equal(errno, EINVAL);
}

/* ---- as text ---- */

static void lines_are_short(const char *text) {
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        must(end - text <= 80);
}

static void the_account_is_readable(void **state) {
    (void)state;
    int fd = memfd_create("account", 0);
    sy_cache *small = sy_cache_create(&(sy_cache_config){.name = "small", .size = 64});
    sy_cache *large = sy_cache_create(
        &(sy_cache_config){.name = "of a name that is as long as it", .size = 4096});
    sy_cache *unused = sy_cache_create(&(sy_cache_config){.name = "unused", .size = 64});
    void *object = sy_cache_alloc(small), *objects[100];
    assert_int_equal(sy_cache_alloc_batch(large, objects, 100), 100);
    errno = 1234;
    assert_int_equal(sy_print_stats(fd), 0);
    assert_int_equal(errno, 1234);
    const char *text = text_of(fd);
    lines_are_short(text);
    const char *second =
        strstr(text, "\nsmall                       64 B         1   64 KiB  1.0 KiB ");
    const char *first = strstr(text, "\nof a name that is as long as it\n"
                                     "                         4.0 KiB       100 ");
    assert_non_null(second);
    assert_true(first && first < second);
    assert_null(strstr(text, "\nunused"));
    assert_non_null(strstr(text, "\ncaches without memory: "));
    sy_cache_free(small, object);
    sy_cache_free_batch(large, objects, 100);
    sy_cache_destroy(small);
    sy_cache_destroy(large);
    sy_cache_destroy(unused);
    close(fd);
}

static void a_line_sums_up_each_heap(void **state) {
    (void)state;
    int fd = memfd_create("account", 0);
    const sy_heap_config limited = {.name = "two-part", .limit = {.hard = 256 << 10}};
    sy_heap *tenant = sy_heap_create(&limited), *other = sy_heap_create(&limited);
    sy_heap *plain = sy_heap_create(&(sy_heap_config){.name = "plain"});
    assert_int_equal(sy_print_stats(fd), 0);
    assert_null(strstr(text_of(fd), "heaps:"));
    for (int i = 0; i < 3; i++) assert_non_null(sy_heap_alloc(tenant, i ? 64 : 200));
    assert_null(sy_heap_alloc(tenant, 1 << 20));
    assert_non_null(sy_heap_alloc(other, 64));
    assert_non_null(sy_heap_alloc(plain, 64));
    assert_int_equal(sy_print_stats(fd), 0);
    const char *text = text_of(fd);
    lines_are_short(text);
    const char *title =
        strstr(text, "\nheaps:                     sizes      live     used    limit refused\n");
    const char *rows = strstr(text, "\nsizes of heaps:\n");
    assert_true(title && rows && title < rows);
    assert_non_null(
        strstr(title, "\ntwo-part                       2         3  128 KiB  256 KiB       1\n"));
    assert_non_null(
        strstr(title, "\ntwo-part                       1         1   64 KiB  256 KiB       0\n"));
    assert_non_null(
        strstr(title, "\nplain                          1         1   64 KiB     none       0\n"));
    assert_non_null(strstr(rows, "\ntwo-part-208 "));
    sy_heap_destroy_all(tenant);
    sy_heap_destroy_all(other);
    sy_heap_destroy_all(plain);
    close(fd);
}

/* The row of a cache whose free objects wait in this thread's magazines says what they keep. */
static void memory_is_what_magazines_keep(void **state) {
    (void)state;
    enum { MANY = 10 };
    int fd = memfd_create("account", 0);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "pinned", .size = 4096});
    void *objects[MANY];
    sy_cache_stats stats;
    char row[120];
    assert_int_equal(sy_cache_alloc_batch(cache, objects, MANY), MANY);
    sy_cache_free_batch(cache, objects, MANY);
    assert_int_equal(sy_cache_get_stats(cache, &stats), 0);
    assert_true(stats.in_use == 0 && stats.in_loaded > 0);
    size_t kept = stats.mapped - stats.never_used - stats.discarded;
    assert_in_range(kept, 4096 * stats.in_loaded, stats.mapped - 1);
    assert_int_equal(sy_print_stats(fd), 0);
    snprintf(row, sizeof row, "\n%-25s4.0 KiB         0 %4zu KiB %4zu KiB ", "pinned",
             stats.mapped >> 10, kept >> 10);
    assert_non_null(strstr(text_of(fd), row));
    sy_cache_destroy(cache);
    close(fd);
}

static void what_fails_is_said(void **state) {
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(sy_print_stats(-1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(sy_print_stats(full), -1);
    assert_int_equal(errno, ENOSPC);
    close(full);
    sy_fake_fail_nth(SY_FAKE_RESERVE, 1);
    assert_int_equal(sy_print_stats(2), -1);
    assert_int_equal(errno, ENOMEM);
    sy_fake_reset();
}

static void rows_of(size_t caches, sy_cache **made) {
    for (size_t i = 0; i < caches; i++) {
        must((made[i] = sy_cache_create(&(sy_cache_config){.name = "late", .size = 24})) != NULL);
        must(sy_cache_alloc(made[i]) != NULL);
    }
}

enum { LATE = 500 };
static sy_cache *late[LATE];

static void create_late(void) {
    sy_fake_run_before(SY_FAKE_RESERVE, NULL);
    rows_of(LATE, late);
}

/* Creates caches after the memory for the rows was taken: more caches than it has room for. */
static void there_are_no_more_rows_than_room(void **state) {
    (void)state;
    int fd = memfd_create("account", 0);
    sy_stats before;
    size_t rows = 0;
    sy_get_stats(&before);
    sy_fake_run_before(SY_FAKE_RESERVE, create_late);
    assert_int_equal(sy_print_stats(fd), 0);
    sy_fake_reset();
    for (const char *at = text_of(fd); (at = strstr(at, "\nlate ")) != NULL; at++) rows++;
    assert_in_range(rows, 1, before.caches + 64);
    close(fd);
    for (int i = 0; i < LATE; i++) sy_cache_destroy_all(late[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_option_has_it_written_at_exit),
        cmocka_unit_test(the_option_may_be_turned_off_before_the_exit),
        cmocka_unit_test(the_option_help_lists_all_options_and_the_program_goes_on),
        cmocka_unit_test(caches_of_all_kinds_are_visited),
        cmocka_unit_test(a_visitor_ends_it),
        cmocka_unit_test(a_visitor_may_destroy_the_cache),
        cmocka_unit_test(caches_may_come_and_go_meanwhile),
        cmocka_unit_test(the_struct_counts_what_is_live),
        cmocka_unit_test(the_struct_adds_up),
        cmocka_unit_test(the_tables_of_a_profile_are_traces),
        cmocka_unit_test(objects_in_quarantine_are_apart),
        cmocka_unit_test(a_struct_of_another_size_is_filled),
        cmocka_unit_test(the_account_is_readable),
        cmocka_unit_test(a_line_sums_up_each_heap),
        cmocka_unit_test(memory_is_what_magazines_keep),
        cmocka_unit_test(what_fails_is_said),
        cmocka_unit_test(there_are_no_more_rows_than_room),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
