/*
 * test_symbols.c: the texts for addresses, with debug information and without it, and what is left
 * of them when the child, the library or the list of mappings fails.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/fake.h"
#include "os/os.h"
#include "report/symbols.h"
#include "support/child.h"
#include "support/services.h"

static sy_symbols symbols;

#define NOT_LAST __asm__ volatile("" : : : "memory")

static const void *address; /* of a call in a function below */
static int call_line, outer_line;

__attribute__((noinline)) static const void *who_calls(void) {
    return __builtin_extract_return_addr(__builtin_return_address(0));
}

__attribute__((noinline)) static void known_function(void) {
    call_line = __LINE__ + 1;
    address = who_calls();
    NOT_LAST;
}

static inline __attribute__((always_inline)) void inlined_function(void) {
    call_line = __LINE__ + 1;
    address = who_calls();
    NOT_LAST;
}

__attribute__((noinline)) static void around_inlined(void) {
    outer_line = __LINE__ + 1;
    inlined_function();
    NOT_LAST;
}

/* The lines of an address without their first characters, which must say that the function is the
 * program's. */
static const char *lines_of(size_t index) {
    static char text[SY_SYMBOLS_TEXT];
    char *to = text;
    for (const char *line = sy_symbols_lines(&symbols, index); *line;) {
        assert_int_equal(*line, SY_WHOSE_PROGRAM);
        size_t length = strcspn(++line, "\n");
        memcpy(to, line, length + 1);
        to += length + 1;
        line += length + 1;
    }
    *to = 0;
    return text;
}

static const char *words(const void *of, bool deep) {
    sy_symbols_find(&symbols, &of, 1, 1, deep);
    assert_int_equal(symbols.count, 1);
    return lines_of(0);
}

/* Expects "function at PATH/test_symbols.c:LINE", with any PATH. */
static const char *expect_line(const char *text, const char *function, int line) {
    char end[80];
    const char *stop = strchr(text, '\n');
    assert_non_null(stop);
    snprintf(end, sizeof end, "/test_symbols.c:%d\n", line);
    size_t length = strlen(function);
    assert_memory_equal(text, function, length);
    assert_memory_equal(text + length, " at ", 4);
    assert_true((size_t)(stop + 1 - text) > strlen(end));
    assert_memory_equal(stop + 1 - strlen(end), end, strlen(end));
    return stop + 1;
}

/* Expects "function+0x12 in /file" and nothing more. */
static void expect_place(const char *text, const char *function, const char *file) {
    size_t length = strlen(function);
    assert_memory_equal(text, function, length);
    assert_memory_equal(text + length, "+0x", 3);
    assert_non_null(strstr(text, " in /"));
    assert_non_null(strstr(text, file));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void a_call_has_function_file_and_line(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    const char *text = words(address, true);
    assert_string_equal(expect_line(text, "known_function", call_line), "");
}

static void an_inlined_call_has_a_line_for_each(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    around_inlined();
    const char *text = words(address, true);
    text = expect_line(text, "inlined_function", call_line);
    assert_string_equal(expect_line(text, "around_inlined", outer_line), "");
}

static void without_debug_information_there_is_the_function(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    expect_place(words(address, false), "known_function", "/test_symbols");
}

/* A function of a shared library, which may have been stripped. */
static void a_function_of_a_library_has_its_name(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    const void *within = (const char *)(uintptr_t)_assert_true + 5;
    expect_place(words(within, false), "_assert_true", "libcmocka");
    assert_memory_equal(words(within, true), "_assert_true", strlen("_assert_true"));
}

static void what_is_in_no_function_has_its_place(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    static const char data[16] = "no code";
    for (int deep = 0; deep <= 1; deep++) {
        const char *text = words(data + 8, deep);
        if (!deep) assert_memory_equal(text, "0x", 2);
        assert_non_null(strstr(text, " in /"));
        assert_non_null(strstr(text, "/test_symbols\n"));
    }
}

static void what_is_in_no_file_has_its_address(void **state) {
    (void)state;
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    char expected[40];
    snprintf(expected, sizeof expected, "0x%zx\n", (size_t)memory + 15);
    for (int deep = 0; deep <= 1; deep++)
        assert_string_equal(words((char *)memory + 16, deep), expected);
    munmap(memory, 4096);
    assert_string_equal(words(NULL, true), "0x0\n");
}

static void each_address_has_its_own_lines(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    const void *three[3];
    known_function();
    three[0] = three[2] = address;
    int line = call_line;
    around_inlined();
    three[1] = address;
    sy_symbols_find(&symbols, three, 3, 3, true);
    assert_int_equal(symbols.count, 3);
    expect_line(lines_of(0), "known_function", line);
    expect_line(lines_of(1), "inlined_function", call_line);
    assert_string_equal(sy_symbols_lines(&symbols, 2), sy_symbols_lines(&symbols, 0));
    sy_symbols_find(&symbols, three, 0, 0, true);
    assert_int_equal(symbols.count, 0);
}

/* ---- more than fits ---- */

/* A mapped file with the longest possible name. */
static const char *map_long_name(char *folder, char *file) {
    assert_non_null(mkdtemp(folder));
    size_t length = strlen(folder);
    memcpy(file, folder, length);
    file[length++] = '/';
    memset(file + length, 'n', 220);
    file[length + 220] = 0;
    FILE *written = fopen(file, "w");
    assert_non_null(written);
    assert_int_equal(fputs("no ELF", written) < 0, 0);
    assert_int_equal(fclose(written), 0);
    int fd = open(file, O_RDONLY);
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    close(fd);
    return mapped;
}

static void what_has_no_room_is_cut(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    char folder[] = "/tmp/slabyard-symbols-XXXXXX", file[300];
    const char *mapped = map_long_name(folder, file);
    char line[320];
    static const void *many[SY_SYMBOLS_MAX + 1];
    for (size_t i = 0; i < SY_SYMBOLS_MAX + 1; i++) many[i] = mapped + i + 1;
    for (int deep = 0; deep <= 1; deep++) {
        sy_symbols_find(&symbols, many, SY_SYMBOLS_MAX + 1, SY_SYMBOLS_MAX + 1, deep);
        assert_int_equal(symbols.count, SY_SYMBOLS_MAX);
        snprintf(line, sizeof line, "0x7 in %s\n", file);
        assert_string_equal(lines_of(7), line);
        assert_string_equal(sy_symbols_lines(&symbols, SY_SYMBOLS_MAX - 1), "");
        assert_int_equal(symbols.length, SY_SYMBOLS_TEXT - 1);
    }
    sy_symbols_find(&symbols, many, SY_SYMBOLS_MAX, 1, true);
    assert_in_range(symbols.count, 2, SY_SYMBOLS_MAX - 1); /* whole lines, or none */
    size_t last = symbols.count - 1;
    snprintf(line, sizeof line, "0x%zx in %s\n", last, file);
    assert_string_equal(lines_of(last), line);
    unlink(file);
    rmdir(folder);
}

/* ---- failures ---- */

static void without_a_child_it_is_shallow(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    sy_fake_fail_nth(SY_FAKE_ASK_CHILD, 1);
    errno = EBADF;
    expect_place(words(address, true), "known_function", "/test_symbols");
    assert_int_equal(errno, EBADF);
    sy_fake_reset();
}

/* The child loads the library, and each function that it needs. The n-th load fails, for each n. */
static void without_all_of_the_library_it_is_shallow(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    bool shallow = true;
    uint64_t n = 0;
    while (shallow) {
        sy_fake_fail_nth(SY_FAKE_LOAD, ++n);
        const char *text = words(address, true);
        shallow = strstr(text, "known_function+0x") == text;
        if (!shallow) expect_line(text, "known_function", call_line);
    }
    assert_true(n > 10);
    sy_fake_reset();
}

static void without_mappings_there_is_the_address(void **state) {
    (void)state;
    char expected[40];
    known_function();
    snprintf(expected, sizeof expected, "0x%zx\n", (size_t)address - 1);
    sy_fake_fail_from(SY_FAKE_LOCATE, 1);
    assert_string_equal(words(address, false), expected);
    sy_fake_reset();
}

static void say_one_and_die(const void *question, void *answer) {
    (void)question;
    sy_symbols *to = answer;
    memcpy(to->text, "psaid\n\0phalf a li", 17);
    to->length = 17;
    to->at[0] = 0;
    to->at[1] = 7;
    to->count = 1;
    abort();
}

static void say_too_many(const void *question, void *answer) {
    (void)question;
    ((sy_symbols *)answer)->count = 3;
}

static void say_too_much(const void *question, void *answer) {
    (void)question;
    ((sy_symbols *)answer)->count = 1;
    ((sy_symbols *)answer)->length = SY_SYMBOLS_TEXT;
}

static void say_it_elsewhere(const void *question, void *answer) {
    (void)question;
    ((sy_symbols *)answer)->count = 1;
    ((sy_symbols *)answer)->at[0] = SIZE_MAX;
}

static void what_a_child_did_not_say_is_told_without_it(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    const void *two[2] = {address, address};
    sy_fake_set_child(say_one_and_die);
    sy_symbols_find(&symbols, two, 2, 2, true);
    assert_int_equal(symbols.count, 2);
    assert_string_equal(lines_of(0), "said\n");
    expect_place(lines_of(1), "known_function", "/test_symbols");
    sy_fake_reset();
}

/* An address that is not needed has lines only if the child gives them. */
static void what_is_not_needed_is_only_what_a_child_says(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    const void *three[3] = {address, address, address};
    sy_fake_set_child(say_one_and_die);
    sy_symbols_find(&symbols, three, 3, 2, true);
    assert_int_equal(symbols.count, 2);
    expect_place(lines_of(1), "known_function", "/test_symbols");
    sy_fake_reset();
    sy_symbols_find(&symbols, three, 3, 1, true);
    assert_int_equal(symbols.count, 3);
    expect_line(lines_of(2), "known_function", call_line);
    sy_symbols_find(&symbols, three, 3, 1, false);
    assert_int_equal(symbols.count, 1);
    sy_fake_reset();
}

/* A debugger might stop the child, and the program would wait for it. */
static void under_a_debugger_there_is_no_child(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    known_function();
    sy_fake_set_traced(true);
    expect_place(words(address, true), "known_function", "/test_symbols");
    assert_int_equal(sy_fake_calls(SY_FAKE_ASK_CHILD), 0);
    sy_fake_reset();
}

static void what_makes_no_sense_is_not_believed(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    sy_os_work *const nonsense[] = {say_too_many, say_too_much, say_it_elsewhere};
    known_function();
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        sy_fake_set_child(nonsense[i]);
        expect_place(words(address, true), "known_function", "/test_symbols");
    }
    sy_fake_reset();
}

/* The program handles SIGCHLD and waits for all children, and notices no child. */
static volatile int heard;

static void hear(int signal) {
    (void)signal;
    heard++;
}

static void the_program_sees_no_child(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    const struct sigaction action = {.sa_handler = hear};
    struct sigaction before;
    sigaction(SIGCHLD, &action, &before);
    known_function();
    expect_line(words(address, true), "known_function", call_line);
    assert_int_equal(heard, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    sigaction(SIGCHLD, &before, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_has_function_file_and_line),
        cmocka_unit_test(an_inlined_call_has_a_line_for_each),
        cmocka_unit_test(without_debug_information_there_is_the_function),
        cmocka_unit_test(a_function_of_a_library_has_its_name),
        cmocka_unit_test(what_is_in_no_function_has_its_place),
        cmocka_unit_test(what_is_in_no_file_has_its_address),
        cmocka_unit_test(each_address_has_its_own_lines),
        cmocka_unit_test(what_has_no_room_is_cut),
        cmocka_unit_test(without_a_child_it_is_shallow),
        cmocka_unit_test(without_all_of_the_library_it_is_shallow),
        cmocka_unit_test(without_mappings_there_is_the_address),
        cmocka_unit_test(what_a_child_did_not_say_is_told_without_it),
        cmocka_unit_test(what_is_not_needed_is_only_what_a_child_says),
        cmocka_unit_test(under_a_debugger_there_is_no_child),
        cmocka_unit_test(what_makes_no_sense_is_not_believed),
        cmocka_unit_test(the_program_sees_no_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
