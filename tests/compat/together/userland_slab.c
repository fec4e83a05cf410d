#include "compat/together/together.h"

#include "slab.h"

#include <slabyard/stats.h>

int with_userland_slab(void) {
    struct Objs_cache a_cache;
    sy_stats before, after;
    sy_get_stats(&before);
    /* The C++ file has called slab_allocator_init, which holds for all files. */
    if (!objs_cache_init(&a_cache, sizeof(unsigned long), NULL)) return 1;
    unsigned long *number = objs_cache_alloc(&a_cache);
    if (!number) return 2;
    objs_cache_free(&a_cache, number);
    objs_cache_destroy(&a_cache);
    slab_allocator_destroy();
    sy_get_stats(&after);
    return after.caches == before.caches - 1 ? 0 : 3;
}
