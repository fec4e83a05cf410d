/*
 * test_slab.c: the bitmap of a slab, and the order in which slabs are used. The slabs are
 * descriptors only: nothing touches the memory that they describe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "cache/slab.h"
#include "os/os.h"
#include "support/child.h"
#include "support/page_size.h"

static const uintptr_t START = (uintptr_t)1 << 30;

typedef struct made {
    sy_slab slab;
    uint64_t bitmap[SY_UNIT_BYTES / SY_SLOT_MIN / 64];
} made;

static void make(made *it, const sy_layout *layout, uintptr_t start) {
    memset(it, 0, sizeof *it);
    sy_slab *slab = &it->slab;
    slab->start = slab->first = start;
    slab->bytes = layout->slab_bytes;
    slab->free = it->bitmap;
    slab->slots = slab->free_count = (uint16_t)layout->slots;
    slab->free_least = 0;
    slab->free_most = UINT16_MAX;
    slab->bin = SY_BIN_NONE;
    for (uint32_t word = 0; word < layout->words; word++)
        it->bitmap[word] = sy_low_bits(layout->slots - word * 64);
}

/* Makes the slot free again as a flush does. */
static void put(sy_slab *slab, uint32_t index) {
    slab->free[index / 64] |= UINT64_C(1) << index % 64;
    slab->free_count++;
    if (index / 64 < slab->first_word) slab->first_word = (uint8_t)(index / 64);
}

/* ---- taking ---- */

static void slots_are_taken_lowest_first(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make(48, 0, false, 0, 0);
    made it;
    uintptr_t items[300];
    make(&it, &layout, START);
    for (uint32_t taken = 0; taken < layout.slots;) {
        uint32_t some = layout.slots - taken < 300 ? layout.slots - taken : 1 + taken % 300;
        sy_slab_take(&it.slab, &layout, items + 300, some);
        for (uint32_t i = 0; i < some; i++)
            assert_int_equal(items[299 - i], START + (taken + i) * layout.slot);
        taken += some;
        assert_int_equal(it.slab.free_count, layout.slots - taken);
        assert_int_equal(it.slab.watermark, taken);
        assert_int_equal(sy_slab_verify(&it.slab, &layout), 0);
    }
}

static void holes_in_the_bitmap_are_filled_in_order(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make(64, 0, false, 0, 0);
    made it;
    static uintptr_t all[SY_UNIT_BYTES / 64], items[SY_UNIT_BYTES / 64];
    uint64_t random = 4;
    make(&it, &layout, START);
    sy_slab_take(&it.slab, &layout, all + layout.slots, layout.slots);
    uint32_t free_slots = 0;
    for (uint32_t i = 0; i < layout.slots; i++)
        if (next_random(&random) % 3 == 0) put(&it.slab, i), free_slots++;
    sy_slab_take(&it.slab, &layout, items + free_slots, free_slots);
    uint64_t again = 4;
    uintptr_t *next = items + free_slots;
    for (uint32_t i = 0; i < layout.slots; i++)
        if (next_random(&again) % 3 == 0) assert_int_equal(*--next, START + i * layout.slot);
    assert_ptr_equal(next, items);
    assert_int_equal(it.slab.free_count, 0);
    assert_int_equal(it.slab.watermark, layout.slots);
    assert_int_equal(sy_slab_verify(&it.slab, &layout), 0);
}

/* ---- pages that a trim can give back ---- */

static void only_pages_that_are_all_free_and_were_used_count(void **state) {
    (void)state;
    needs_small_pages();
    size_t page = sy_os_page_size();
    sy_layout layout = sy_layout_make(64, 0, false, 0, 0);
    uint32_t per_page = (uint32_t)(page / 64);
    made it;
    uint64_t slots[SY_UNIT_BYTES / 64 / 64];
    static uintptr_t items[SY_UNIT_BYTES / 64];
    make(&it, &layout, START);
    assert_int_equal(sy_slab_unused(&it.slab, &layout, 0, slots), 0);
    sy_slab_take(&it.slab, &layout, items + 3 * per_page, 3 * per_page);
    for (uint32_t i = 0; i < 3 * per_page; i++)
        if (i != per_page + 1) put(&it.slab, i); /* page 1 has one slot in use */
    assert_int_equal(sy_slab_unused(&it.slab, &layout, 0, slots), 1 | 4);
    for (uint32_t i = 0; i < layout.slots; i++) {
        bool expected = i < per_page || (i >= 2 * per_page && i < 3 * per_page);
        assert_int_equal(sy_slab_bit(slots, i), expected);
    }
}

static void a_page_counts_if_every_slot_that_reaches_into_it_is_free(void **state) {
    (void)state;
    size_t page = sy_os_page_size();
    sy_layout layout = sy_layout_make(page + 16, 16, false, 0, 0);
    made it;
    uint64_t slots[1];
    uintptr_t items[8];
    make(&it, &layout, START);
    sy_slab_take(&it.slab, &layout, items + 8, 8);
    for (uint32_t i = 0; i < 8; i++)
        if (i != 3) put(&it.slab, i);
    uint64_t pages = sy_slab_unused(&it.slab, &layout, 0, slots);
    size_t granule = sy_slab_granule(&it.slab);
    for (unsigned index = 0; index < it.slab.bytes / granule && index < 64; index++) {
        size_t from = index * granule, to = from + granule;
        bool live = from < 4 * layout.slot && to > 3 * layout.slot;
        bool used = from < 8 * layout.slot;
        assert_int_equal(pages >> index & 1, used && !live);
    }
}

static void what_was_discarded_does_not_count_until_touched(void **state) {
    (void)state;
    needs_small_pages();
    sy_layout layout = sy_layout_make(64, 0, false, 0, 0);
    uint32_t per_page = (uint32_t)(sy_os_page_size() / 64);
    made it;
    uint64_t slots[SY_UNIT_BYTES / 64 / 64];
    static uintptr_t items[SY_UNIT_BYTES / 64];
    make(&it, &layout, START);
    sy_slab_take(&it.slab, &layout, items + 2 * per_page, 2 * per_page);
    for (uint32_t i = 0; i < 2 * per_page; i++) put(&it.slab, i);
    it.slab.holes = sy_slab_unused(&it.slab, &layout, 0, slots);
    assert_int_equal(it.slab.holes, 3);
    assert_int_equal(sy_slab_unused(&it.slab, &layout, 0, slots), 0);
    sy_slab_take(&it.slab, &layout, items + 1, 1);
    assert_int_equal(it.slab.holes, 2);
    put(&it.slab, 0);
    assert_int_equal(sy_slab_unused(&it.slab, &layout, 0, slots), 1);
}

static void all_that_a_slot_reaches_into_is_touched(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make(3000, 0, false, 0, 0);
    size_t page = sy_os_page_size();
    made it;
    uintptr_t items[2];
    make(&it, &layout, START);
    uint64_t all = it.slab.holes = sy_low_bits((unsigned)(layout.slab_bytes / page));
    sy_slab_take(&it.slab, &layout, items + 2, 2);
    unsigned touched = (unsigned)((2 * layout.slot - 1) / page + 1);
    assert_int_equal(it.slab.holes, all & ~sy_low_bits(touched));
}

static void a_slab_set_aside_is_not_given_out(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make(64, 0, false, 0, 0);
    made both[2], *low = &both[0], *high = &both[1]; /* in the order of their addresses */
    sy_bins bins = {0};
    uintptr_t items[10];
    make(low, &layout, START);
    make(high, &layout, START + layout.slab_bytes);
    sy_bins_insert(&bins, &low->slab);
    sy_bins_insert(&bins, &high->slab);
    assert_ptr_equal(sy_bins_best(&bins), &low->slab);
    sy_slab_take(&low->slab, &layout, items + 10, 10);
    sy_bins_update(&bins, &low->slab);
    sy_bins_set_aside(&bins, &low->slab);
    assert_ptr_equal(sy_bins_best(&bins), &high->slab);
    for (uint32_t i = 0; i < 10; i++) {
        put(&low->slab, i);
        sy_bins_update(&bins, &low->slab); /* a free does not move it to a bin */
        assert_ptr_equal(sy_bins_best(&bins), &high->slab);
        assert_int_equal(sy_slab_verify(&low->slab, &layout), 0);
    }
    sy_bins_insert(&bins, &low->slab);
    assert_ptr_equal(sy_bins_best(&bins), &low->slab);
}

static void every_slab_length_has_at_most_64_granules_of_whole_pages(void **state) {
    (void)state;
    for (size_t units = 1; units <= SY_SLAB_UNITS_MAX; units++) {
        sy_slab slab = {.bytes = units * SY_UNIT_BYTES};
        size_t granule = sy_slab_granule(&slab);
        assert_int_equal(granule % sy_os_page_size(), 0);
        assert_true(slab.bytes / granule <= 64);
        assert_true(granule <= sy_os_page_size() ||
                    (granule - sy_os_page_size()) * 64 < slab.bytes);
    }
}

/* ---- broken invariants are found ---- */

static void verify_sees_what_is_wrong(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make(64, 0, true, 0, 0);
    made it;
    uintptr_t items[100];
    make(&it, &layout, START);
    sy_slab_take(&it.slab, &layout, items + 100, 100);
    assert_int_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.free_count++;
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.free_count--;
    it.slab.watermark = 99;
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.watermark = 100;
    it.slab.first_word = 3;
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.first_word = 1;
    it.bitmap[layout.words - 1] ^= UINT64_C(1) << 63; /* past the last slot */
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.bitmap[layout.words - 1] ^= UINT64_C(1) << 63;
    it.slab.first += 8;
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.first -= 8;
    it.slab.free_most = (uint16_t)(it.slab.free_count - 1);
    assert_int_not_equal(sy_slab_verify(&it.slab, &layout), 0);
    it.slab.free_most = (uint16_t)it.slab.free_count;
    assert_int_equal(sy_slab_verify(&it.slab, &layout), 0);
}

/* ---- bins ---- */

enum { SLABS = 40 };

static made slabs[SLABS];

/* The number of a slab's bin by its share of free slots, computed in the obvious way. */
static uint32_t bin_of(const sy_slab *slab) {
    if (slab->free_count == 0) return SY_BIN_FULL;
    if (slab->free_count == slab->slots) return SY_BIN_EMPTY;
    return (slab->free_count - 1u) * SY_BINS / slab->slots;
}

static const sy_slab *best_the_obvious_way(void) {
    const sy_slab *best = NULL;
    for (int i = 0; i < SLABS; i++) {
        const sy_slab *slab = &slabs[i].slab;
        if (bin_of(slab) == SY_BIN_FULL) continue;
        if (!best || bin_of(slab) < bin_of(best)) best = slab;
    }
    return best;
}

static void the_fullest_is_best_and_of_those_the_lowest(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 64, 100, 4096, 100000, 131072};
    for (int s = 0; s < 6; s++) {
        sy_layout layout = sy_layout_make(sizes[s], 0, false, 0, 0);
        sy_bins bins = {0};
        uint64_t random = 5;
        for (int i = 0; i < SLABS; i++) {
            make(&slabs[i], &layout, START + (uintptr_t)i * layout.slab_bytes);
            sy_bins_insert(&bins, &slabs[i].slab);
        }
        for (int step = 0; step < 3000; step++) {
            sy_slab *slab = &slabs[next_random(&random) % SLABS].slab;
            uint32_t range = next_random(&random) % 4 ? 9 : layout.slots + 1;
            uint64_t target = slab->free_count + next_random(&random) % range;
            slab->free_count = (uint16_t)(target < range / 2                  ? 0
                                          : target - range / 2 > layout.slots ? layout.slots
                                                                              : target - range / 2);
            sy_bins_update(&bins, slab);
            assert_int_equal(slab->bin, bin_of(slab));
            assert_ptr_equal(sy_bins_best(&bins), best_the_obvious_way());
        }
        size_t count[SY_BIN_NONE] = {0};
        for (int i = 0; i < SLABS; i++) count[bin_of(&slabs[i].slab)]++;
        assert_memory_equal(count, bins.count, sizeof count);
        for (int i = 0; i < SLABS; i++) sy_bins_remove(&bins, &slabs[i].slab);
        assert_null(sy_bins_best(&bins));
        assert_int_equal(bins.occupied, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_taken_lowest_first),
        cmocka_unit_test(holes_in_the_bitmap_are_filled_in_order),
        cmocka_unit_test(only_pages_that_are_all_free_and_were_used_count),
        cmocka_unit_test(a_page_counts_if_every_slot_that_reaches_into_it_is_free),
        cmocka_unit_test(what_was_discarded_does_not_count_until_touched),
        cmocka_unit_test(a_slab_set_aside_is_not_given_out),
        cmocka_unit_test(every_slab_length_has_at_most_64_granules_of_whole_pages),
        cmocka_unit_test(verify_sees_what_is_wrong),
        cmocka_unit_test(the_fullest_is_best_and_of_those_the_lowest),
        cmocka_unit_test(all_that_a_slot_reaches_into_is_touched),
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
