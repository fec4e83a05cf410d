/*
 * test_os_places.c: the functions of os.h that tell which stack, file, function or variable an
 * address belongs to, on the real system.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/sanitized.h"
#include "support/services.h"

/* Asks the kernel to read the byte, so that an unreadable byte causes no signal. */
static bool readable(uintptr_t address) {
    int ends[2];
    must(pipe(ends) == 0);
    ssize_t written = write(ends[1], (const void *)address, 1);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

/* ---- stacks ---- */

static void *find_own_stack(void *most) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    sy_os_bounds bounds = {0, 0};
    errno = EBADF;
    bool known = sy_os_stack(here, &bounds);
    must(errno == EBADF);
    if (!known && is_emulated()) return NULL; /* it does not say which pages can be read */
    must(known);
    uintptr_t high = bounds.high;
    must(bounds.low <= here && here < high);
    must(high - here <= *(size_t *)most);
    for (uintptr_t at = here; at < high; at += 4096) must(readable(at));
    must(readable(high - 1));
    return NULL;
}

static void a_stack_is_readable_up_to_its_end(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    size_t some = (size_t)16 << 20, page = sy_os_page_size();
    find_own_stack(&some);
    in_thread(find_own_stack, &some);
    /* The stack ends before the memory that lies behind it. */
    pthread_attr_t attributes;
    pthread_t thread;
    char *both = mmap(NULL, 512 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(both, MAP_FAILED);
    some = 256 * page;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, both, some), 0);
    assert_int_equal(pthread_create(&thread, &attributes, find_own_stack, &some), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    munmap(both, 512 * page);
}

/* Most of this stack has not been touched yet. */
static void the_first_threads_stack_has_room_to_grow(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    if (is_emulated()) skip(); /* it maps the whole stack, which does not grow */
    sy_os_bounds bounds = {0, 0};
    assert_true(sy_os_stack((uintptr_t)&bounds, &bounds));
    assert_true(bounds.high - bounds.low >= (uintptr_t)64 << 20);
}

static ucontext_t thread_context, coroutine_context;
static bool coroutine_knows = true;

static sy_os_bounds known_bounds;

static void ask_in_coroutine(void) {
    sy_os_bounds bounds = {0, 0};
    coroutine_knows =
        sy_os_stack((uintptr_t)&bounds, &bounds) || sy_os_stack((uintptr_t)&bounds, &known_bounds);
}

static void a_coroutines_stack_is_not_known(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    static char stack[256 << 10];
    assert_true(sy_os_stack((uintptr_t)&state, &known_bounds));
    assert_int_equal(getcontext(&coroutine_context), 0);
    coroutine_context.uc_stack.ss_sp = stack;
    coroutine_context.uc_stack.ss_size = sizeof stack;
    coroutine_context.uc_link = &thread_context;
    makecontext(&coroutine_context, ask_in_coroutine, 0);
    assert_int_equal(swapcontext(&thread_context, &coroutine_context), 0);
    assert_false(coroutine_knows);
}

/* ---- files and functions ---- */

static void other_function(void **state) { (void)state; }

static void code_has_a_file_and_a_function(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    sy_os_place place, other;
    uintptr_t code = (uintptr_t)code_has_a_file_and_a_function, there = (uintptr_t)other_function;
    errno = EBADF;
    assert_true(sy_os_locate(code + 3, &place));
    assert_int_equal(errno, EBADF);
    assert_string_equal(place.function, "code_has_a_file_and_a_function");
    assert_int_equal(place.in_function, 3);
    assert_string_equal(strrchr(place.file, '/'), "/test_os_places");
    assert_true(sy_os_locate(there, &other));
    assert_string_equal(other.function, "other_function");
    assert_int_equal(other.in_file + code, place.in_file - 3 + there);
}

static void other_memory_is_of_no_file(void **state) {
    (void)state;
    sy_os_place place;
    size_t page = sy_os_page_size();
    void *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_false(sy_os_locate((uintptr_t)memory, &place));
    munmap(memory, page);
    assert_false(sy_os_locate(0, &place));
    assert_false(sy_os_locate(UINTPTR_MAX, &place));
}

/* ---- data ---- */

static char zeroes[100000]; /* longer than the page that the file backs */
static char filled[100] = "filled";

static void expect_variable(const char *address, const char *section, const char *name) {
    sy_os_data data;
    errno = EBADF;
    sy_os_find((uintptr_t)address, &data);
    assert_int_equal(errno, EBADF);
    assert_int_equal(data.region, SY_OS_OF_PROGRAM);
    assert_string_equal(strrchr(data.file, '/'), "/test_os_places");
    assert_string_equal(data.section, section);
    assert_string_equal(data.name, name);
}

static void a_variable_has_a_name_and_a_section(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    sy_os_data data;
    expect_variable(zeroes + 90000, ".bss", "zeroes");
    expect_variable(filled, ".data", "filled");
    sy_os_find((uintptr_t)filled + 7, &data);
    assert_int_equal(data.behind, 7);
    sy_os_find((uintptr_t)(void *)&stdout, &data); /* the C library's, or the program's copy */
    assert_int_equal(data.region, SY_OS_OF_PROGRAM);
}

static sy_os_region region_at(const void *address) {
    sy_os_data data;
    sy_os_find((uintptr_t)address, &data);
    return data.region;
}

static void *look_at_stacks(void *first) {
    const char here = 0;
    must(region_at(&here) == SY_OS_OWN_STACK && region_at(first) == SY_OS_FIRST_STACK);
    return NULL;
}

/* Under sanitizers a thread's stack may lie elsewhere. */
static void a_stack_is_told_from_another(void **state) {
    needs(SY_OS_STACKS);
    (void)state;
    void *here = __builtin_frame_address(0);
    assert_int_equal(region_at(here), SY_OS_OWN_STACK);
    if (!SANITIZED) in_thread(look_at_stacks, here);
}

static void a_mapping_is_told_from_none(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    size_t page = sy_os_page_size();
    char *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(region_at(memory + 5), SY_OS_ANONYMOUS);
    munmap(memory, page);
    assert_int_equal(region_at(NULL), SY_OS_NOWHERE);
    assert_int_equal(region_at((void *)UINTPTR_MAX), SY_OS_NOWHERE);
}

static void a_mapping_ends_where_it_ends(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    size_t page = sy_os_page_size();
    char *memory = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(munmap(memory + page, page), 0);
    assert_int_equal(region_at(memory + page - 1), SY_OS_ANONYMOUS);
    assert_int_equal(region_at(memory + page), SY_OS_NOWHERE);
    assert_int_equal(region_at(memory + 2 * page), SY_OS_ANONYMOUS);
    munmap(memory, 3 * page);
}

/* Two variables with no gap between them. */
__asm__(".pushsection .data\n"
        ".type variable_before, %object\n.type variable_behind, %object\n"
        ".size variable_before, 16\n.size variable_behind, 16\n"
        "variable_before: .zero 16\nvariable_behind: .zero 16\n"
        ".popsection\n");
extern char variable_before[16] __attribute__((visibility("hidden")));
extern char variable_behind[16] __attribute__((visibility("hidden")));

static void a_variable_ends_where_it_ends(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    assert_ptr_equal(variable_before + 16, variable_behind);
    expect_variable(variable_before + 15, ".data", "variable_before");
    expect_variable(variable_behind, ".data", "variable_behind");
}

/* Makes nested folders until the path is too long to be kept whole, and opens a file there. */
static int open_far_down(void) {
    char name[120];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    char top[] = "/tmp/slabyard-XXXXXX";
    int folder, file = -1;
    if (!mkdtemp(top)) return -1;
    folder = open(top, O_RDONLY | O_DIRECTORY);
    for (size_t length = 0; folder >= 0 && length < 3 * SY_OS_FILE_MAX; length += sizeof name) {
        int inner = mkdirat(folder, name, 0700) == 0 ? openat(folder, name, O_RDONLY) : -1;
        close(folder);
        folder = inner;
    }
    if (folder >= 0) file = openat(folder, "file", O_RDWR | O_CREAT, 0600);
    if (folder >= 0) close(folder);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", top);
    must(system(remove) == 0);
    return file;
}

static void a_long_path_is_cut(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    size_t page = sy_os_page_size();
    int file = open_far_down();
    assert_true(file >= 0 && ftruncate(file, (off_t)page) == 0);
    char *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    sy_os_place place;
    assert_true(sy_os_locate((uintptr_t)memory, &place));
    assert_int_equal(strnlen(place.file, sizeof place.file), SY_OS_FILE_MAX - 1);
    munmap(memory, page);
    close(file);
}

static void a_file_and_the_heap_are_named(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    sy_os_data data;
    int fd = open("/proc/self/exe", O_RDONLY);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    sy_os_find((uintptr_t)mapped, &data);
    assert_int_equal(data.region, SY_OS_OF_FILE);
    assert_string_equal(strrchr(data.file, '/'), "/test_os_places");
    munmap(mapped, 4096);
    close(fd);
    if (is_emulated()) return; /* its list of mappings does not name the heap */
    char *end = sbrk(4096);
    assert_ptr_not_equal(end, (void *)-1);
    sy_os_find((uintptr_t)end, &data);
    assert_int_equal(data.region, SY_OS_NAMED);
    assert_string_equal(data.file, "[heap]");
}

/* ---- files with other content ---- */

enum { START = 4096 }; /* bytes of a program's file, which include its headers */

static void read_start(unsigned char *bytes) {
    FILE *self = fopen("/proc/self/exe", "rb");
    assert_non_null(self);
    assert_int_equal(fread(bytes, 1, START, self), START);
    fclose(self);
}

/* Maps a file of these bytes, and locates byte 64. */
static void locate_in(const unsigned char *bytes, size_t length, sy_os_place *place) {
    char name[] = "/tmp/slabyard-elf-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    char *mapped = mmap(NULL, START, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(sy_os_locate((uintptr_t)mapped + 64, place));
    assert_string_equal(place->file, name);
    assert_true(strlen(place->function) < sizeof place->function);
    munmap(mapped, START);
    close(fd);
    unlink(name);
}

/* An address is located as in the file's headers, by which tools know it. */
static void a_file_says_where_its_parts_belong(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    unsigned char bytes[START];
    read_start(bytes);
    ElfW(Ehdr) header;
    memcpy(&header, bytes, sizeof header);
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        unsigned char *at = bytes + header.e_phoff + i * sizeof part;
        memcpy(&part, at, sizeof part);
        part.p_vaddr += part.p_type == PT_LOAD ? 0x400000 : 0;
        memcpy(at, &part, sizeof part);
    }
    sy_os_place place;
    locate_in(bytes, sizeof bytes, &place);
    assert_int_equal(place.in_file % 0x400000, 64);
    assert_true(place.in_file >= 0x400000);
}

static void a_file_is_not_believed(void **state) {
    needs(SY_OS_PLACES);
    (void)state;
    unsigned char bytes[START], damaged[START];
    read_start(bytes);
    uint64_t seed = 1;
    sy_os_place place;
    for (int round = 0; round < 300; round++) {
        memcpy(damaged, bytes, sizeof damaged);
        for (int i = 0; i <= round % 12; i++) {
            uint64_t chance = next_random(&seed);
            damaged[16 + chance % 400] ^= (unsigned char)(1 << (chance >> 32) % 8);
        }
        locate_in(damaged, sizeof damaged, &place);
        locate_in(bytes, next_random(&seed) % 700, &place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_is_readable_up_to_its_end),
        cmocka_unit_test(the_first_threads_stack_has_room_to_grow),
        cmocka_unit_test(a_coroutines_stack_is_not_known),
        cmocka_unit_test(code_has_a_file_and_a_function),
        cmocka_unit_test(other_memory_is_of_no_file),
        cmocka_unit_test(a_variable_has_a_name_and_a_section),
        cmocka_unit_test(a_stack_is_told_from_another),
        cmocka_unit_test(a_mapping_is_told_from_none),
        cmocka_unit_test(a_file_and_the_heap_are_named),
        cmocka_unit_test(a_file_says_where_its_parts_belong),
        cmocka_unit_test(a_file_is_not_believed),
        cmocka_unit_test(a_mapping_ends_where_it_ends),
        cmocka_unit_test(a_variable_ends_where_it_ends),
        cmocka_unit_test(a_long_path_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
