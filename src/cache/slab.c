/*
 * slab.c: takes slots out of the bitmap of one slab, and sorts the slabs of a cache into bins by
 * the number of their free slots. refill.c calls it for a whole magazine at a time.
 */
#include "cache/slab.h"

#include <slabyard/base.h>
#include <string.h>

#include "base/bits.h"
#include "base/random.h"
#include "chunk/pressure.h"
#include "os/invariant.h"
#include "os/os.h"

_Static_assert(SY_UNIT_BYTES / SY_SLOT_MIN < UINT16_MAX, "counts of slots fit in 16 bits");
_Static_assert(SY_UNIT_BYTES / SY_SLOT_MIN / 64 < UINT8_MAX, "first_word fits in 8 bits");

/* ---- bins ---- */

/* A bin's bit is set if it has a slab, and its root has as many free slots as belong in it. */
static bool bins_are_ordered(const sy_bins *bins) {
    for (unsigned bin = 0; bin <= SY_BINS; bin++) {
        const sy_heap_node *root = bins->heap[bin];
        if ((bins->occupied >> bin & 1) != (root != NULL)) return false;
        if (!root) continue;
        const sy_slab *slab = sy_slab_of_node((sy_heap_node *)(uintptr_t)root);
        if (slab->bin != bin || slab->bins != bins || bins->count[bin] == 0) return false;
        if (root->child && root->child < root) return false; /* lower addresses come first */
    }
    return true;
}

sy_slab *sy_bins_best(const sy_bins *bins) {
    return bins->occupied ? sy_slab_of_node(bins->heap[sy_lowest_bit(bins->occupied)]) : NULL;
}

/* The bin for the slab's free count, and the counts for which it stays there: those f with
 * (f - 1) * SY_BINS / slots == bin. */
static void choose_bin(sy_slab *slab) {
    uint32_t free_count = slab->free_count, slots = slab->slots;
    if (free_count == 0 || free_count == slots) {
        slab->bin = free_count ? SY_BIN_EMPTY : SY_BIN_FULL;
        slab->free_least = slab->free_most = (uint16_t)free_count;
        return;
    }
    uint32_t bin = (free_count - 1) * SY_BINS / slots;
    slab->bin = (uint8_t)bin;
    slab->free_least = (uint16_t)((bin * slots + SY_BINS - 1) / SY_BINS + 1);
    slab->free_most = (uint16_t)(((bin + 1) * slots + SY_BINS - 1) / SY_BINS);
    if (slab->free_most == slots) slab->free_most--;
}

void sy_bins_insert(sy_bins *bins, sy_slab *slab) {
    slab->bins = bins;
    choose_bin(slab);
    bins->count[slab->bin]++;
    if (slab->bin == SY_BIN_FULL) return;
    sy_heap_insert(&bins->heap[slab->bin], &slab->node);
    bins->occupied |= 1u << slab->bin;
    SY_INVARIANT(bins_are_ordered(bins));
}

void sy_bins_remove(sy_bins *bins, sy_slab *slab) {
    if (slab->bin == SY_BIN_NONE) return; /* set aside by a thread that the child of a fork lacks */
    bins->count[slab->bin]--;
    if (slab->bin != SY_BIN_FULL) {
        sy_heap_remove(&bins->heap[slab->bin], &slab->node);
        if (!bins->heap[slab->bin]) bins->occupied &= ~(1u << slab->bin);
    }
    slab->bin = SY_BIN_NONE;
    SY_INVARIANT(bins_are_ordered(bins));
}

void sy_bins_set_aside(sy_bins *bins, sy_slab *slab) {
    sy_bins_remove(bins, slab);
    slab->free_least = 0;
    slab->free_most = UINT16_MAX;
}

void sy_bins_move(sy_bins *bins, sy_slab *slab) {
    sy_bins *counted = bins->counted ? bins->counted : bins;
    counted->opened += slab->bin == SY_BIN_FULL;
    counted->reused += slab->bin == SY_BIN_EMPTY;
    sy_bins_remove(bins, slab);
    sy_bins_insert(bins, slab);
    counted->filled += slab->bin == SY_BIN_FULL;
}

/* ---- taking slots ---- */

size_t sy_slab_granule(const sy_slab *slab) {
    size_t page = sy_os_page_size(), part = slab->bytes / 64;
    return part > page ? sy_round_up(part, page) : page;
}

/* Slots `first` to `last` were given out: their granules will be touched, so they are neither holes
 * nor idle any more. */
static SY_COLD void use_granules(sy_slab *slab, const sy_layout *layout, uint32_t first,
                                 uint32_t last) {
    size_t granule = sy_slab_granule(slab), base = slab->first - layout->zone - slab->start;
    size_t from = (base + first * layout->slot) / granule;
    size_t to = (base + (last + 1) * layout->slot - 1) / granule;
    uint64_t used = sy_low_bits((unsigned)(to - from + 1)) << from, filled = slab->holes & used;
    uint64_t early = filled & slab->idle;
    if (early) sy_count_early(sy_count_bits(early) * granule);
    slab->holes &= ~used;
    slab->idle &= ~used;
    if (filled) sy_pressure_note(sy_count_bits(filled) * granule);
}

void sy_slab_take(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count) {
    size_t slot = layout->slot;
    uint32_t word_index = slab->first_word, first = UINT32_MAX, last = 0;
    slab->free_count = (uint16_t)(slab->free_count - count);
    for (;; word_index++) {
        uint64_t word = slab->free[word_index];
        if (!word) continue;
        uintptr_t base = slab->first + (size_t)word_index * 64 * slot;
        if (first == UINT32_MAX) first = word_index * 64 + sy_lowest_bit(word);
        if (word == ~UINT64_C(0) && count >= 64) {
            for (unsigned i = 0; i < 64; i++, base += slot) *--end = base;
            slab->free[word_index] = 0;
            count -= 64;
            last = word_index * 64 + 63;
        } else {
            do {
                unsigned bit = sy_lowest_bit(word);
                *--end = base + bit * slot;
                last = word_index * 64 + bit;
                word &= word - 1;
            } while (--count && word);
            slab->free[word_index] = word;
        }
        if (!count) break;
    }
    slab->first_word = (uint8_t)word_index;
    if (last >= slab->watermark) slab->watermark = (uint16_t)(last + 1);
    if (SY_UNLIKELY((slab->holes | slab->idle) != 0)) use_granules(slab, layout, first, last);
}

/* The first free slot from `index` on; after the last slot the search goes on at the first. The
 * slab has a free slot. */
static uint32_t next_free(const sy_slab *slab, const sy_layout *layout, uint32_t index) {
    uint32_t word_index = index / 64;
    uint64_t word = slab->free[word_index] & ~sy_low_bits(index % 64);
    while (!word) {
        word_index = word_index + 1 == layout->words ? 0 : word_index + 1;
        word = slab->free[word_index];
    }
    return word_index * 64 + sy_lowest_bit(word);
}

void sy_slab_take_random(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count,
                         uint64_t *random) {
    slab->free_count = (uint16_t)(slab->free_count - count);
    for (; count; count--) {
        uint32_t index = next_free(slab, layout, sy_random_below(random, layout->slots));
        slab->free[index / 64] &= ~(UINT64_C(1) << index % 64);
        *--end = slab->first + index * layout->slot;
        if (index >= slab->watermark) slab->watermark = (uint16_t)(index + 1);
        if (slab->holes | slab->idle) use_granules(slab, layout, index, index);
    }
}

/* ---- trim ---- */

static bool all_set(const uint64_t *bitmap, uint32_t first, uint32_t last) {
    for (uint32_t index = first; index <= last; index++) {
        if (index % 64 == 0 && index + 63 <= last) {
            if (bitmap[index / 64] != ~UINT64_C(0)) return false;
            index += 63;
        } else if (!sy_slab_bit(bitmap, index)) {
            return false;
        }
    }
    return true;
}

/* The slots that lie in a granule, wholly or in part; false: none of them was ever used. */
static bool slots_in(const sy_slab *slab, const sy_layout *layout, size_t granule, unsigned index,
                     uint32_t *first, uint32_t *last) {
    size_t base = slab->first - layout->zone - slab->start;
    size_t from = index * granule, to = from + granule;
    if (to <= base) return false;
    size_t low = from > base ? (from - base) / layout->slot : 0;
    size_t high = (to - 1 - base) / layout->slot;
    if (low >= slab->watermark) return false;
    *first = (uint32_t)low;
    *last = high < slab->slots ? (uint32_t)high : slab->slots - 1u;
    return true;
}

uint64_t sy_slab_unused(const sy_slab *slab, const sy_layout *layout, uint64_t kept,
                        uint64_t *slots) {
    size_t granule = sy_slab_granule(slab);
    unsigned granules = (unsigned)(slab->bytes / granule);
    uint64_t chosen = 0;
    if (slots) memset(slots, 0, layout->words * sizeof *slots);
    if (granules > 64) granules = 64;
    for (unsigned index = 0; index < granules; index++) {
        uint32_t first, last;
        if ((slab->holes | kept) >> index & 1 ||
            !slots_in(slab, layout, granule, index, &first, &last))
            continue;
        if (!all_set(slab->free, first, last)) continue;
        chosen |= UINT64_C(1) << index;
        for (uint32_t slot = first; slots && slot <= last; slot++)
            slots[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    return chosen;
}

bool sy_slab_is_valid(const sy_slab *slab, const sy_layout *layout) {
    size_t free_count = 0;
    for (uint32_t word = 0; word < layout->words; word++) {
        if (word < slab->first_word && slab->free[word] != 0) return false;
        free_count += sy_count_bits(slab->free[word]);
    }
    uint32_t beyond = layout->slots % 64;
    if (beyond && slab->free[layout->words - 1] & ~sy_low_bits(beyond)) return false;
    return free_count == slab->free_count && slab->slots == layout->slots &&
           slab->free_count >= slab->free_least && slab->free_count <= slab->free_most;
}

size_t sy_slab_verify(const sy_slab *slab, const sy_layout *layout) {
    size_t wrong = !sy_slab_is_valid(slab, layout);
    for (uint32_t slot = slab->watermark; slot < layout->slots; slot++)
        wrong += !sy_slab_bit(slab->free, slot);
    wrong += (slab->first - layout->lead - slab->start) % layout->colour_step != 0;
    wrong += slab->first - layout->lead + sy_layout_used(layout) > slab->start + slab->bytes;
    return wrong;
}
