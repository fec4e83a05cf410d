/*
 * checked.h: objects of the general heap with more than SY_CLASS_SIZE_MAX bytes, while the heap is
 * checked.
 *
 * They are allocated from a separate heap, whose classes go on beyond this size, instead of as
 * spans. So they are slots of caches, and all checks of caches apply to them. Objects that were
 * allocated before the checks were turned on stay spans.
 *
 * Used by heap.c alone. Below: instance.h.
 */
#ifndef SY_HEAP_CHECKED_H
#define SY_HEAP_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether large objects are checked, by the present options for the name "heap". */
bool sy_heap_checks_large(void);

/* Allocates a large object; NULL with ENOMEM. `align` is at most SY_CACHE_ALIGN_MAX. */
void *sy_checked_large_alloc(size_t size, size_t align);

/* Whether the cache holds such objects. They are freed by sy_checked_large_free. */
bool sy_checked_owns(const void *cache);
void sy_checked_large_free(void *object, size_t told);

#endif
