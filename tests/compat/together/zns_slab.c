#include "compat/together/together.h"

#include <slab_alloc.h>

int with_zns_slab(void) {
    SlabAllocator *alloc = slab_allocator_create();

    SlabHandle h;
    void *p = alloc_obj(alloc, 128, &h);
    if (!p || !free_obj(alloc, h) || free_obj(alloc, h)) return 1;

    p = slab_malloc(alloc, 128);
    if (!p) return 2;
    slab_free(alloc, p);

    slab_allocator_free(alloc);
    return 0;
}
