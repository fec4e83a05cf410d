/*
 * test_rust_name.c: names that rustc 1.95 mangled, and the names that they stand for. Also texts
 * that are no mangled names, and texts whose names would have no end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "report/rust_name.h"
#include "support/child.h"

static const char *const known[][2] = {
    {"_ZN2s310drop_twice17h20d18f73558f62dfE", "s3::drop_twice"},
    {"_ZN72_$LT$alloc..boxed..Box$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$"
     "4drop17hee2b6dfbe8ad52e8E",
     "<alloc::boxed::Box<T,A> as core::ops::drop::Drop>::drop"},
    {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17hf2c932b514d1379aE",
     "std::rt::lang_start::{{closure}}"},
    {"_RNvCsfLfy6EI15iL_7___rustc14___rust_dealloc", "__rustc::__rust_dealloc"},
    {"_RNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal", "std::rt::lang_start_internal"},
    {"_RNvNtNtNtNtNtCsjrHSEGnQ3l9_3std3sys3pal4unix14stack_overflow11thread_info16set_current_info",
     "std::sys::pal::unix::stack_overflow::thread_info::set_current_info"},
    {"_RNCNCNCNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal00s_0B9_",
     "std::rt::lang_start_internal::{closure#0}::{closure#0}::{closure#1}"},
    {"_RNSNvYNCNCNvNtNtCsjrHSEGnQ3l9_3std3sys9backtrace10__print_fmts_00INtNtNtCsgEmfK2I1SDS_4core"
     "3ops8function6FnOnceTRNtNtNtBe_12backtrace_rs9symbolize6SymbolEE9call_once6vtableBe_",
     "<std::sys::backtrace::_print_fmt::{closure#1}::{closure#0} as core::ops::function::FnOnce<("
     "&std::backtrace_rs::symbolize::Symbol,)>>::call_once::{shim:vtable#0}"},
    {"_RINvCs1_4shop4openAhj10_E", "shop::open::<[u8; 16]>"},
    {"_RINvCs1_4shop4openFUKCmEuE", "shop::open::<unsafe extern fn(u32)>"},
    {"_RINvCs1_4shop4openFmEhE", "shop::open::<fn(u32) -> u8>"},
    {"_RINvCs1_4shop4openDNtB2_4SoldNtB2_4KeptEL_E", "shop::open::<dyn shop::Sold + shop::Kept>"},
    {"_RINvCs1_4shop4openQPmOSeTmEE", "shop::open::<&mut *const u32, *mut [str], (u32,)>"},
    {"_RINvCs1_4shop4openKb1_Kln5_KpE", "shop::open::<true, -5, _>"},
    {"_RINvCs1_4shop4openKyffffffffffffffff_Ko010000000000000000_Ko0_E",
     "shop::open::<18446744073709551615, 0x10000000000000000, 0>"},
    {"_RNvMNtCs1_4shop3binNtB2_5Order4open", "<shop::bin::Order>::open"},
    {"_RNCNvCs1_4shop4opensA_0", "shop::open::{closure#38}"},
};

static void names_are_in_words(void **state) {
    (void)state;
    char name[SY_RUST_NAME_MAX];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(sy_rust_name(known[i][0], name));
        assert_string_equal(name, known[i][1]);
    }
}

static void other_names_are_not_rusts(void **state) {
    (void)state;
    static const char *const others[] = {"",
                                         "main",
                                         "_Z4openi",
                                         "_ZN4book4shop4openEi",
                                         "_R",
                                         "_ZN",
                                         "_RNvC",
                                         "_ZN4shop17h20d18f73558f62d!E",
                                         "_RB_",
                                         "_RNvB_",
                                         "_ZN9999999999aE",
                                         "_RINvCs1_4shop4openKc",
                                         "_RC9a",
                                         "_ZN0E",
                                         "_RNvC1a3bc",
                                         "_ZN3shop3fadE",
                                         "_ZN4shop3fadE"};
    char name[SY_RUST_NAME_MAX];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sy_rust_name(others[i], name));
}

/* Each type contains the type before twice. */
static void a_name_without_end_ends(void **state) {
    (void)state;
    char mangled[400] = "_RINvC1a1bTmmE", name[SY_RUST_NAME_MAX];
    for (unsigned i = 0; i < 30; i++) strcat(mangled, "TB7_B7_E");
    strcat(mangled, "E");
    (void)sy_rust_name(mangled, name);
    char deep[2000] = "_RINvC1a1b";
    memset(deep + strlen(deep), 'R', 1500);
    assert_false(sy_rust_name(deep, name));
}

static void long_names_are_cut(void **state) {
    (void)state;
    char mangled[4000] = "_RINvC1a1b", name[SY_RUST_NAME_MAX];
    memset(mangled + strlen(mangled), 'm', 2000);
    strcat(mangled, "E");
    assert_true(sy_rust_name(mangled, name));
    assert_int_equal(strlen(name), SY_RUST_NAME_MAX - 1);
    assert_memory_equal(name, "a::b::<u32, u32, ", 17);
}

/* For any text the function stays within the text and within the room, which sanitizers check. */
static void any_text_may_be_given(void **state) {
    (void)state;
    uint64_t seed = 1;
    char mangled[300], name[SY_RUST_NAME_MAX];
    for (unsigned round = 0; round < 100000; round++) {
        strcpy(mangled, known[round % (sizeof known / sizeof *known)][0]);
        uint32_t length = (uint32_t)strlen(mangled);
        for (uint32_t changes = 1 + sy_random_below(&seed, 4); changes; changes--)
            mangled[2 + sy_random_below(&seed, length - 2)] =
                known[3][0][sy_random_below(&seed, 40)];
        if (sy_rust_name(mangled, name)) assert_true(strlen(name) < SY_RUST_NAME_MAX);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_in_words),      cmocka_unit_test(other_names_are_not_rusts),
        cmocka_unit_test(a_name_without_end_ends), cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(any_text_may_be_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
