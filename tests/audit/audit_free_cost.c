/*
 * audit_free_cost.c: a free costs the same whether a hundred objects live or a million. The cost
 * is counted in instructions: a child frees objects in random order, one step at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "support/sanitized.h"
#include "support/steps.h"

enum { FREES = 100 };

typedef struct history {
    unsigned flags;
    size_t live;
} history;

static void free_some(const void *arg) {
    const history *it = arg;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .flags = it->flags});
    void **objects = calloc(it->live, sizeof *objects);
    uint64_t random = 18;
    must(cache && objects);
    must(sy_cache_alloc_batch(cache, objects, it->live) == it->live);
    shuffle(objects, it->live, &random);
    if (it->flags == 0) sy_thread_flush();
    count_from_here();
    for (size_t i = 0; i < FREES; i++) sy_cache_free(cache, objects[i]);
    count_to_here();
}

static void a_free_is_no_dearer_among_a_million(unsigned flags) {
    if (SANITIZED) skip(); /* a sanitizer adds many instructions */
    uint64_t few = instructions_of(free_some, &(history){.flags = flags, .live = FREES});
    uint64_t many = instructions_of(free_some, &(history){.flags = flags, .live = 1000000});
    if (few == 0) skip();
    print_message("instructions of a free: %.1f among %d, %.1f among a million\n",
                  (double)few / FREES, FREES, (double)many / FREES);
    assert_true(few > FREES); /* they were counted */
    assert_true(many < 2 * few);
}

static void with_magazines(void **state) {
    (void)state;
    a_free_is_no_dearer_among_a_million(0);
}

static void without_magazines(void **state) {
    (void)state;
    a_free_is_no_dearer_among_a_million(SY_CHECKED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_magazines),
        cmocka_unit_test(without_magazines),
    };
    return cmocka_run_group_tests_name("free cost", tests, NULL, NULL);
}
