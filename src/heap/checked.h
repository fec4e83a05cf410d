/*
 * checked.h: the heap's objects of more than SY_CLASS_SIZE_MAX bytes, while the heap is checked.
 *
 * They are those of a heap instance then, whose classes have no end and whose objects are slots of
 * caches, rather than spans: so all that is checked of caches is checked of them. Spans from before
 * stay what they are.
 *
 * Used by heap.c alone. Below: instance.h.
 */
#ifndef SY_HEAP_CHECKED_H
#define SY_HEAP_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether large objects are checked: by the options as they are now, for the name "heap". */
bool sy_heap_checks_large(void);

/* NULL with ENOMEM; `align` up to SY_CACHE_ALIGN_MAX. */
void *sy_checked_large_alloc(size_t size, size_t align);

/* Whether a slab of this cache holds such objects: then they are freed by the next. */
bool sy_checked_owns(const void *cache);
void sy_checked_large_free(void *object, size_t told);

#endif
