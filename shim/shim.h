/*
 * shim.h: functions that the files of the drop-in malloc share.
 */
#ifndef SY_SHIM_SHIM_H
#define SY_SHIM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/heap.h>

#include "heap/fast.h"
#include "heap/misaligned.h"
#include "heap/sampled.h"

/* malloc has to align objects to 16. The heap does so from 9 bytes on, so smaller objects are made
 * as objects of 9 bytes, and checks see writes beyond these. */
enum { SY_SHIM_ALIGN = 16, SY_SHIM_LEAST = 9 };

static inline size_t sy_shim_size(size_t size) {
    return size < SY_SHIM_LEAST ? SY_SHIM_LEAST : size;
}

/* malloc, for all functions of the drop-in that allocate without an alignment of their own. */
static inline void *sy_shim_alloc(size_t size) {
    void *object;
    if (SY_UNLIKELY(size > SY_WIDE_TABLE_MAX)) return sy_malloc_counted(size);
    if (SY_LIKELY(sy_fast_alloc_counted(size, &object))) return object;
    return sy_malloc_counted_slow(sy_shim_size(size));
}

/* Allocates as malloc does, at `align`, a power of two. */
static inline void *sy_shim_alloc_aligned(size_t size, size_t align) {
    return align <= SY_SHIM_ALIGN ? sy_shim_alloc(size) : sy_aligned_alloc_counted(align, size);
}

static inline bool sy_shim_is_misaligned(const void *object) {
    return SY_UNLIKELY((uintptr_t)object % SY_SHIM_ALIGN != 0);
}

/* free, for all functions of the drop-in that free. A misaligned address is reported at once. */
static inline void sy_shim_free(void *object) {
    if (sy_shim_is_misaligned(object))
        sy_free_misaligned(object);
    else if (SY_UNLIKELY(!sy_fast_free(object)))
        sy_free_slow(object);
}

/* Frees an object with the size that the program names. */
static inline void sy_shim_free_sized(void *object, size_t size) {
    if (sy_shim_is_misaligned(object))
        sy_free_misaligned(object);
    else if (SY_LIKELY(object != NULL))
        sy_free_sized(object, sy_shim_size(size));
}

/* Frees an object with the size and alignment that the program names. */
static inline void sy_shim_free_aligned_sized(void *object, size_t align, size_t size) {
    if (align <= SY_SHIM_ALIGN || sy_shim_is_misaligned(object))
        sy_shim_free_sized(object, size);
    else
        sy_free_aligned_sized(object, align, size);
}

/* Returns the function of this name in the next library: the C library or the C++ library. NULL:
 * there is none. The first call for a name may allocate. */
void *sy_shim_next(const char *name);

#endif
