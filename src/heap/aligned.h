/*
 * aligned.h: the size of aligned objects before they are allocated.
 *
 * Above: shim/. Below: the heap.
 */
#ifndef SY_HEAP_ALIGNED_H
#define SY_HEAP_ALIGNED_H

#include <slabyard/base.h>

/* The number of usable bytes of an object of `size` bytes at `align`, a power of two. */
size_t sy_good_size_aligned(size_t align, size_t size);

#endif
