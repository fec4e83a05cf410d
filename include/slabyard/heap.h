/*
 * slabyard/heap.h: memory of any size: the malloc family over size-class caches and large spans.
 *
 * Sizes up to 128 KiB come from size classes (at most an eighth is lost above 128 bytes); larger
 * ones are spans of 64 KiB units. Any thread may free what another allocated. Errors are NULL with
 * errno; nothing here is async-signal-safe.
 */
#ifndef SLABYARD_HEAP_H
#define SLABYARD_HEAP_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/* `size` bytes, aligned to 16 (to 8 for sizes up to 8); size 0 gives a unique pointer. ENOMEM. */
SY_API void *sy_malloc(size_t size);

/* `count` times `size` bytes, all zero. ENOMEM, also when the product overflows. */
SY_API void *sy_calloc(size_t count, size_t size);

/*
 * The object with its first min(old, new) bytes at `size` bytes, moved if it must be; then the old
 * pointer is gone. NULL acts as sy_malloc. Size 0 keeps a minimal object. On ENOMEM the old object
 * stays as it is.
 */
SY_API void *sy_realloc(void *object, size_t size);

/* `size` bytes at a multiple of `align`, any power of two (else EINVAL). ENOMEM. */
SY_API void *sy_aligned_alloc(size_t align, size_t size);

/* Frees what any function above gave; NULL is a no-op; errno is kept. A pointer that is none of the
 * heap's is reported to the fault handler (slabyard/fault.h), not followed. */
SY_API void sy_free(void *object);

/* The same for what sy_malloc, sy_calloc or sy_realloc gave at this size, or sy_aligned_alloc with
 * an align of up to 16. A size of another class is reported at once, a wrong size of the same class
 * where the option check is on. Takes some instructions more than sy_free: the object says itself
 * where it belongs, and the size is compared with that. */
SY_API void sy_free_sized(void *object, size_t size);

/* Bytes that may be used at `object`, at least as many as asked for; 0 for NULL and what is not the
 * heap's. */
SY_API size_t sy_usable_size(const void *object);

SY_END_DECLS

#endif
