/*
 * map.c: the two tables from an address to its chunk or span and to its size class. A free looks
 * its object up here.
 */
#include "chunk/map.h"

#include "base/bits.h"
#include "os/os.h"
#include "os/pages.h"

sy_map sy_the_map;

static size_t leaf_bytes(void) { return sy_round_up(sizeof(sy_leaf), sy_os_page_size()); }

/* If another thread makes the same leaf at the same time, one of the two is given back. */
static int add_leaf(size_t index) {
    uintptr_t none = 0;
    if (atomic_load_explicit(&sy_the_map.leaf_at[index], memory_order_acquire)) return 0;
    void *leaf = sy_pages_take(leaf_bytes(), sy_os_page_size(), "slabyard map");
    if (!leaf) return -1;
    uintptr_t at = (uintptr_t)leaf - (uintptr_t)&sy_the_map.nothing;
    if (!atomic_compare_exchange_strong(&sy_the_map.leaf_at[index], &none, at))
        sy_pages_give(leaf, leaf_bytes());
    return 0;
}

int sy_map_cover(uintptr_t start, size_t bytes) {
    size_t last = (start + bytes - 1) >> SY_LEAF_SHIFT;
    for (size_t index = start >> SY_LEAF_SHIFT; index <= last; index++)
        if (add_leaf(index) != 0) return -1;
    return 0;
}

void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number) {
    uint32_t first = (uint32_t)(start >> SY_UNIT_SHIFT);
    for (uint32_t unit = first; unit != first + (uint32_t)units; unit++)
        atomic_store_explicit(&sy_leaf_of(unit)->classes[unit % SY_LEAF_UNITS],
                              (uint8_t)class_number, memory_order_relaxed);
}

void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner) {
    for (uintptr_t at = start; at < start + bytes; at += SY_CHUNK_BYTES)
        atomic_store_explicit(sy_owner_of(at), owner, memory_order_release);
}
