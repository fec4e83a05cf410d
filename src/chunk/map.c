/*
 * map.c: the two tables from an address to its chunk or span and to its size class. A free looks
 * its object up here.
 */
#include "chunk/map.h"

#include "base/bits.h"
#include "base/shape.h"
#include "os/os.h"
#include "os/pages.h"

static const uint64_t LEAF_BYTES = UINT64_C(1) << SY_LEAF_SHIFT;

/* Linux gives addresses from high to low; with some settings from low to high. */
static const uint64_t WINDOW_BELOW = UINT64_C(48) << 30;

sy_map sy_the_map;
sy_window sy_the_window = {.start = SY_WINDOW_NOWHERE, .classes = sy_the_map.window.classes};

void sy_map_place(uintptr_t start) {
    uintptr_t nowhere = SY_WINDOW_NOWHERE, place = sy_round_down(start, SY_CHUNK_BYTES);
    if (SY_LEAF_SHIFT == SY_ADDRESS_BITS) return; /* the window covers all addresses */
    place -= (uintptr_t)WINDOW_BELOW;
    atomic_compare_exchange_strong(&sy_the_window.start, &nowhere, place);
}

static bool is_near(uintptr_t address) { return sy_window_offset(address) < LEAF_BYTES; }

/* ---- leaves ---- */

static _Atomic(sy_leaf *) *leaf_entry(uintptr_t address) {
    return &sy_the_map.leaf_at[address / LEAF_BYTES % SY_LEAVES];
}

static sy_leaf *leaf_of(uintptr_t address) {
    return atomic_load_explicit(leaf_entry(address), memory_order_acquire);
}

static size_t leaf_bytes(void) { return sy_round_up(sizeof(sy_leaf), sy_os_page_size()); }

/* If another thread makes the same leaf at the same time, one of the two is given back. */
static int add_leaf(uintptr_t address) {
    sy_leaf *none = NULL;
    if (leaf_of(address)) return 0;
    sy_leaf *leaf = sy_pages_take(leaf_bytes(), sy_os_page_size(), "slabyard map");
    if (!leaf) return -1;
    if (!atomic_compare_exchange_strong(leaf_entry(address), &none, leaf))
        sy_pages_give(leaf, leaf_bytes());
    return 0;
}

/* A program's own memory may lie anywhere. If it comes before any from the system, the window is
 * placed around its leaf, which is from the system. */
int sy_map_cover(uintptr_t start, size_t bytes) {
    uintptr_t last = start + bytes - 1;
    if (is_near(start) && is_near(last)) return 0;
    for (uint64_t leaf = start / LEAF_BYTES; leaf <= last / LEAF_BYTES; leaf++)
        if (add_leaf((uintptr_t)(leaf * LEAF_BYTES)) != 0) return -1;
    sy_map_place((uintptr_t)leaf_of(start));
    return 0;
}

/* ---- entries ---- */

/* The window or the leaf with the entries of an address. *offset: how far the address is from its
 * first. NULL: the leaf was not made. */
static sy_leaf *table_of(uintptr_t address, uintptr_t *offset) {
    bool near = is_near(address);
    *offset = near ? sy_window_offset(address) : (uintptr_t)(address % LEAF_BYTES);
    return near ? &sy_the_map.window : leaf_of(address);
}

unsigned sy_class_far(uintptr_t address) {
    uintptr_t offset;
    sy_leaf *leaf = address > SY_ADDRESS_MAX ? NULL : table_of(address, &offset);
    if (!leaf) return 0;
    return atomic_load_explicit(&leaf->classes[offset >> SY_UNIT_SHIFT], memory_order_relaxed);
}

void *sy_owner_far(uintptr_t address) {
    uintptr_t offset;
    sy_leaf *leaf = address > SY_ADDRESS_MAX ? NULL : table_of(address, &offset);
    if (!leaf) return NULL;
    return atomic_load_explicit(&leaf->owners[offset >> SY_CHUNK_SHIFT], memory_order_acquire);
}

void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number) {
    uintptr_t offset;
    for (size_t i = 0; i < units; i++) {
        sy_leaf *table = table_of(start + i * SY_UNIT_BYTES, &offset);
        atomic_store_explicit(&table->classes[offset >> SY_UNIT_SHIFT], (uint8_t)class_number,
                              memory_order_relaxed);
    }
}

void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner) {
    uintptr_t offset;
    for (uintptr_t at = start; at < start + bytes; at += SY_CHUNK_BYTES) {
        sy_leaf *table = table_of(at, &offset);
        atomic_store_explicit(&table->owners[offset >> SY_CHUNK_SHIFT], owner,
                              memory_order_release);
    }
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define MAP_VARIABLES(row) row(sy_the_map, sy_the_map) row(sy_the_window, sy_the_window)

static const sy_shape_row map_shape_rows[] = {SY_SHAPE_CONSTANT(SY_UNIT_SHIFT),
                                              SY_SHAPE_CONSTANT(SY_CHUNK_SHIFT),
                                              SY_SHAPE_CONSTANT(SY_LEAF_SHIFT),
                                              SY_SHAPE_CONSTANT(SY_LEAVES),
                                              SY_SHAPE_FIELD(sy_leaf, sy_leaf, owners),
                                              SY_SHAPE_TYPE(sy_leaf, sy_leaf),
                                              SY_SHAPE_FIELD(sy_map, sy_map, window),
                                              SY_SHAPE_FIELD(sy_map, sy_map, leaf_at),
                                              SY_SHAPE_FIELD(sy_window, sy_window, start),
                                              MAP_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const map_shape_addresses[] = {MAP_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_map_shape = SY_SHAPE_PART(map_shape_rows, map_shape_addresses);
