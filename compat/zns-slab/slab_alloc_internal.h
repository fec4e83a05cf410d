/*
 * slab_alloc_internal.h: for programs of ZNS-Slab that include its internal header, as its own
 * tests and benchmarks do. They need from it no more than an allocator in storage of their own,
 * which slab_alloc.h has, and the headers and names below. Slabs and their lists are Slabyard's.
 */
#ifndef SLABYARD_COMPAT_ZNS_SLAB_ALLOC_INTERNAL_H
#define SLABYARD_COMPAT_ZNS_SLAB_ALLOC_INTERNAL_H

#include <pthread.h>
#ifndef __cplusplus
#    include <stdatomic.h>
#endif

#include "slab_alloc.h"

typedef sy_cache *SizeClassAlloc; /* SlabAllocator has four */

#endif
