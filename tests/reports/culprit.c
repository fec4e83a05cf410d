/* Frees an object twice. run.sh compares the stacks in the report with the marks at line ends. */
#include <slabyard/slabyard.h>

#define APART __attribute__((noinline))

static sy_cache *orders;

APART static void *open_order(void) {
    void *order = sy_cache_alloc(orders); /* allocated open_order */
    __asm__ volatile("" ::: "memory");
    return order;
}

APART static void close_order(void *order) {
    sy_cache_free(orders, order); /* seen freed close_order */
    __asm__ volatile("" ::: "memory");
}

/* The attribute cold makes compilers move the call in main to a part of its own, main.cold. */
__attribute__((cold)) APART static void close_twice(void *order) {
    close_order(order);
    close_order(order);
    __asm__ volatile("" ::: "memory");
}

int main(int count, char **words) {
    (void)words;
    orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    void *order = open_order();
    if (count == 1) close_twice(order);
    return count;
}
