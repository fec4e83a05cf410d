/*
 * slab_alloc_internal.h: for programs that include ZNS-Slab's internal header, as ZNS-Slab's own
 * tests and benchmarks do. They need three things from it: an allocator in storage of their own,
 * which slab_alloc.h has too; the two headers that it includes; and the name below. The structures
 * of slabs and lists are not here.
 */
#ifndef SLABYARD_COMPAT_ZNS_SLAB_ALLOC_INTERNAL_H
#define SLABYARD_COMPAT_ZNS_SLAB_ALLOC_INTERNAL_H

#include <pthread.h>
#ifndef __cplusplus
#    include <stdatomic.h>
#endif

#include "slab_alloc.h"

typedef sy_cache *SizeClassAlloc; /* SlabAllocator has four of them */

#endif
