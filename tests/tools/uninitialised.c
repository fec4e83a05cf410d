/*
 * asan: nothing
 *
 * memcheck: depends on uninitialised value; judge_order; plain_order; depends on
 * uninitialised value; judge_order; poisoned_order
 */
#include "tools.h"

IN_REPORT void judge_order(const char *order, int at);

void judge_order(const char *order, int at) {
    if (*(const volatile char *)(order + at)) sink = 1;
    sink = 0;
}

/* Returns an object whose slot was written by an earlier object. Only its first byte is written. */
static char *reuse_order(unsigned flags) {
    orders = sy_cache_create(
        &(sy_cache_config){.name = "order", .size = ORDER_BYTES, .limit = 1, .flags = flags});
    must(orders != NULL);
    drop_order(memset(make_order(), 1, ORDER_BYTES));
    char *order = make_order();
    order[0] = 1;
    judge_order(order, 0);
    return order;
}

static void end(char *order) {
    drop_order(order);
    sy_cache_destroy(orders);
}

IN_REPORT void plain_order(void);
IN_REPORT void poisoned_order(void);

void plain_order(void) {
    char *order = reuse_order(0);
    judge_order(order, 1);
    end(order);
}

void poisoned_order(void) {
    char *order = reuse_order(SY_POISON); /* the library fills the object */
    judge_order(order, 1);
    end(order);
}

int main(void) {
    plain_order();
    poisoned_order();
    return 0;
}
