/* A user's program, built with installed files only: uses a pool, a cache and the heap. */
#include <slabyard/slabyard.h>

#include <stdio.h>
#include <string.h>

struct order {
    char name[40];
    long amount;
};

static int use_pool(void) {
    sy_pool_config config = {.size = sizeof(struct order)};
    sy_pool *pool = sy_pool_create(&config);
    if (!pool) return 1;
    struct order *first = sy_pool_alloc(pool);
    if (!first) return 2;
    memset(first, 1, sizeof *first);
    sy_pool_free(pool, first);
    if (sy_pool_alloc(pool) != first) return 3;
    if (sy_pool_in_use(pool) != 1) return 4;
    sy_pool_destroy(pool);
    return 0;
}

static int use_cache(void) {
    sy_cache_config config = {.name = "orders", .size = sizeof(struct order)};
    sy_cache *cache = sy_cache_create(&config);
    if (!cache) return 11;
    struct order *order = sy_cache_zalloc(cache);
    if (!order || order->amount != 0) return 12;
    memset(order, 2, sizeof *order);
    sy_cache_free(cache, order);
    if (sy_cache_in_use(cache) != 0) return 13;
    return sy_cache_destroy(cache) == 0 ? 0 : 14;
}

static int use_heap(void) {
    char *text = sy_malloc(100);
    if (!text) return 21;
    strcpy(text, "kept");
    char *longer = sy_realloc(text, 100000);
    if (!longer || strcmp(longer, "kept") != 0) return 22;
    if (sy_usable_size(longer) < 100000 || sy_good_size(100) != 112) return 23;
    sy_free(longer);
    return 0;
}

int main(void) {
    int status = use_pool();
    if (!status) status = use_cache();
    if (!status) status = use_heap();
    if (status) fprintf(stderr, "step %d failed\n", status);
    return status;
}
