// A user's program in C++ that uses the C interface, whose inline functions compile as C++11 too.
#include <slabyard/slabyard.h>

#include <cstdio>
#include <new>

struct Order {
    long amount = 7;
};

int main() {
    sy_cache_config config = {};
    config.name = "orders";
    config.size = sizeof(Order);
    config.align = alignof(Order);
    sy_cache *cache = sy_cache_create(&config);
    if (!cache) return 1;
    void *place = sy_cache_alloc(cache);
    if (!place) return 2;
    Order *order = new (place) Order;
    const bool kept = order->amount == 7;
    order->~Order();
    sy_cache_free(cache, place);

    sy_pool_config small = {};
    small.size = sizeof(Order);
    sy_pool *pool = sy_pool_create(&small);
    if (!pool || !sy_pool_alloc(pool)) return 3;
    sy_pool_destroy(pool);

    void *bytes = sy_malloc(64);
    if (!bytes) return 4;
    sy_free(bytes);
    if (!kept || sy_cache_destroy(cache) != 0) return 5;
    return 0;
}
