/*
 * map.h: finds the chunk, large span and size class at an address, for any address.
 *
 * Two tables cover the whole address space of the process:
 *
 *     classes: a byte for each unit: the client number of the size class whose slab lies there; 0
 *     owners:  a word for each 4 MiB: the chunk or the large span that lies there; NULL
 *
 * The *window* is the part of the tables for the 64 GiB around the first memory from the system
 * (sy_map_place). The system puts later memory below and near it, so nearly all lookups end there,
 * after one load. Elsewhere the tables consist of leaves for 64 GiB each. A leaf is made for the
 * first extent of address space, or memory of a heap, in its 64 GiB (sy_map_cover), and stays.
 *
 *     address:  46                36 35       22 21     16 15          0
 *               |  leaf, if outside |   chunk   |  unit   |   offset   |
 *
 * The window and a leaf take 1.1 MiB of address space each. They take memory only where there are
 * chunks: 64 bytes of classes and 8 of owners for each.
 *
 * Where addresses have 32 bits, the window covers all of them, from 0 on. It takes 68 KiB, and
 * there are no leaves.
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

enum {
    SY_UNIT_SHIFT = 16,
    SY_UNIT_BYTES = 1 << SY_UNIT_SHIFT,
    SY_CHUNK_SHIFT = 22,
    SY_CHUNK_BYTES = 1 << SY_CHUNK_SHIFT,
    SY_CHUNK_UNITS = SY_CHUNK_BYTES / SY_UNIT_BYTES,
#if UINTPTR_MAX == UINT32_MAX
    SY_ADDRESS_BITS = 32,
    SY_LEAF_SHIFT = 32, /* the window covers all addresses */
    SY_LEAVES = 1,      /* never made */
#else
#    if defined(__x86_64__)
    SY_ADDRESS_BITS = 47, /* a process gets no higher addresses unless it asks for them by a hint */
#    else
    SY_ADDRESS_BITS = 48,
#    endif
    SY_LEAF_SHIFT = 36,
    SY_LEAVES = 1 << 12, /* for addresses of 48 bits */
#endif
    SY_LEAF_UNITS = 1 << (SY_LEAF_SHIFT - SY_UNIT_SHIFT),
    SY_LEAF_CHUNKS = 1 << (SY_LEAF_SHIFT - SY_CHUNK_SHIFT),
};

/* The highest address; and the most bytes of a run, half of the address space. With 32 bits, a run
 * has no more bytes than a difference of pointers can say. */
#define SY_ADDRESS_MAX   (UINTPTR_MAX >> (8 * sizeof(uintptr_t) - SY_ADDRESS_BITS))
#define SY_RUN_BYTES_MAX (((SY_ADDRESS_MAX >> 1) + 1) - (SY_ADDRESS_BITS == 32 ? SY_UNIT_BYTES : 0))

_Static_assert(SY_CHUNK_UNITS == 64, "a word of bits covers a chunk");
_Static_assert((SY_ADDRESS_MAX >> 1) / SY_LEAVES < UINT64_C(1) << (SY_LEAF_SHIFT - 1),
               "there is a leaf for every address");

typedef struct sy_leaf {
    _Atomic uint8_t classes[SY_LEAF_UNITS];
    _Atomic(void *) owners[SY_LEAF_CHUNKS];
} sy_leaf;

typedef struct sy_map {
    sy_leaf window;
    _Atomic(sy_leaf *) leaf_at[SY_LEAVES]; /* by bits 36 to 47 of the address; NULL: not made */
} sy_map;

extern SY_HIDDEN sy_map sy_the_map;

/* Before the window has a place, no address is in it. With addresses of 32 bits its place is 0. */
#if UINTPTR_MAX == UINT32_MAX
#    define SY_WINDOW_NOWHERE 0
#else
#    define SY_WINDOW_NOWHERE ((uintptr_t)1 << 63)
#endif

/* What programs see of the map: sy_class_window in slabyard/heap.h is the same. */
typedef struct sy_window {
    _Atomic uintptr_t start; /* the window's first address, a multiple of 4 MiB */
    const _Atomic uint8_t *classes;
} sy_window;

extern SY_HIDDEN sy_window sy_the_window;

/* Bytes from the window's start to the address. Less than 64 GiB: the address is in the window. */
static inline uintptr_t sy_window_offset(uintptr_t address) {
    return address - atomic_load_explicit(&sy_the_window.start, memory_order_relaxed);
}

/* The size class at an address in the window; 0: none. False: the address is outside. */
static inline bool sy_class_near(uintptr_t address, unsigned *class_number) {
    uintptr_t unit = sy_window_offset(address) >> SY_UNIT_SHIFT;
    if (SY_UNLIKELY(unit >= SY_LEAF_UNITS)) return false;
    *class_number = atomic_load_explicit(&sy_the_map.window.classes[unit], memory_order_relaxed);
    return true;
}

/* The same for an address outside of the window. */
unsigned sy_class_far(uintptr_t address);
void *sy_owner_far(uintptr_t address);

/* The heap's size class at an address; 0: none. */
static inline unsigned sy_class_at(uintptr_t address) {
    unsigned class_number;
    return sy_class_near(address, &class_number) ? class_number : sy_class_far(address);
}

/* The chunk or large span at an address, or NULL. */
static inline void *sy_owner_at(uintptr_t address) {
    uintptr_t chunk = sy_window_offset(address) >> SY_CHUNK_SHIFT;
    if (SY_UNLIKELY(chunk >= SY_LEAF_CHUNKS)) return sy_owner_far(address);
    return atomic_load_explicit(&sy_the_map.window.owners[chunk], memory_order_acquire);
}

/* Gives the window its place, around memory that the system has just put there. Later calls do
 * nothing. */
void sy_map_place(uintptr_t start);

/* Makes the missing leaves for a range. 0, or -1 with ENOMEM; some leaves may have been made, which
 * is harmless. */
int sy_map_cover(uintptr_t start, size_t bytes);

/* Write the tables for a range that sy_map_cover has covered. */
void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number);
void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner);

#endif
