/*
 * test_heap_by_address.c: the root of the heap is the lowest node, whatever was inserted and
 * removed before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/heap_by_address.h"
#include "support/child.h"

enum { NODES = 200 };

static sy_heap_node nodes[NODES];
static bool inside[NODES];

static const sy_heap_node *lowest_inside(void) {
    for (int i = 0; i < NODES; i++)
        if (inside[i]) return &nodes[i];
    return NULL;
}

static void an_empty_heap_has_no_lowest(void **state) {
    (void)state;
    sy_heap_node *root = NULL, node;
    sy_heap_insert(&root, &node);
    assert_ptr_equal(root, &node);
    sy_heap_remove(&root, &node);
    assert_null(root);
}

static void any_node_can_be_taken_out(void **state) {
    (void)state;
    sy_heap_node *root = NULL;
    uint64_t random = 3;
    memset(inside, 0, sizeof inside);
    for (int step = 0; step < 20000; step++) {
        /* For 500 steps the heap mostly fills, for the next 500 it mostly drains. */
        size_t i = next_random(&random) % NODES;
        bool rising = step / 500 % 2 == 0;
        if (inside[i] == rising && next_random(&random) % 4) continue;
        if (inside[i])
            sy_heap_remove(&root, &nodes[i]);
        else
            sy_heap_insert(&root, &nodes[i]);
        inside[i] = !inside[i];
        assert_ptr_equal(root, lowest_inside());
    }
}

static void taking_the_lowest_gives_them_in_order(void **state) {
    (void)state;
    sy_heap_node *root = NULL;
    for (size_t i = 0; i < NODES; i++) sy_heap_insert(&root, &nodes[i * 7 % NODES]);
    for (size_t i = 0; i < NODES; i++) {
        assert_ptr_equal(root, &nodes[i]);
        sy_heap_remove(&root, root);
    }
    assert_null(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_lowest),
        cmocka_unit_test(any_node_can_be_taken_out),
        cmocka_unit_test(taking_the_lowest_gives_them_in_order),
    };
    return cmocka_run_group_tests_name("heap_by_address", tests, NULL, NULL);
}
