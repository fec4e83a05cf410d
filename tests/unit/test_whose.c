/*
 * test_whose.c: to whom a function belongs, by its name and its source (report/whose.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/whose.h"
#include "support/child.h"

#define PATH_OF_STD "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/alloc/src/alloc.rs"

static sy_whose in_c(const char *name, const char *path) {
    return sy_whose_function(name, path, false);
}

static sy_whose in_rust(const char *name, const char *path) {
    return sy_whose_function(name, path, true);
}

static void the_core_is_known_by_its_names(void **state) {
    (void)state;
    assert_int_equal(in_c("sy_cache_free", NULL), SY_WHOSE_OWN);
    assert_int_equal(in_c("sy_cache_free(sy_cache*, void*)", NULL), SY_WHOSE_OWN);
    assert_int_equal(in_rust("sy_cache_free", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("symbols", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("main", "/home/me/slabyard/main.c"), SY_WHOSE_PROGRAM);
}

static void public_headers_are_ours_wherever_they_are(void **state) {
    (void)state;
    assert_int_equal(in_c("helper", "/usr/include/slabyard/slabyard.hpp"), SY_WHOSE_OWN);
    assert_int_equal(in_c("helper", "slabyard/cache.h"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("helper", "/home/me/myslabyard/cache.h"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("helper", "/cache.h"), SY_WHOSE_PROGRAM);
}

static void names_of_cxx_have_types_before_them(void **state) {
    (void)state;
    assert_int_equal(in_c("std::vector<unsigned long>::push_back(int)", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("slabyard::cache<order>::destroy(order*)", NULL), SY_WHOSE_OWN);
    assert_int_equal(in_c("order* slabyard::cache<order>::make<int&>(int&)", NULL), SY_WHOSE_OWN);
    assert_int_equal(in_c("slabyard::unique<order> shop::open<int>(int)", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("void shop::put<std::string>(std::string)", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("shop::open(std::string)", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("(anonymous namespace)::open(std::string)", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("bool std::operator< <char>(int)", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("shop::operator<(std::string)", NULL), SY_WHOSE_PROGRAM);
}

static void the_library_of_cxx_is_left_out(void **state) {
    (void)state;
    assert_int_equal(in_c("operator new(unsigned long)", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("std::vector<int>::push_back(int&&)", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("allocate", "/usr/include/c++/12/bits/new_allocator.h"),
                     SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("core::open(int)", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("alloc::open(int)", "/src/alloc.cpp"), SY_WHOSE_PROGRAM);
}

static void a_method_is_of_its_types_crate(void **state) {
    (void)state;
    assert_int_equal(in_rust("<shop::Order as core::ops::drop::Drop>::drop", NULL),
                     SY_WHOSE_PROGRAM);
    assert_int_equal(in_rust("<&mut shop::Order as core::fmt::Debug>::fmt", NULL),
                     SY_WHOSE_PROGRAM);
    assert_int_equal(in_rust("<alloc::vec::Vec<shop::Order> as core::ops::drop::Drop>::drop", NULL),
                     SY_WHOSE_LANGUAGE);
    assert_int_equal(
        in_rust("<slabyard::cache::boxed::ObjectBox<T,H> as core::ops::drop::Drop>::drop", NULL),
        SY_WHOSE_OWN);
    assert_int_equal(in_rust("<u32 as shop::Sold>::sell", NULL), SY_WHOSE_PROGRAM);
    assert_int_equal(in_rust("<u32 as core::convert::Into<u64>>::into", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_rust("core::ptr::drop_in_place::<shop::Order>", NULL), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_rust("shop::core::open", NULL), SY_WHOSE_PROGRAM);
}

/* If there are only tables of lines, names have no paths of crates. Then the source decides. */
static void without_a_crate_the_source_says_it(void **state) {
    (void)state;
    assert_int_equal(in_c("alloc", PATH_OF_STD), SY_WHOSE_LANGUAGE);
    assert_int_equal(in_c("take<u64>", "/repo/rust/slabyard/src/cache/mod.rs"), SY_WHOSE_OWN);
    assert_int_equal(in_c("take<u64>", "slabyard/src/cache/mod.rs"), SY_WHOSE_OWN);
    assert_int_equal(in_c("take<u64>", "/registry/slabyard-0.1.0/src/lib.rs"), SY_WHOSE_OWN);
    assert_int_equal(in_c("take", "/registry/slabyard-sys-0.1.0/src/lib.rs"), SY_WHOSE_OWN);
    assert_int_equal(in_c("take", "/registry/slabyard-users-0.1.0/src/lib.rs"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("main", "/home/me/slabyard/src/main.rs"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("open", "/home/me/shop/src/order.rs"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("shop::open", PATH_OF_STD), SY_WHOSE_PROGRAM);
    assert_int_equal(in_c("__rust_alloc", "/home/me/shop/src/main.rs"), SY_WHOSE_LANGUAGE);
}

static void the_runtime_is_around_main(void **state) {
    (void)state;
    const char *around_main = "std::sys::backtrace::__rust_begin_short_backtrace::<fn(), ()>";
    assert_int_equal(in_rust(around_main, PATH_OF_STD), SY_WHOSE_START);
    assert_int_equal(in_rust(around_main, NULL), SY_WHOSE_PROGRAM); /* main may be inlined there */
    assert_int_equal(in_rust("std::rt::lang_start_internal", NULL), SY_WHOSE_START);
    assert_int_equal(in_rust("<std::sys::thread::unix::Thread>::new::thread_start", NULL),
                     SY_WHOSE_START);
    assert_int_equal(in_rust("<std::io::stdio::Stdin>::lock", NULL), SY_WHOSE_RUNTIME);
    assert_int_equal(in_rust("std::backtrace_rs::symbolize::gimli::resolve", NULL),
                     SY_WHOSE_RUNTIME);
    assert_int_equal(in_rust("slabyard::limit::keep_for_limit::<u8>", NULL), SY_WHOSE_RUNTIME);
    assert_int_equal(in_rust("keep_for_limit<u8>", "/app/slabyard/src/limit.rs"), SY_WHOSE_RUNTIME);
    assert_int_equal(in_rust("keep_for_limit<u8>", "/app/src/main.rs"), SY_WHOSE_PROGRAM);
    assert_int_equal(in_rust("<slabyard::limit::Limit>::set", NULL), SY_WHOSE_OWN);
}

static void our_shared_library_has_its_name(void **state) {
    (void)state;
    assert_true(sy_whose_library("/usr/lib/libslabyard.so.1"));
    assert_true(sy_whose_library("libslabyard-dlopen.so"));
    assert_false(sy_whose_library("/usr/lib/libshop.so"));
    assert_false(sy_whose_library("/home/libslabyard/shop"));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_is_known_by_its_names),
        cmocka_unit_test(public_headers_are_ours_wherever_they_are),
        cmocka_unit_test(names_of_cxx_have_types_before_them),
        cmocka_unit_test(the_library_of_cxx_is_left_out),
        cmocka_unit_test(a_method_is_of_its_types_crate),
        cmocka_unit_test(without_a_crate_the_source_says_it),
        cmocka_unit_test(the_runtime_is_around_main),
        cmocka_unit_test(our_shared_library_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
