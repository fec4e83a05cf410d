/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   allocated TIME ago by thread THREAD:
 *     STACK make_order
 *   freed TIME ago by thread THREAD:
 *     STACK close_order
 *   next: remove one of the two frees: decide which part of the program owns the object */
#include "misuse.h"

static sy_cache *cache;
static void *order;

static void *make_order(void *place) {
    *(void **)place = told(sy_cache_alloc(cache));
    return NULL;
}

static void *close_order(void *object) {
    sy_cache_free(cache, object);
    return hidden(object);
}

int main(void) {
    cache = cache_of("order", 64, SY_AUDIT);
    elsewhere(make_order, &order);
    elsewhere(close_order, order);
    sy_cache_free(cache, order);
}
