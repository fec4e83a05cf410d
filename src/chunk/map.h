/*
 * map.h: finds the chunk, large span and size class at an address, for any address.
 *
 * Two tables cover the whole address space of the process, in leaves for 4 GiB each. A leaf is
 * made for the first extent of address space, or memory of a heap, in its 4 GiB (sy_map_cover), and
 * stays.
 *
 *     address:  46        32 31     22 21     16 15          0
 *               |   leaf    |  chunk  |  unit   |   offset   |
 *     classes: a byte for each unit: the client number of the size class whose slab lies there; 0
 *     owners:  a word for each 4 MiB: the chunk or the large span that lies there; NULL
 *
 * `leaf_at` has the distance of each leaf from `nothing`, a leaf that is always zero. Where no leaf
 * was made, the distance is 0 and leads to `nothing`, so a lookup needs no test. A leaf takes 72
 * KiB of address space. It takes memory only where there are chunks: 64 bytes of classes and 8 of
 * owners for each. `nothing`, and the parts of `leaf_at` that are never written, take none.
 *
 * Any 64 bits may be looked up: a lookup reads only the map's own memory.
 *
 * Below: os. Above: the rest of chunk/ writes the maps; heap/ reads the classes in its fast path.
 */
#ifndef SY_CHUNK_MAP_H
#define SY_CHUNK_MAP_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

enum {
    SY_UNIT_SHIFT = 16,
    SY_UNIT_BYTES = 1 << SY_UNIT_SHIFT,
    SY_CHUNK_SHIFT = 22,
    SY_CHUNK_BYTES = 1 << SY_CHUNK_SHIFT,
    SY_CHUNK_UNITS = SY_CHUNK_BYTES / SY_UNIT_BYTES,
    SY_LEAF_SHIFT = 32,
    SY_LEAF_UNITS = 1 << (SY_LEAF_SHIFT - SY_UNIT_SHIFT),
    SY_LEAF_CHUNKS = 1 << (SY_LEAF_SHIFT - SY_CHUNK_SHIFT),
#if defined(__x86_64__)
    SY_ADDRESS_BITS = 47, /* a process gets no higher addresses unless it asks for them by a hint */
#else
    SY_ADDRESS_BITS = 48,
#endif
    SY_LEAVES = 1 << 16, /* for addresses of 48 bits */
};

_Static_assert(SY_CHUNK_UNITS == 64, "a word of bits covers a chunk");
_Static_assert(SY_ADDRESS_BITS <= SY_LEAF_SHIFT + 16, "there is a leaf for every address");

typedef struct sy_leaf {
    _Atomic uint8_t classes[SY_LEAF_UNITS];
    _Atomic(void *) owners[SY_LEAF_CHUNKS];
} sy_leaf;

typedef struct sy_map {
    _Atomic uintptr_t leaf_at[SY_LEAVES]; /* bytes from `nothing` to the leaf, modulo 2^64 */
    sy_leaf nothing;                      /* never written */
} sy_map;

extern SY_HIDDEN sy_map sy_the_map;

/* The leaf of a unit; unit numbers are modulo 2^32. A new leaf reads as zero, so a thread that
 * finds it need not synchronize with the thread that made it. */
static inline sy_leaf *sy_leaf_of(uint32_t unit) {
    const _Atomic uintptr_t *entry = &sy_the_map.leaf_at[unit / SY_LEAF_UNITS];
    uintptr_t at = atomic_load_explicit(entry, memory_order_relaxed);
    return (sy_leaf *)sy_cpu_in_register((uintptr_t)&sy_the_map.nothing + at);
}

/* The heap's size class at an address. Bits 48 and up of the address are ignored, so an invalid
 * address may get a class; a later check against the slab finds that out. */
static inline unsigned sy_class_at(uintptr_t address) {
    uint32_t unit = (uint32_t)(address >> SY_UNIT_SHIFT);
    return atomic_load_explicit(&sy_leaf_of(unit)->classes[unit % SY_LEAF_UNITS],
                                memory_order_relaxed);
}

static inline _Atomic(void *) *sy_owner_of(uintptr_t address) {
    sy_leaf *leaf = sy_leaf_of((uint32_t)(address >> SY_UNIT_SHIFT));
    return &leaf->owners[(address >> SY_CHUNK_SHIFT) % SY_LEAF_CHUNKS];
}

/* The chunk or large span at an address, or NULL. */
static inline void *sy_owner_at(uintptr_t address) {
    if (address >> SY_ADDRESS_BITS) return NULL;
    return atomic_load_explicit(sy_owner_of(address), memory_order_acquire);
}

/* Makes the missing leaves for a range. 0, or -1 with ENOMEM; some leaves may have been made, which
 * is harmless. */
int sy_map_cover(uintptr_t start, size_t bytes);

/* Write the tables for a range that sy_map_cover has covered. */
void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number);
void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner);

#endif
