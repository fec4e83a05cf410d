/*
 * test_pool_calls.c: pool.h for a program that does not inline. Each function is a call into the
 * library, and works on the same pool as the inline functions.
 */
#define SY_NO_INLINE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/pool.h>

static void calls_do_what_the_inline_functions_do(void **state) {
    (void)state;
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 24, .capacity = 2});
    assert_non_null(pool);
    void *a = sy_pool_alloc(pool), *b = sy_pool_alloc_inline(pool);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(sy_pool_alloc(pool));
    sy_pool_free(pool, NULL);
    sy_pool_free(pool, b);
    sy_pool_free(pool, a);
    assert_int_equal(sy_pool_in_use(pool), 0);
    assert_ptr_equal(sy_pool_alloc_inline(pool), a);
    assert_ptr_equal(sy_pool_alloc(pool), b);
    sy_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_do_what_the_inline_functions_do),
    };
    return cmocka_run_group_tests_name("pool_calls", tests, NULL, NULL);
}
