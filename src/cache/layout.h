/*
 * layout.h: how the slabs of a cache are cut into slots. Computed once, when the cache is created.
 *
 *     slab:  | colour | lead | slot 0 | slot 1 | ... | slot n-1 | rest of the tail |
 *            ^ start (a unit)  ^ first                the tail is colour and rest together
 *
 * With red zones each slot, from one object to the next, has its object, the red zone behind it and
 * the red zone before the next object. The lead has the red zone before the first object. With
 * edges at least that many bytes of a pattern lie at each end of the slab.
 *
 * Pure arithmetic, without side effects. Above: cache.c.
 */
#ifndef SY_CACHE_LAYOUT_H
#define SY_CACHE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SY_SLOT_MIN = 8,              /* bytes of a slot, at least */
    SY_SLOT_STEP = 4,             /* bytes; the size of a slot is a multiple of it */
    SY_SLAB_SLOT_MAX = 128 << 10, /* each larger object has a slab of its own, a span */
    SY_SLAB_UNITS_MAX = 16,
    SY_SLAB_SLOTS_LEAST = 8,  /* in a slab that is not a span */
    SY_SHORT_SLOT = 4 << 10,  /* larger slots have short slabs, in the caches that want them, */
    SY_SHORT_SLOTS_LEAST = 2, /* of at least so many slots */
    SY_COLOURS_MAX = 64,
};

typedef struct sy_layout {
    size_t slot;        /* bytes from one slot to the next */
    size_t align;       /* of objects */
    size_t slab_bytes;  /* a multiple of a unit */
    size_t lead;        /* bytes between the colour and slot 0 */
    size_t zone;        /* bytes of each red zone, before and behind an object */
    size_t colour_step; /* bytes between the colours: the larger of align and a cache line */
    uint32_t slots;     /* in a slab */
    uint32_t colours;   /* offsets at which slot 0 may begin: 0, colour_step, ... */
    uint32_t words;     /* of a bitmap over the slots */
    /*
     * index of a slot = offset * reciprocal >> 32, reciprocal = ceil(2^32 / slot). Offsets are
     * below 2^20 (16 units), so the error offset / 2^32 is below 2^-12; an exact multiple k * slot
     * gives k, as k + 2^-12 < k + 1. An offset that is no multiple gives some index, whose slot
     * does not begin at that offset; so sy_slab_index detects it.
     */
    uint64_t reciprocal;
} sy_layout;

/* Computes the layout for objects of `size` at `align` (0: by default), both checked by the caller,
 * with red zones of `zone` bytes and edges of `edge` bytes. `colour`: if the tail has no room for a
 * second colour, slots are given up for one. */
sy_layout sy_layout_make(size_t size, size_t align, bool colour, size_t zone, size_t edge);

/*
 * The layout for a size class of the general heap: slots of more than 4 KiB have short slabs. A
 * long slab of large slots holds memory that few of its objects use: the units that it is made of
 * may be dirty, and each of the many classes has a slab. The price is the tail, up to an eighth of
 * a slab.
 */
sy_layout sy_layout_make_class(size_t size, size_t align, size_t zone, size_t edge);

/* Bytes of the slab that the slots take, zones included, from the end of the colour on. */
static inline size_t sy_layout_used(const sy_layout *layout) {
    return layout->lead - layout->zone + layout->slots * layout->slot;
}

#endif
