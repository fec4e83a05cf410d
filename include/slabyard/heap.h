/**
 * slabyard/heap.h: memory of any size: the malloc family over size-class caches and large spans.
 *
 * Sizes up to 128 KiB come from size classes; above 128 bytes, rounding up to a class wastes at
 * most an eighth. Larger sizes are spans of 64 KiB units. Functions that fail return NULL and set
 * errno.
 *
 * Threads: any thread may call these functions, and any thread may free memory that another
 * allocated. Do not call them in a signal handler.
 */
#ifndef SLABYARD_HEAP_H
#define SLABYARD_HEAP_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/**
 * Allocates `size` bytes, aligned to 16 (to 8 for sizes up to 8). The content is undefined. Size 0
 * gives a unique pointer. The caller frees the memory with sy_free.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 */
SY_API void *sy_malloc(size_t size);

/**
 * Allocates `count` times `size` bytes, all zero.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory, or the product overflows
 *
 *     long *counts = sy_calloc(1024, sizeof *counts);   1,024 times 0
 *     ...
 *     sy_free(counts);
 */
SY_API void *sy_calloc(size_t count, size_t size);

/**
 * Changes the size of an object to `size` bytes. The first min(old, new) bytes keep their content.
 * NULL as `object` acts as sy_malloc. With size 0 a minimal object stays allocated. An address that
 * is no object of the heap is reported to the fault handler (slabyard/fault.h).
 *
 * Returns the object's address, which may be new; the old pointer is then invalid. On failure NULL
 * with errno, and the old object stays as it is.
 *
 * Errors:
 *     EINVAL    the address is no object of the heap, and the fault handler returned
 *     ENOMEM    no memory
 */
SY_API void *sy_realloc(void *object, size_t size);

/**
 * Allocates `size` bytes at a multiple of `align`. The caller frees the memory with sy_free.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    `align` is no power of two
 *     ENOMEM    no memory
 */
SY_API void *sy_aligned_alloc(size_t align, size_t size);

/** Frees an object of sy_malloc, sy_calloc, sy_realloc or sy_aligned_alloc. NULL is allowed and
 * does nothing. errno is kept. A pointer that the heap did not return is reported to the fault
 * handler (slabyard/fault.h), and nothing is freed. */
SY_API void sy_free(void *object);

/**
 * Frees an object whose size you know, as sy_free: `size` bytes from sy_malloc, sy_calloc or
 * sy_realloc, or from sy_aligned_alloc with an `align` of up to 16. A size of another class is
 * reported at once. A wrong size of the same class is reported if the option `check` is on.
 * sy_free_sized takes a few instructions more than sy_free, because the heap finds the class from
 * the address and compares the size with this class.
 *
 *     struct order *list = sy_malloc(50 * sizeof *list);
 *     ...
 *     sy_free_sized(list, 50 * sizeof *list);
 */
SY_API void sy_free_sized(void *object, size_t size);

/**
 * Frees an object whose alignment and size you know, as sy_free: `size` bytes at a multiple of
 * `align` from sy_aligned_alloc. A wrong size or alignment is reported in the same cases as by
 * sy_free_sized. NULL is allowed and does nothing.
 *
 *     char *page = sy_aligned_alloc(4096, 10000);
 *     ...
 *     sy_free_aligned_sized(page, 4096, 10000);
 */
SY_API void sy_free_aligned_sized(void *object, size_t align, size_t size);

/**
 * Tells how large an object of `size` bytes from sy_malloc really is. A container that grows to
 * this size wastes nothing.
 *
 * Returns the number of bytes of such an object that may be used: at least `size`. If `size` is too
 * large for any object, returns `size`.
 *
 * A buffer that grows by half uses the whole of its size class:
 *
 *     size_t larger = sy_good_size(room + room / 2);
 *     char *moved = sy_realloc(buffer, larger);
 *     if (moved) {
 *         buffer = moved;
 *         room = larger;
 *     }
 */
SY_API size_t sy_good_size(size_t size);

/**
 * Tells how large an object is.
 *
 * Returns the number of bytes that may be used at `object`: at least as many as were asked for. 0
 * for NULL and for an address that is not the heap's.
 *
 *     char *text = sy_malloc(100);
 *     size_t bytes = sy_usable_size(text);   112: the size class of 100 bytes
 *     ...
 *     sy_free(text);
 */
SY_API size_t sy_usable_size(const void *object);

SY_END_DECLS

#endif
