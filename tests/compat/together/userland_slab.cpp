#include "compat/together/together.h"

#include "slab.h"

static void build(void *object) { *static_cast<int *>(object) = 7; }

static Objs_cache cache;

int with_userland_slab_in_cpp(void) {
    if (!slab_allocator_init() || !objs_cache_init(&cache, sizeof(int), build)) return 1;
    int *number = static_cast<int *>(objs_cache_alloc(&cache));
    if (!number || *number != 7) return 2;
    objs_cache_free(&cache, number);
    return 0;
}
