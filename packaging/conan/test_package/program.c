/* Takes objects from a cache and gives them back. */
#include <slabyard/slabyard.h>
#include <stdio.h>

struct order {
    unsigned long id;
    double price;
};

int main(void) {
    sy_cache *orders =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = sizeof(struct order)});
    struct order *order = sy_cache_alloc(orders);
    if (!order) return 1;
    *order = (struct order){.id = 1, .price = 100};
    printf("slabyard: order %lu\n", order->id);
    sy_cache_free(orders, order);
    return sy_cache_destroy(orders);
}
