/*
 * map.h: from an address to what is there, for every address.
 *
 * Two flat tables cover the whole address space of the process. They are reserved at start and cost
 * memory only where there are chunks: 64 bytes of the class map and 8 of the owner map a chunk.
 *
 *     address:  46            22 21     16 15          0
 *               |    chunk      |  unit   |   offset   |
 *     class map: a byte a unit: the client number of the heap's size class whose slab it is, else 0
 *     owner map: a word a 4 MiB: the chunk there, or the large span that covers it, else NULL
 *
 * Any 64 bits may be looked up; nothing is followed that is not ours.
 *
 * Below: os. Above: the rest of chunk/ writes the maps; heap/ reads the class map in its fast path.
 */
#ifndef SY_CHUNK_MAP_H
#define SY_CHUNK_MAP_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SY_UNIT_SHIFT = 16,
    SY_UNIT_BYTES = 1 << SY_UNIT_SHIFT,
    SY_CHUNK_SHIFT = 22,
    SY_CHUNK_BYTES = 1 << SY_CHUNK_SHIFT,
    SY_CHUNK_UNITS = SY_CHUNK_BYTES / SY_UNIT_BYTES,
#if defined(__x86_64__)
    SY_ADDRESS_BITS =
        47, /* what user space gets unless it asks for more by a hint, which we do not */
#else
    SY_ADDRESS_BITS = 48,
#endif
};

_Static_assert(SY_CHUNK_UNITS == 64, "a word of bits covers a chunk");

/* NULL before sy_map_start. */
extern SY_HIDDEN _Atomic(_Atomic uint8_t *) sy_class_map;
extern SY_HIDDEN _Atomic(_Atomic(void *) *) sy_owner_map;

/* 0, or -1 with ENOMEM. Once, before all else. */
int sy_map_start(void);

/* The heap's class at an address; an address outside the space is taken modulo it, which a later
 * check of the slab finds out. */
static inline unsigned sy_class_at(uintptr_t address) {
    _Atomic uint8_t *map = atomic_load_explicit(&sy_class_map, memory_order_relaxed);
    size_t unit =
        address >> SY_UNIT_SHIFT & ((UINT64_C(1) << (SY_ADDRESS_BITS - SY_UNIT_SHIFT)) - 1);
    return __builtin_expect(map != NULL, 1) ? atomic_load_explicit(&map[unit], memory_order_relaxed)
                                            : 0;
}

/* The chunk or large span at an address, or NULL. */
static inline void *sy_owner_at(uintptr_t address) {
    _Atomic(void *) *map = atomic_load_explicit(&sy_owner_map, memory_order_relaxed);
    if (address >> SY_ADDRESS_BITS || !map) return NULL;
    return atomic_load_explicit(&map[address >> SY_CHUNK_SHIFT], memory_order_acquire);
}

void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number);
void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner);

#endif
