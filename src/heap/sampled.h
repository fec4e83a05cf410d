/*
 * sampled.h: the allocations of the drop-in malloc that are sampled, for two ends. Guarded samples
 * (the option `sample`) find overflows and uses after free in production. Samples of the profile
 * (the option `profile`, slabyard/profile.h) say which stacks allocate, and whose objects are live.
 * In a program that is linked with the library, profiles take another way (magazine/profiled.h).
 *
 *     malloc --> sy_fast_alloc_counted --> sy_malloc_counted_slow --> sy_sampled_alloc --> a sample
 *                                       or, if none is due, the heap
 *
 * With the option `guard`, the slow path of the heap's classes counts allocations, so each free has
 * to be a call. With `sample`, malloc itself counts, in a word of the loaded slot of the object's
 * class (magazine/countdown.h). This takes two instructions, and frees stay as fast as without.
 * (docs/decisions/022-sampled-objects.md says why they cannot be saved.) As each class counts for
 * itself, all allocations that a word counts have the same chance of being sampled. A sampled
 * object lies where the map has no class, so its free takes the slow path: on guarded pages, in a
 * cache named "malloc", or in a slab of its class that stands apart (cache/cache.h).
 *
 * Above: shim/. Below: debug/profile.h, cache/guarded.h.
 */
#ifndef SY_HEAP_SAMPLED_H
#define SY_HEAP_SAMPLED_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>

/* Counts an allocation of `size` bytes at `align`, which would be an object of this class, unless
 * sy_fast_alloc_counted has counted it. If it is to be sampled, returns the sample, to be freed by
 * sy_free. Returns NULL if it is not, if other options forbid it, or if there is no room;
 * then the caller allocates as usual. errno is kept. */
void *sy_sampled_alloc(unsigned class_number, size_t size, size_t align);

/* Called for a new span, or one whose size has changed: it is in the profile by its own chance, and
 * counted if this thread counts. */
void sy_sampled_span(const void *object, size_t size);

/* Whether the cache is the one of sampled objects that are guarded. */
bool sy_sampled_owns(const void *cache);

/* ---- heap.c: the heap's functions, for callers whose allocations are counted ---- */

/* An object of the class in a slab apart; NULL: there is none, or options such as `check` say how
 * objects of the class are made. */
void *sy_class_alloc_apart(unsigned class_number);

/* Sizes are at least 9 bytes. The slow one is for an allocation that sy_fast_alloc_counted has not
 * made. */
void *sy_malloc_counted(size_t size);
void *sy_malloc_counted_slow(size_t size);
void *sy_calloc_counted(size_t size);
void *sy_aligned_alloc_counted(size_t align, size_t size);
/* A move is an allocation; an object that stays in its place is none. */
void *sy_realloc_counted(void *object, size_t size);

#endif
