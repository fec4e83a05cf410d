/*
 * test_report.c: the text of reports, to the letter, and where it is written. Functions have the
 * names that this program gives them: symbols.c has a test of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/options.h>

#include "base/shape.h"
#include "debug/fault.h"
#include "debug/options.h"
#include "debug/watch.h"
#include "os/fake.h"
#include "os/start.h"
#include "report/report.h"
#include "report/symbols.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/services.h"

/* The lines of address n are functions[n]. The first letter of a line says whose the function
 * is. */
static const char *const functions[] = {
    "",
    "osy_cache_alloc at cache.c:7\n",
    "pmake at shop.c:17\n",
    "pinlined at shop.c:3\npmain at shop.c:44\n",
    "osy_inner at a.c:1\nosy_outer at a.c:2\n",
    "osy_short at a.c:9\npmain at shop.c:50\n",
    "oput_away at slabyard/src/cache/watched.c:110\n",
    "pmain.cold+0x3 in /bin/shop\n",
    "popen at shop.c:1\noput_away at slabyard/src/cache/watched.c:1\n",
    "pstart+0x10 in /lib/libc.so\n",
    "p_start+0x1 in /bin/shop\n",
    "lalloc::vec::Vec<T>::push at vec.rs:1\n",
    "lcore::ops::function::FnOnce::call_once at function.rs:2\n",
    "sstd::sys::backtrace::__rust_begin_short_backtrace at backtrace.rs:3\n",
    "sstd::rt::lang_start at rt.rs:4\npmain+0x7 in /bin/shop\n",
    "rstd::io::stdio::stdin at stdio.rs:5\n"};
static bool asked_deep;
static uint64_t look_up_ns; /* that each look-up takes */
static size_t asked_count;
static const void *asked[SY_SYMBOLS_MAX];

void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep) {
    must(needed == count);
    if (look_up_ns) sy_fake_advance_clock(look_up_ns);
    asked_deep = deep;
    asked_count = count;
    symbols->count = count < SY_SYMBOLS_MAX ? count : SY_SYMBOLS_MAX;
    for (size_t i = 0; i < symbols->count; i++) asked[i] = addresses[i];
}

const char *sy_symbols_lines(const sy_symbols *symbols, size_t index) {
    must(index < symbols->count);
    return functions[(uintptr_t)asked[index]];
}

static const void *const stack[] = {(void *)1, (void *)4, (void *)2, (void *)1, (void *)3};

/* These functions stand for debug/stack.c. */
bool sy_stack_is_own(uintptr_t frame) {
    (void)frame;
    return false;
}

uint32_t sy_stack_here(void) { return 1; }

uint32_t sy_stack_whole(void) { return 1; }

uint32_t sy_stack_from(uintptr_t code) {
    (void)code;
    return 0;
}

uint32_t sy_stack_site(void) { return 1; }

void sy_stack_make_places(uint32_t count) { (void)count; }

bool sy_stack_has_places(void) { return false; }

void sy_stack_leave_out(bool (*is_object)(uintptr_t word)) { (void)is_object; }

uint32_t sy_stack_copy(uint32_t place) {
    (void)place;
    return 0;
}

const sy_part sy_stack_part = {.settle = NULL};
const sy_shape_part sy_stack_shape = {.rows = NULL};

size_t sy_stack_bytes(void) { return 0; }

size_t sy_stack_place_bytes(void) { return 0; }

size_t sy_stack_count(void) { return 0; }

size_t sy_stack_frames(uint32_t number, const void *const **frames) {
    *frames = stack;
    return number;
}

/* ---- written reports ---- */

/* The report without the two lines that say where the fault was seen. They must be there. */
static const char *told_but_seen(void) {
    static char told[4096];
    const char *lines = "    #0 sy_cache_alloc at cache.c:7\n";
    const char *seen = strstr(sy_fake_written(), "  seen by thread ");
    must(seen != NULL);
    const char *rest = strchr(seen, '\n') + 1;
    must(strncmp(rest, lines, strlen(lines)) == 0);
    snprintf(told, sizeof told, "%.*s%s", (int)(seen - sy_fake_written()), sy_fake_written(),
             rest + strlen(lines));
    return told;
}

static void run(void *body) {
    must(sy_report_begin());
    ((void (*)(void))(uintptr_t)body)();
    sy_report_end();
}

/* Expects that `body` writes exactly this to stderr within a report. */
static void expect_report(void (*body)(void), const char *expected) {
    assert_false(sy_fake_catch(run, (void *)(uintptr_t)body));
    assert_string_equal(sy_fake_written(), expected);
}

static void raise_fault(void *fault) { sy_fault_raise(fault); }

static void report_fault(void *fault) { sy_report_fault(fault); }

static void expect_fault(sy_fault fault, const char *expected) {
    errno = 1234;
    assert_false(sy_fake_catch(report_fault, &fault));
    assert_int_equal(errno, 1234);
    assert_string_equal(told_but_seen(), expected);
    assert_true(sy_fake_catch(raise_fault, &fault)); /* the same report, then the process ends */
    assert_string_equal(told_but_seen(), expected);
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    sy_set_fault_handler(NULL);
    return sy_set_options("report=stderr,colour=auto,symbols=yes,on-fault=abort");
}

/* ---- text, times, sizes and dumps ---- */

static void tell_words(void) {
    sy_report_text("a ");
    sy_report_number(UINT64_MAX);
    sy_report_text(" ");
    sy_report_hex(0x7f00);
    sy_report_loud();
    sy_report_text("\n");
    sy_report_quiet();
}

static void words_follow_one_another(void **state) {
    (void)state;
    expect_report(tell_words, "a 18446744073709551615 0x7f00\n");
}

static void tell_times(void) {
    static const uint64_t times[] = {0,
                                     999,
                                     1000,
                                     1234567,
                                     9999999,
                                     10000000,
                                     999999999,
                                     5300000000,
                                     59999999999,
                                     60000000000,
                                     UINT64_C(3600000000000),
                                     UINT64_MAX};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        sy_report_time(times[i]);
        sy_report_text("|");
    }
}

static void times_are_told_in_the_unit_that_fits(void **state) {
    (void)state;
    expect_report(tell_times, "0 ns|999 ns|1.0 us|1.2 ms|9.9 ms|10 ms|999 ms|5.3 s|59 s|1.0 min|"
                              "1.0 h|5124095 h|");
}

static void tell_sizes(void) {
    static const uint64_t sizes[] = {
        0, 1, 2, 1023, 1024, 1536, 65536, (10 << 20) - 1, 10 << 20, UINT64_C(3) << 30, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sy_report_bytes(sizes[i]);
        sy_report_text("|");
    }
}

static void sizes_are_told_in_the_unit_that_fits(void **state) {
    (void)state;
    expect_report(tell_sizes, "0 bytes|1 byte|2 bytes|1023 bytes|1.0 KiB|1.5 KiB|64 KiB|9.9 MiB|"
                              "10 MiB|3.0 GiB|16777215 TiB|");
}

static void tell_dumps(void) {
    static const char bytes[] = "0123456789abcdef\x1b~\x7f ";
    sy_report_dump(bytes, 4, 64, "    ");
    sy_report_dump(bytes, 20, 90, "  ");
    sy_report_dump(bytes, 2, -8, "");
    sy_report_dump(bytes, 16, 0, "");
    sy_report_dump(bytes, 0, 0, "");
}

static void dumps_show_hex_and_characters(void **state) {
    (void)state;
    expect_report(tell_dumps,
                  "    +64  30 31 32 33                                      0123\n"
                  "  +90   30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n"
                  "  +106  1b 7e 7f 20                                      .~. \n"
                  "-8  30 31                                            01\n"
                  "+0  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n");
}

/* ---- stacks ---- */

static void tell_stack(void) { sy_report_stack(stack, 5, "  "); }

static void stacks_begin_with_the_programs_functions(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_stack, "  #0 make at shop.c:17\n"
                              "  #1 sy_cache_alloc at cache.c:7\n"
                              "  #2 inlined at shop.c:3\n"
                              "  #3 main at shop.c:44\n");
    assert_true(asked_deep);
    assert_int_equal(asked_count, 4); /* each address once */
}

static void tell_inlined_stack(void) {
    static const void *const frames[] = {(void *)5};
    sy_report_stack(frames, 1, "");
}

static void a_function_inlined_into_the_programs_is_left_out_too(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_inlined_stack, "#0 main at shop.c:50\n");
}

static void tell_own_stack(void) { sy_report_stack(stack, 2, ""); }

static void a_stack_of_nothing_else_is_told_whole(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_own_stack, "#0 sy_cache_alloc at cache.c:7\n"
                                  "#1 sy_inner at a.c:1\n"
                                  "#2 sy_outer at a.c:2\n");
}

static void tell_mixed_stacks(void) {
    sy_report_stack((const void *[]){(void *)6, (void *)1, (void *)6, (void *)2}, 4, "a ");
    sy_report_stack((const void *[]){(void *)8}, 1, "c ");
}

static void static_functions_of_the_library_are_left_out(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_mixed_stacks, "a #0 make at shop.c:17\n"
                                     "c #0 open at shop.c:1\n"
                                     "c #1 put_away at slabyard/src/cache/watched.c:1\n");
}

static const void *const in_main[] = {(void *)2, (void *)5, (void *)9, (void *)10, (void *)10};
static const void *const in_main_of_thread[] = {(void *)2, (void *)5, (void *)9,
                                                (void *)9, (void *)9, (void *)9};

static void tell_stacks_to_main(void) {
    sy_report_stack(in_main, 5, "a ");
    sy_report_stack(in_main_of_thread, 6, "b ");
}

/* The C library's frames around main say nothing. There are three at most: a main with more frames
 * around it is another function of this name. */
static void a_stack_ends_at_main(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_stacks_to_main, "a #0 make at shop.c:17\n"
                                       "a #1 sy_short at a.c:9\n"
                                       "a #2 main at shop.c:50\n"
                                       "b #0 make at shop.c:17\n"
                                       "b #1 sy_short at a.c:9\n"
                                       "b #2 main at shop.c:50\n"
                                       "b #3 start+0x10 in /lib/libc.so\n"
                                       "b #4 start+0x10 in /lib/libc.so\n"
                                       "b #5 start+0x10 in /lib/libc.so\n"
                                       "b #6 start+0x10 in /lib/libc.so\n");
}

static void tell_cold_stack(void) {
    sy_report_stack((const void *[]){(void *)2, (void *)7, (void *)9, (void *)10}, 4, "");
}

static void the_part_of_main_that_is_rarely_run_is_main(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_cold_stack, "#0 make at shop.c:17\n"
                                   "#1 main.cold+0x3 in /bin/shop\n");
}

/* In Rust main is called by the language's runtime, which is called by main of the C library. */
static void tell_stacks_of_rust(void) {
    sy_report_stack(
        (const void *[]){(void *)1, (void *)11, (void *)2, (void *)12, (void *)13, (void *)14}, 6,
        "a ");
    sy_report_stack((const void *[]){(void *)11, (void *)15, (void *)11, (void *)2}, 4, "b ");
    sy_report_stack((const void *[]){(void *)1, (void *)11, (void *)14}, 3, "c ");
}

static void what_the_language_does_around_the_program_is_left_out(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    expect_report(tell_stacks_of_rust, "a #0 make at shop.c:17\n"
                                       "b #0 make at shop.c:17\n"
                                       "c #0 alloc::vec::Vec<T>::push at vec.rs:1\n"
                                       "c #1 std::rt::lang_start at rt.rs:4\n"
                                       "c #2 main+0x7 in /bin/shop\n");
}

static bool is_runtimes(const void *const *frames, size_t depth) {
    sy_report_look(frames, depth, NULL, NULL);
    return sy_report_sees_runtime_alone();
}

static void what_the_runtime_does_for_itself_is_known(void **state) {
    (void)state;
    const void *const before_main[] = {(void *)1, (void *)11, (void *)14};
    const void *const kept[] = {(void *)1, (void *)15, (void *)2, (void *)13};
    const void *const program[] = {(void *)1, (void *)11, (void *)2, (void *)15, (void *)14};
    assert_true(is_runtimes(before_main, 3));
    assert_true(is_runtimes(kept, 4));
    assert_false(is_runtimes(program, 5));
    assert_false(is_runtimes(before_main, 2));
    assert_false(is_runtimes(before_main, 0));
}

static void the_option_symbols_is_honoured(void **state) {
    (void)state;
    sy_set_options("symbols=no");
    sy_fake_catch(run, (void *)(uintptr_t)tell_stack);
    assert_false(asked_deep);
}

static void tell_deep_stack(void) {
    static const void *frames[SY_SYMBOLS_MAX + 1];
    for (size_t i = 0; i <= SY_SYMBOLS_MAX; i++) frames[i] = (void *)2;
    sy_report_stack(frames, SY_SYMBOLS_MAX + 1, "");
}

static void a_stack_has_so_many_frames_at_most(void **state) {
    (void)state;
    sy_fake_catch(run, (void *)(uintptr_t)tell_deep_stack);
    assert_non_null(strstr(sy_fake_written(), "#1023 make"));
    assert_null(strstr(sy_fake_written(), "#1024"));
}

/* ---- colours ---- */

static void tell_loudly(void) {
    sy_report_loud();
    sy_report_text("x");
    sy_report_quiet();
}

static void colours_are_for_terminals(void **state) {
    (void)state;
    const char *loud = "\033[1;31mx\033[0m";
    sy_fake_set_terminal(false);
    expect_report(tell_loudly, "x");
    sy_fake_set_terminal(true);
    sy_fake_set_option("NO_COLOR", NULL);
    expect_report(tell_loudly, loud);
    sy_fake_set_option("NO_COLOR", "");
    expect_report(tell_loudly, loud);
    sy_fake_set_option("NO_COLOR", "1");
    expect_report(tell_loudly, "x");
    sy_set_options("colour=always");
    sy_fake_set_terminal(false);
    expect_report(tell_loudly, loud);
    sy_set_options("colour=never");
    sy_fake_set_terminal(true);
    sy_fake_set_option("NO_COLOR", NULL);
    expect_report(tell_loudly, "x");
}

/* ---- where reports are written ---- */

static char path[] = "/tmp/test_report_XXXXXX";

static void report_to_a_file(void) {
    char text[100];
    strcpy(path + sizeof path - 7, "XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(text, sizeof text, "report=%s", path);
    sy_set_options(text);
}

static void expect_file(const char *expected) {
    char text[200] = {0};
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && read(file, text, sizeof text - 1) >= 0);
    assert_string_equal(text, expected);
    close(file);
    unlink(path);
}

static void reports_are_added_to_a_file(void **state) {
    (void)state;
    report_to_a_file();
    sy_fake_set_terminal(true);
    expect_report(tell_loudly, "");
    expect_report(tell_words, "");
    expect_file("xa 18446744073709551615 0x7f00\n");
}

static void what_no_file_takes_goes_to_stderr(void **state) {
    (void)state;
    sy_set_options("report=/nowhere/report");
    expect_report(tell_loudly, "slabyard: cannot write to /nowhere/report, so here:\nx");
    report_to_a_file();
    sy_fake_fail_nth(SY_FAKE_APPEND, 1);
    errno = 1234;
    sy_fake_catch(run, (void *)(uintptr_t)tell_loudly);
    assert_int_equal(errno, 1234);
    assert_non_null(strstr(sy_fake_written(), ", so here:\nx"));
    expect_file("");
}

/* ---- long reports, and several reports ---- */

static void tell_too_much(void) {
    for (int i = 0; i < 10000; i++) { /* the second piece is the first that does not fit */
        sy_report_text("012");
        sy_report_text("3456789");
        sy_report_text("\n");
    }
}

static void what_is_too_long_is_cut_at_a_line(void **state) {
    (void)state;
    static char text[70000];
    report_to_a_file();
    expect_report(tell_too_much, "");
    int file = open(path, O_RDONLY);
    ssize_t bytes = read(file, text, sizeof text);
    close(file);
    unlink(path);
    const char *end = "\n0123456789\n  (the report is longer: what follows is cut off)\n";
    assert_in_range(bytes, 65000, 66000);
    assert_string_equal(text + bytes - strlen(end), end);
    sy_set_options("report=stderr");
    expect_report(tell_loudly, "x"); /* the next report is whole */
}

static void begin_again(void) {
    sy_report_text("one");
    must(!sy_report_begin());
    sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE, .cache = "x"};
    sy_report_fault(&fault);
    sy_report_text(" two");
}

static void a_thread_is_in_one_report_at_a_time(void **state) {
    (void)state;
    expect_report(begin_again, "one two");
}

static _Atomic int turn;

static void *report_from_here(void *arg) {
    for (int i = 0; i < 200; i++) {
        must(sy_report_begin());
        must(++turn == 1);
        sched_yield();
        must(--turn == 0);
        sy_report_text("0123456789\n");
        sy_report_end();
    }
    return arg;
}

static void threads_report_one_after_the_other(void **state) {
    (void)state;
    pthread_t threads[4];
    static char text[20000];
    report_to_a_file();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, report_from_here, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    int file = open(path, O_RDONLY);
    assert_int_equal(read(file, text, sizeof text), 4 * 200 * 11);
    for (size_t i = 0; i < 4 * 200; i++) assert_memory_equal(text + 11 * i, "0123456789\n", 11);
    close(file);
    unlink(path);
}

static pthread_barrier_t barrier;

static void *hold_a_report(void *arg) {
    must(sy_report_begin());
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    sy_report_end();
    return arg;
}

static void report_in_the_child(void *arg) {
    (void)arg;
    alarm(30);
    must(sy_report_begin());
    sy_report_end();
}

static void a_child_of_a_fork_can_report(void *arg) {
    pthread_t thread;
    must(sy_start() == 0);
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    must(pthread_create(&thread, NULL, hold_a_report, NULL) == 0);
    pthread_barrier_wait(&barrier);
    must(in_child(report_in_the_child, arg) == 0);
    pthread_barrier_wait(&barrier);
    must(pthread_join(thread, NULL) == 0);
    must(sy_report_begin());
    must(in_child(report_in_the_child, arg) == 0); /* by a thread that is within a report */
    sy_report_end();
}

static void a_fork_leaves_nobody_in_a_report(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(in_child(a_child_of_a_fork_can_report, NULL), 0);
}

/* ---- faults ---- */

static void known_kinds_are_told_as_ever(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    char *at = (char *)0x1000;
    expect_fault(
        (sy_fault){
            .kind = SY_FAULT_DOUBLE_FREE, .cache = "order", .object_size = 64, .address = at},
        "slabyard: double free: 0x1000 in cache \"order\" (64 bytes)\n"
        "  next: run with SLABYARD=audit to see where it was freed before\n");
    expect_fault(
        (sy_fault){
            .kind = SY_FAULT_WRONG_CACHE, .cache = "heap", .address = at, .found_cache = "order"},
        "slabyard: free to the wrong cache: 0x1000 freed by sy_free, belongs to cache "
        "\"order\"\n"
        "  next: free the object to what it was allocated from\n");
    expect_fault((sy_fault){.kind = SY_FAULT_SEGMENT_SIZE,
                            .cache = "ports",
                            .object_size = 16,
                            .address = at,
                            .found_size = 8},
                 "slabyard: free of a segment with the wrong size: 0x1000 (size 16) in arena "
                 "\"ports\", allocated with size 8\n"
                 "  next: free the segment with the size that it was allocated with\n");
    expect_fault((sy_fault){.kind = SY_FAULT_WRONG_SIZE,
                            .cache = "heap-64",
                            .object_size = 64,
                            .address = at,
                            .found_size = 60,
                            .told_size = 100},
                 "slabyard: free with the wrong size: 0x1000 in cache \"heap-64\" (64 bytes), "
                 "freed with size 100, allocated with size 60\n"
                 "  next: free with the size that was asked for, or without one\n");
    sy_fault by_class = {.kind = SY_FAULT_WRONG_SIZE,
                         .cache = "heap",
                         .object_size = 64,
                         .address = at,
                         .found_cache = "heap-64",
                         .told_size = 65};
    expect_fault(by_class,
                 "slabyard: free with the wrong size: 0x1000 in cache \"heap\", belongs to "
                 "\"heap-64\" (64 bytes), freed with size 65\n"
                 "  next: free with the size that was asked for, or without one\n");
    by_class.told_size = 40;
    expect_fault(by_class,
                 "slabyard: free with the wrong size or alignment: 0x1000 in cache \"heap\", "
                 "belongs to \"heap-64\" (64 bytes), freed with size 40\n"
                 "  next: free with the size and alignment that were asked for, or without them\n");
    by_class.found_size = 40;
    expect_fault(by_class,
                 "slabyard: free with the wrong alignment: 0x1000 in cache \"heap\", belongs to "
                 "\"heap-64\" (64 bytes), freed with size 40, allocated with size 40\n"
                 "  next: free with the alignment that was asked for\n");
}

/* Each is given by its name and size, if it has them. */
static void a_wrong_cache_and_the_right_one_are_named(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_WRONG_CACHE,
                      .cache = "order",
                      .object_size = 64,
                      .address = (char *)0x1000,
                      .found_cache = "trade",
                      .found_size = 48};
    expect_fault(fault, "slabyard: free to the wrong cache: 0x1000 freed to cache \"order\" (64 "
                        "bytes), belongs to cache \"trade\" (48 bytes)\n"
                        "  next: free the object to what it was allocated from\n");
    fault.cache = "tenant";
    fault.object_size = 0;
    fault.found_cache = "heap";
    fault.found_size = 0;
    expect_fault(fault, "slabyard: free to the wrong cache: 0x1000 freed to heap \"tenant\", "
                        "belongs to sy_malloc's heap\n"
                        "  next: free the object to what it was allocated from\n");
}

/* The report says whether it was a read or a write, or "access" if this is not known. */
static void a_read_is_told_from_a_write(void **state) {
    (void)state;
    static const char *const heads[][3] = {
        {"access behind", "read behind", "write behind"},
        {"access before", "read before", "write before"},
        {"use after", "read after", "write after"},
    };
    for (unsigned i = 0; i < 9; i++) {
        sy_fault fault = {.kind = SY_FAULT_GUARD_OVERFLOW + i / 3, .cache = "order"};
        char head[100];
        fault.access = (sy_access)(i % 3);
        snprintf(head, sizeof head, "slabyard: %s ", heads[i / 3][i % 3]);
        sy_fake_catch(report_fault, &fault);
        assert_memory_equal(sy_fake_written(), head, strlen(head));
    }
}

static void a_pointer_of_a_pattern_is_in_its_register(void **state) {
    needs(SY_OS_ACCESSES | SY_OS_STACKS | SY_OS_GUARDS);
    (void)state;
    expect_fault((sy_fault){.kind = SY_FAULT_FREED_POINTER,
                            .cache = "",
                            .address = (char *)0x1000,
                            .held_in = "rax"},
                 "slabyard: access by a pointer read from freed memory: 0x1000 in register rax\n"
                 "  next: run with SLABYARD=guard=all to stop where the freed object is read\n");
}

/* A report does not advise guards that the program uses already. */
static void who_has_guards_is_not_told_to_take_them(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    static const sy_fault_kind kinds[] = {SY_FAULT_OVERFLOW, SY_FAULT_UNDERFLOW,
                                          SY_FAULT_WRITE_AFTER_FREE, SY_FAULT_FREED_POINTER};
    static const char *const options[] = {"guard=off", "guard=1/1000", "guard=all"};
    for (int i = 0; i < 12; i++) {
        sy_fault fault = {.kind = kinds[i / 3], .cache = "order"};
        assert_int_equal(sy_set_options(options[i % 3]), 0);
        sy_fake_catch(report_fault, &fault);
        assert_int_equal(strstr(sy_fake_written(), "guard=all") != NULL, i % 3 < 2);
    }
    assert_int_equal(sy_set_options("guard=off"), 0);
}

static char named_here[16];

/* Expects `text` as the report's line on the memory that a foreign pointer points to. */
static void expect_target(const void *address, const char *text) {
    sy_fault fault = {.kind = SY_FAULT_FOREIGN_POINTER, .cache = "order", .address = address};
    sy_fake_catch(report_fault, &fault);
    const char *found = strstr(sy_fake_written(), "\n  points to: ");
    assert_non_null(found);
    assert_memory_equal(found + strlen("\n  points to: "), text, strlen(text));
}

static void a_foreign_pointer_is_followed(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = sbrk(4096);
    assert_true(page != MAP_FAILED && end != (void *)-1);
    expect_target(NULL, "nothing: no memory is mapped there\n");
    expect_target(page, "memory without a name, of another allocator's or of a stack\n");
    expect_target(__builtin_frame_address(0), "the stack of this thread\n");
    expect_target(named_here + 5, "named_here+0x5 (.bss) in /");
    if (!is_emulated()) /* its list of mappings does not name the heap */
        expect_target(end, "memory of the process, [heap] (the C library's heap)\n");
    munmap(page, 4096);
}

static void a_fault_tells_all_that_is_known(void **state) {
    needs(SY_OS_ACCESSES | SY_OS_STACKS | SY_OS_GUARDS);
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_OVERFLOW,
                      .cache = "order",
                      .object_size = 64,
                      .address = (void *)0x1044,
                      .object = (void *)0x1000,
                      .offset = 68,
                      .damage = "AAAA",
                      .damage_bytes = 4,
                      .allocated = {stack, 5, 4711, 1234567},
                      .freed = {NULL, 0, 4712, 5}};
    expect_fault(fault, "slabyard: overflow: 0x1044 in cache \"order\" (64 bytes)\n"
                        "  offset 68: 4 bytes past the end\n"
                        "  4 bytes damaged from offset 68:\n"
                        "    +68  41 41 41 41                                      AAAA\n"
                        "  allocated 1.2 ms ago by thread 4711:\n"
                        "    #0 make at shop.c:17\n"
                        "    #1 sy_cache_alloc at cache.c:7\n"
                        "    #2 inlined at shop.c:3\n"
                        "    #3 main at shop.c:44\n"
                        "  freed 5 ns ago by thread 4712\n"
                        "  next: run with SLABYARD=guard=all to stop at the write itself\n");
}

static void explain(void *record) {
    sy_watch watch = {.name = "order"};
    sy_report_record(&watch, record, (void *)0x1008, (void *)0x1000);
}

/* Each look-up of a stack takes longer than all that the report is about. */
static void ages_are_from_before_the_report(void **state) {
    (void)state;
    sy_record record = {
        .word = SY_OBJECT_FREE, .size = 60, .allocated = {1000, 5, 4711}, .freed = {1400, 5, 4712}};
    sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE, .cache = "order", .object = (void *)0x1000};
    sy_fake_set_clock(2000);
    look_up_ns = 346000000;
    sy_watch_describe(&record, &fault);
    sy_fake_catch(report_fault, &fault);
    assert_non_null(strstr(sy_fake_written(), "  allocated 1.0 us ago by thread 4711:\n"));
    assert_non_null(strstr(sy_fake_written(), "  freed 600 ns ago by thread 4712:\n"));
    sy_fake_catch(explain, &record);
    assert_non_null(strstr(sy_fake_written(), "  allocated by thread 4711:\n"));
    assert_non_null(strstr(sy_fake_written(), "  freed 400 ns later by thread 4712:\n"));
    look_up_ns = 0;
}

/* Expects this second line in the report of a fault. */
static void expect_position(sy_fault_kind kind, size_t size, size_t found_size, ptrdiff_t offset,
                            const char *expected) {
    sy_fault fault = {.kind = kind,
                      .cache = "order",
                      .object_size = size,
                      .found_size = found_size,
                      .object = (void *)0x1000,
                      .offset = offset};
    sy_fake_catch(report_fault, &fault);
    char *line = strchr(sy_fake_written(), '\n') + 1;
    *strchr(line, '\n') = 0;
    assert_string_equal(line, expected);
}

static void a_position_is_told_from_the_nearest_end(void **state) {
    (void)state;
    sy_fault_kind kind = SY_FAULT_GUARD_OVERFLOW;
    expect_position(kind, 64, 0, 64, "  offset 64: the first byte past the end");
    expect_position(kind, 64, 0, 65, "  offset 65: 1 byte past the end");
    expect_position(kind, 64, 60, 60,
                    "  offset 60: the first byte past the end of the 60 asked for");
    expect_position(kind, 64, 60, 63, "  offset 63: 3 bytes past the end of the 60 asked for");
    expect_position(kind, 64, 0, -5, "  offset -5: 5 bytes before its start");
    expect_position(kind, 64, 0, 16, "  offset 16: inside, 16 bytes from its start");
    expect_position(kind, 0, 0, 16, "  offset 16: inside, 16 bytes from its start");
}

static void a_start_is_told_only_if_it_was_damaged(void **state) {
    needs(SY_OS_ACCESSES | SY_OS_STACKS | SY_OS_GUARDS);
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_WRITE_AFTER_FREE,
                      .cache = "order",
                      .object_size = 64,
                      .address = (void *)0x1000,
                      .object = (void *)0x1000};
    expect_fault(fault,
                 "slabyard: write after free: 0x1000 in cache \"order\" (64 bytes)\n"
                 "  next: run with SLABYARD=poison,audit to see where the object was freed, with "
                 "SLABYARD=guard=all to stop at the write itself\n");
    fault.damage = "B";
    fault.damage_bytes = 1;
    fault.freed = (sy_trace){NULL, 0, 7, 2000};
    expect_fault(fault, "slabyard: write after free: 0x1000 in cache \"order\" (64 bytes)\n"
                        "  offset 0: its start\n"
                        "  1 byte damaged from offset 0:\n"
                        "    +0  42                                               B\n"
                        "  freed 2.0 us ago by thread 7\n"
                        "  next: run with SLABYARD=guard=all to stop at the write itself\n");
}

static void damage_without_an_object_is_counted_from_its_start(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    static char edge[100];
    memset(edge, 'e', sizeof edge);
    sy_fault fault = {.kind = SY_FAULT_SLAB_EDGE,
                      .cache = "order",
                      .object_size = 64,
                      .address = (void *)0x1000,
                      .damage = edge,
                      .damage_bytes = 100};
#define LINE "65 65 65 65 65 65 65 65 65 65 65 65 65 65 65 65  eeeeeeeeeeeeeeee\n"
    expect_fault(fault, "slabyard: slab edge overwritten: 0x1000 in cache \"order\" (64 bytes)\n"
                        "  100 bytes damaged:\n"
                        "    +0   " LINE "    +16  " LINE "    +32  " LINE "    +48  " LINE
                        "    ... 36 bytes more\n"
                        "  next: run with SLABYARD=redzone,audit to find the object that was "
                        "overrun\n");
}

static void every_kind_has_its_words(void **state) {
    (void)state;
    static const char *const heads[] = {
        [SY_FAULT_FOREIGN_POINTER] = "free of a pointer that is not an object of Slabyard's",
        [SY_FAULT_MISALIGNED_POINTER] = "free of a pointer that is not the start of an object",
        [SY_FAULT_WRONG_CACHE] = "free to the wrong cache",
        [SY_FAULT_DOUBLE_FREE] = "double free",
        [SY_FAULT_WRONG_SIZE] = "free with the wrong size",
        [SY_FAULT_NOT_ALLOCATED] = "free of a segment that is not allocated",
        [SY_FAULT_SEGMENT_SIZE] = "free of a segment with the wrong size",
        [SY_FAULT_OVERFLOW] = "overflow",
        [SY_FAULT_UNDERFLOW] = "underflow",
        [SY_FAULT_WRITE_AFTER_FREE] = "write after free",
        [SY_FAULT_SLAB_EDGE] = "slab edge overwritten",
        [SY_FAULT_GUARD_OVERFLOW] = "access behind an object (guard page)",
        [SY_FAULT_GUARD_UNDERFLOW] = "access before an object (guard page)",
        [SY_FAULT_USE_AFTER_FREE] = "use after free (guard page)",
        [SY_FAULT_NOT_PINNED] = "unpin without a pin",
        [SY_FAULT_FREED_POINTER] = "access by a pointer read from freed memory",
        [SY_FAULT_UNWRITTEN_POINTER] = "access by a pointer read from memory never written",
        [SY_FAULT_UNWRITTEN_POINTER + 1] = "misuse"};
    for (size_t kind = 1; kind <= SY_FAULT_UNWRITTEN_POINTER + 1; kind++) {
        sy_fault fault = {.kind = (sy_fault_kind)kind, .cache = "order"};
        char head[100];
        snprintf(head, sizeof head, "slabyard: %s: 0x0 ", heads[kind]);
        sy_fake_catch(report_fault, &fault);
        assert_memory_equal(sy_fake_written(), head, strlen(head));
        assert_non_null(strstr(sy_fake_written(), "\n  next: "));
    }
}

static void tell_fault(void *fault) { sy_fault_tell(fault); }

static void who_only_looks_goes_on(void **state) {
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE, .cache = "order"};
    assert_false(sy_fake_catch(tell_fault, &fault));
    assert_memory_equal(sy_fake_written(), "slabyard: double free: 0x0", 26);
}

static int told;

static void note(const sy_fault *fault) {
    told += fault->kind == SY_FAULT_DOUBLE_FREE;
    sy_report_fault(fault);
}

static void a_handler_may_report_too(void **state) {
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE, .cache = "order"};
    told = 0;
    sy_set_fault_handler(note);
    assert_false(sy_fake_catch(raise_fault, &fault));
    assert_int_equal(told, 1);
    assert_memory_equal(sy_fake_written(), "slabyard: double free: 0x0", 26);
}

static void the_program_goes_on_if_an_option_says_so(void **state) {
    (void)state;
    sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE, .cache = "order"};
    sy_set_options("on-fault=continue");
    errno = 1234;
    assert_false(sy_fake_catch(raise_fault, &fault));
    assert_int_equal(errno, 1234);
    assert_memory_equal(sy_fake_written(), "slabyard: double free: 0x0", 26);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_follow_one_another),
        TEST(times_are_told_in_the_unit_that_fits),
        TEST(sizes_are_told_in_the_unit_that_fits),
        TEST(dumps_show_hex_and_characters),
        TEST(stacks_begin_with_the_programs_functions),
        TEST(a_function_inlined_into_the_programs_is_left_out_too),
        TEST(a_stack_of_nothing_else_is_told_whole),
        TEST(static_functions_of_the_library_are_left_out),
        TEST(a_stack_ends_at_main),
        TEST(the_part_of_main_that_is_rarely_run_is_main),
        TEST(what_the_language_does_around_the_program_is_left_out),
        TEST(what_the_runtime_does_for_itself_is_known),
        TEST(the_option_symbols_is_honoured),
        TEST(a_stack_has_so_many_frames_at_most),
        TEST(colours_are_for_terminals),
        TEST(reports_are_added_to_a_file),
        TEST(what_no_file_takes_goes_to_stderr),
        TEST(what_is_too_long_is_cut_at_a_line),
        TEST(a_thread_is_in_one_report_at_a_time),
        TEST(threads_report_one_after_the_other),
        TEST(a_fork_leaves_nobody_in_a_report),
        TEST(known_kinds_are_told_as_ever),
        TEST(a_wrong_cache_and_the_right_one_are_named),
        TEST(a_read_is_told_from_a_write),
        TEST(a_pointer_of_a_pattern_is_in_its_register),
        TEST(who_has_guards_is_not_told_to_take_them),
        TEST(a_foreign_pointer_is_followed),
        TEST(a_fault_tells_all_that_is_known),
        TEST(ages_are_from_before_the_report),
        TEST(a_position_is_told_from_the_nearest_end),
        TEST(a_start_is_told_only_if_it_was_damaged),
        TEST(damage_without_an_object_is_counted_from_its_start),
        TEST(every_kind_has_its_words),
        TEST(who_only_looks_goes_on),
        TEST(a_handler_may_report_too),
        TEST(the_program_goes_on_if_an_option_says_so),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
