/*
 * shim.h: what the files of the drop-in malloc share.
 */
#ifndef SY_SHIM_SHIM_H
#define SY_SHIM_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#include <slabyard/heap.h>

#include "heap/sampled.h"

/* The heap's objects of up to 8 bytes are aligned to 8; malloc's are to 16. */
enum { SY_SHIM_ALIGN = 16 };

static inline size_t sy_shim_size(size_t size) {
    return size < SY_SHIM_ALIGN ? SY_SHIM_ALIGN : size;
}

/* An allocation that is perhaps to be guarded: of `size` bytes at a power of two of at least 16. */
void *sy_shim_alloc_due(size_t size, size_t align);

/* malloc, for all functions of the drop-in that allocate without an alignment of their own. */
static inline void *sy_shim_alloc(size_t size) {
    size_t bytes = sy_shim_size(size);
    return sy_sample_due() ? sy_shim_alloc_due(bytes, SY_SHIM_ALIGN) : sy_malloc(bytes);
}

/* The same at a power of two. */
static inline void *sy_shim_alloc_aligned(size_t size, size_t align) {
    if (align <= SY_SHIM_ALIGN) return sy_shim_alloc(size);
    return sy_sample_due() ? sy_shim_alloc_due(size, align) : sy_aligned_alloc(align, size);
}

/* The function of this name in the library that comes after this one, the C or the C++ library;
 * NULL: there is none. The first call for a name may allocate. */
void *sy_shim_next(const char *name);

#endif
