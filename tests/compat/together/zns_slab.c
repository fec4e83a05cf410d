#include "compat/together/together.h"

/* Includes the internal header, as ZNS-Slab's own tests and benchmarks do. This file is compiled as
 * ISO C. */
#include <slab_alloc_internal.h>

int with_zns_slab(void) {
    SlabAllocator *alloc = slab_allocator_create();

    SlabHandle h;
    void *p = alloc_obj(alloc, 128, &h);
    if (!p || !free_obj(alloc, h) || free_obj(alloc, h)) return 1;

    p = slab_malloc(alloc, 128);
    if (!p) return 2;
    slab_free(alloc, p);

    slab_allocator_free(alloc);

    SlabAllocator own;
    allocator_init(&own);
    if (sizeof own != 4 * sizeof(SizeClassAlloc) || now_ns() == 0) return 3;
    if (alloc_obj(&own, 128, NULL) == NULL) return 4;
    allocator_destroy(&own);
    return read_rss_bytes_linux() / slab_object_count(SLAB_PAGE_SIZE) == 0;
}
