/*
 * test_access.c: a fault is explained as an access by a poisoned pointer if a register of the
 * processor holds the pattern, and only then. Also: when the handler is installed. How the
 * registers are read is tested in test_bad_access.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "debug/access.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/services.h"

static sy_fault last;
static unsigned faults;

static void note_fault(const sy_fault *fault) {
    last = *fault;
    faults++;
}

/* How a faulting access with `value` in its third register is explained; 0: not at all. */
static sy_fault_kind kind_of(uint64_t value, bool placed, uint64_t address) {
    sy_os_access access = {
        .address = (uintptr_t)address, .placed = placed, .way = SY_OS_WRITE, .registers = 4};
    access.values[2] = (uintptr_t)value;
    faults = 0;
    bool told = sy_access_explain_pattern(&access);
    assert_int_equal(faults, told);
    return told ? last.kind : 0;
}

static const uint64_t MEMBER = 0x1234, FAR = (uint64_t)16 << 20;

static void a_pointer_from_a_pattern_is_known(void **state) {
    (void)state;
    assert_int_equal(kind_of(SY_PATTERN_FREE, false, 0), SY_FAULT_FREED_POINTER);
    assert_ptr_equal(last.address, (void *)(uintptr_t)SY_PATTERN_FREE);
    assert_string_equal(last.held_in, sy_os_register_name(2));
    assert_int_equal(last.access, SY_ACCESS_WRITE);
    assert_string_equal(last.cache, "");
    assert_int_equal(kind_of(SY_PATTERN_NEW, false, 0), SY_FAULT_UNWRITTEN_POINTER);
    assert_int_equal(kind_of(SY_PATTERN_FREE + MEMBER, false, 0), SY_FAULT_FREED_POINTER);
    assert_int_equal(kind_of(SY_PATTERN_NEW - MEMBER, false, 0), SY_FAULT_UNWRITTEN_POINTER);
}

static void another_pointer_is_not(void **state) {
    (void)state;
    assert_int_equal(kind_of(0, false, 0), 0);
    assert_int_equal(kind_of(SY_PATTERN_FREE + FAR, false, 0), 0);
    assert_int_equal(kind_of(SY_PATTERN_FREE - FAR, false, 0), 0);
    if (UINTPTR_MAX > UINT32_MAX) assert_int_equal(kind_of((uint32_t)SY_PATTERN_FREE, false, 0), 0);
}

/* A register may hold the pattern although the access does not use that register. */
static void an_address_that_is_known_has_to_be_near(void **state) {
    (void)state;
    const uintptr_t untagged = UINTPTR_MAX >> (UINTPTR_MAX > UINT32_MAX ? 8 : 0);
    assert_int_equal(kind_of(SY_PATTERN_FREE, true, 16), 0);
    assert_int_equal(kind_of(SY_PATTERN_FREE, true, SY_PATTERN_FREE + MEMBER),
                     SY_FAULT_FREED_POINTER);
    assert_int_equal(kind_of(SY_PATTERN_FREE, true, (SY_PATTERN_FREE + MEMBER) & untagged),
                     SY_FAULT_FREED_POINTER);
    assert_int_equal(kind_of(SY_PATTERN_NEW, true, SY_PATTERN_FREE), 0);
}

/* ---- when the handler is installed ---- */

static void end_told(const sy_fault *fault) {
    _exit(fault->kind == SY_FAULT_FREED_POINTER    ? 1
          : fault->kind == SY_FAULT_USE_AFTER_FREE ? 2
                                                   : 3);
}

/* Runs with the options of the text. Makes an access after free in a guarded cache, or by a pointer
 * that was read from a poisoned object. Exits with 1 or 2 if the access is explained. */
static void access_after_free(const char *options, unsigned flags) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    sigaction(SIGSEGV, &action, NULL);
    must(sy_set_options(options) == 0);
    sy_set_fault_handler(end_told);
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = 64, .flags = flags});
    const char *volatile *object = sy_cache_alloc(cache);
    sy_cache_free(cache, (void *)object);
    __asm__ volatile("" : "+r"(object));
    const volatile char *pointer = *object;
    (void)*pointer;
}

static void access_poison(void *options) { access_after_free(options, SY_POISON); }

static void access_guarded(void *options) { access_after_free(options, SY_GUARD); }

static int exit_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

static void the_option_decides(void **state) {
    needs(SY_OS_ACCESSES);
    (void)state;
    if (is_emulated()) skip(); /* the signal says that the bad address is 0 */
    assert_int_equal(exit_status(in_child(access_poison, "tools=off,explain")), 1);
    assert_int_equal(exit_status(in_child(access_poison, "tools=off")), -1);
    assert_int_equal(exit_status(in_child(access_poison, "tools=off,explain=no")), -1);
    assert_int_equal(exit_status(in_child(access_guarded, "tools=off,guard=all,explain")), 2);
    assert_int_equal(exit_status(in_child(access_guarded, "tools=off,guard=all")), 2);
    assert_int_equal(exit_status(in_child(access_guarded, "tools=off,guard=all,explain=no")), -1);
}

static int begin(void **state) {
    (void)state;
    sy_set_fault_handler(note_fault);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_pointer_from_a_pattern_is_known, begin),
        cmocka_unit_test_setup(another_pointer_is_not, begin),
        cmocka_unit_test_setup(an_address_that_is_known_has_to_be_near, begin),
        cmocka_unit_test_setup(the_option_decides, begin),
    };
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
