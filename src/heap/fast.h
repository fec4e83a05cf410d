/*
 * fast.h: the fast paths of malloc and free, to be inlined. Each takes an object from this thread's
 * loaded slot or puts one there. All else is for the functions of slabyard/heap.h.
 *
 * Above: heap.c, and shim/ for the drop-in malloc. Below: the classes, the map.
 */
#ifndef SY_HEAP_FAST_H
#define SY_HEAP_FAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunk/map.h"
#include "heap/classes.h"
#include "magazine/countdown.h"

/* Allocates `size` bytes, up to SY_WIDE_TABLE_MAX, at a multiple of 16. False: call sy_malloc_slow,
 * with at least 9 bytes. */
static inline bool sy_fast_alloc(size_t size, void **object) {
    uintptr_t item;
    unsigned class_number = sy_wide_class_table[(size + 15) / 16];
    if (SY_UNLIKELY(!sy_loaded_pop(&sy_abi_1[class_number], &item))) return false;
    *object = (void *)item;
    return true;
}

/* Allocates an object of the class, and counts the allocation in the slot. False: call
 * sy_malloc_counted_slow. */
static inline bool sy_fast_pop_counted(unsigned class_number, void **object) {
    sy_loaded_slot *slot = &sy_abi_1[class_number];
    sy_loaded_begin(slot);
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top <= sy_loaded_bound(&slot->base))) return false;
    if (sy_countdown_ends(slot)) return false;
    *object = (void *)top[-1];
    __atomic_store_n(&slot->top, top - 1, __ATOMIC_RELAXED);
    return true;
}

/* As sy_fast_alloc, but counts. */
static inline bool sy_fast_alloc_counted(size_t size, void **object) {
    return sy_fast_pop_counted(sy_wide_class_table[(size + 15) / 16], object);
}

/* Frees an object that lies in the map's window. False: call sy_free_slow. */
static inline bool sy_fast_free(void *object) {
    unsigned class_number;
    return SY_LIKELY(sy_class_near((uintptr_t)object, &class_number)) &&
           SY_LIKELY(sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object));
}

/* What sy_malloc does when this thread's loaded slot of the class has no object, and for sizes
 * beyond the classes. */
void *sy_malloc_slow(size_t size);

/* What sy_free does after sy_fast_free has returned false. */
void sy_free_slow(void *object);

#endif
