/*
 * layout.c: computes the slot size, slab size and slot count of a cache, once, when it is created.
 */
#include "cache/layout.h"

#include "base/bits.h"
#include "chunk/map.h"

enum {
    TAIL_SHARE = 64, /* a slab is long enough when at most one part in so many is tail: under 2 % */
    SHORT_TAIL_SHARE = 8, /* the same for short slabs */
    CACHE_LINE = 64,
};

_Static_assert(SY_SLAB_UNITS_MAX * SY_UNIT_BYTES <= 1 << 20, "what the reciprocal is exact for");
_Static_assert(SY_SLAB_UNITS_MAX * SY_UNIT_BYTES / SY_SLAB_SLOT_MAX >= SY_SLAB_SLOTS_LEAST,
               "the longest slab has enough slots of the largest size");

/* Chooses the shortest slab of `least` slots whose tail is at most one part in `share`, or else the
 * slab with the least share of tail. `ends`: bytes at the slab's two ends that no slot may use. */
static void choose_slab(sy_layout *layout, size_t ends, size_t least, size_t share) {
    size_t best_tail = SIZE_MAX;
    for (size_t units = 1; units <= SY_SLAB_UNITS_MAX; units++) {
        size_t bytes = units * SY_UNIT_BYTES;
        size_t slots = bytes > ends ? (bytes - ends) / layout->slot : 0;
        if (slots < least) continue;
        size_t rest = bytes - ends - slots * layout->slot;
        size_t tail = rest * SY_SLAB_UNITS_MAX * 64 / units; /* its share of the slab */
        if (tail >= best_tail) continue;
        best_tail = tail;
        layout->slab_bytes = bytes;
        layout->slots = (uint32_t)slots;
        if (rest * share <= bytes) return;
    }
}

static void choose_colours(sy_layout *layout, size_t ends, bool buy) {
    size_t tail = layout->slab_bytes - ends - layout->slots * layout->slot;
    if (buy && tail < layout->colour_step) {
        size_t given_up = sy_divide_up(layout->colour_step - tail, layout->slot);
        layout->slots -= (uint32_t)given_up;
        tail += given_up * layout->slot;
    }
    size_t colours = tail / layout->colour_step + 1;
    layout->colours = colours < SY_COLOURS_MAX ? (uint32_t)colours : SY_COLOURS_MAX;
}

/* What the size of a slot is a multiple of. Tools mark memory in words of 8 bytes, which no two
 * objects may then share; caches that are told to tools have red zones. */
static size_t slot_step(size_t align, size_t zone) {
    size_t least = zone ? SY_SLOT_MIN : SY_SLOT_STEP;
    return align > least ? align : least;
}

static sy_layout make_layout(size_t size, size_t align, bool colour, size_t zone, size_t edge,
                             bool shorten) {
    if (!align) align = size <= 8 ? 8 : 16;
    sy_layout layout = {.align = align, .zone = zone};
    layout.slot = sy_round_up(size + 2 * zone, slot_step(align, zone));
    if (layout.slot < SY_SLOT_MIN) layout.slot = SY_SLOT_MIN;
    layout.lead = sy_round_up(zone > edge ? zone : edge, align);
    layout.colour_step = align > CACHE_LINE ? align : CACHE_LINE;
    layout.reciprocal = ((UINT64_C(1) << 32) + layout.slot - 1) / layout.slot;
    size_t ends = layout.lead - zone + edge;
    bool in_slabs = layout.slot <= SY_SLAB_SLOT_MAX && align <= SY_UNIT_BYTES;
    if (in_slabs && shorten && layout.slot > SY_SHORT_SLOT)
        choose_slab(&layout, ends, SY_SHORT_SLOTS_LEAST, SHORT_TAIL_SHARE);
    else if (in_slabs)
        choose_slab(&layout, ends, SY_SLAB_SLOTS_LEAST, TAIL_SHARE);
    if (layout.slots) {
        choose_colours(&layout, ends, colour);
    } else {
        layout.slab_bytes = sy_round_up(ends + layout.slot, SY_UNIT_BYTES);
        layout.slots = layout.colours = 1;
    }
    layout.words = (layout.slots + 63) / 64;
    return layout;
}

sy_layout sy_layout_make(size_t size, size_t align, bool colour, size_t zone, size_t edge) {
    return make_layout(size, align, colour, zone, edge, false);
}

sy_layout sy_layout_make_class(size_t size, size_t align, size_t zone, size_t edge) {
    return make_layout(size, align, false, zone, edge, true);
}
