/*
 * instance.h: struct sy_heap, a separate heap: a quota, and a cache for each size class used.
 *
 *     size -> class -> cache, opened on first use      every slab is charged to the quota
 *     address -> slab -> its cache -> its quota: of this heap?
 *     handle -> word of its ordinal -> client number -> class -> cache
 *
 * The classes are those of sy_class_of, continued to the largest size. Beyond SY_CLASS_SIZE_MAX
 * sizes are rounded up to units first, and a slab has one slot. So large objects are slots of
 * caches too, and a heap consists of its caches. Objects aligned beyond a unit have a second set of
 * classes, since such runs fit less well into chunks. A cache stays open as long as its heap
 * exists.
 *
 * Files: instance.c (life, and objects by address), named.c (by handle). Below: cache/.
 */
#ifndef SY_HEAP_INSTANCE_H
#define SY_HEAP_INSTANCE_H

#include <slabyard/heaps.h>

#include "cache/cache.h"
#include "heap/classes.h"

enum {
    SY_HEAP_SIZE_SHIFT = SY_ADDRESS_BITS - 1, /* log2 of the largest size that sy_run_take gives */
    /* The classes up to that size: those up to 128 bytes, and 8 to a doubling. */
    SY_HEAP_CLASSES = SY_CLASS_128 + 1 + (SY_HEAP_SIZE_SHIFT - 7) * 8,
    /* These classes twice: the second time for objects that are aligned beyond a unit. */
    SY_HEAP_CACHES = 2 * SY_HEAP_CLASSES,
    SY_HEAP_NUMBERS_BYTES = SY_CLIENTS_MAX * (int)sizeof(uint16_t),
};

struct sy_heap {
    sy_quota quota;
    char name[SY_HEAP_NAME_MAX + 1];
    unsigned flags;
    sy_memory *memory;
    uint16_t *classes_of; /* by client number, lazily touched; 0: none of the heap's. NULL: without
                             SY_HANDLES */
    _Atomic(sy_cache *) caches[SY_HEAP_CACHES]; /* by class; written under the start's lock */
};

_Static_assert(SY_HEAP_CLASSES_MAX == (int)SY_CLIENTS_OF_HEAPS * (16384 / SY_CLIENTS_MAX),
               "each class in use has a number");
_Static_assert(SY_HEAP_CACHES <= UINT16_MAX, "classes_of holds a class");
_Static_assert(sizeof(struct sy_heap) <= 64 << 10, "a heap is a block of side memory");

static inline sy_cache *sy_heap_cache(const sy_heap *heap, unsigned class_number) {
    return atomic_load_explicit(&heap->caches[class_number], memory_order_acquire);
}

static inline size_t sy_heap_class_size(unsigned class_number) {
    return sy_class_size_of(class_number % SY_HEAP_CLASSES);
}

/* Raises a fault in the heap's name. `found`: the name of the cache that has the object; NULL:
 * none. */
void sy_heap_fault(const sy_heap *heap, sy_fault_kind kind, const void *object, const char *found);

#endif
