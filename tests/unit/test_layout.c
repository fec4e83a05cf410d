/*
 * test_layout.c: how slabs are cut into slots, for every size up to the largest that lies in slabs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "cache/layout.h"
#include "cache/slab.h"
#include "chunk/map.h"

static const size_t ALIGNS[] = {0, 4, 8, 64, 4096, 65536};
enum { ALIGNS_COUNT = sizeof ALIGNS / sizeof *ALIGNS };

/* Every size up to 2 KiB, then in growing steps. */
static size_t next_size(size_t size) { return size < 2048 ? size + 1 : size + size / 61; }

static size_t tail_of(const sy_layout *layout) {
    return layout->slab_bytes - layout->slots * layout->slot;
}

static void a_slot_holds_the_object_at_its_align(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size))
        for (int i = 0; i < ALIGNS_COUNT; i++) {
            sy_layout layout = sy_layout_make(size, ALIGNS[i], false, 0, 0);
            size_t align = ALIGNS[i] ? ALIGNS[i] : size <= 8 ? 8 : 16;
            assert_int_equal(layout.align, align);
            size_t slot = sy_round_up(size, align);
            assert_int_equal(layout.slot, slot < 8 ? 8 : slot);
            assert_int_equal(layout.colour_step % align, 0);
        }
}

static void a_slot_has_at_least_8_bytes(void **state) {
    (void)state;
    for (size_t align = 1; align <= 8; align *= 2)
        assert_int_equal(sy_layout_make(1, align, false, 0, 0).slot, 8);
}

static void objects_of_half_words_take_no_whole_ones(void **state) {
    (void)state;
    assert_int_equal(sy_layout_make(9, 1, false, 0, 0).slot, 12);
    assert_int_equal(sy_layout_make(20, 4, false, 0, 0).slot, 20);
    assert_int_equal(sy_layout_make(20, 4, false, 8, 0).slot, 40); /* with red zones they do */
}

static void slots_and_colours_fit_in_the_slab(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size))
        for (int i = 0; i < 2 * ALIGNS_COUNT; i++) {
            sy_layout layout = sy_layout_make(size, ALIGNS[i / 2], i % 2, 0, 0);
            assert_int_equal(layout.slab_bytes % SY_UNIT_BYTES, 0);
            assert_true(layout.slab_bytes <= SY_SLAB_UNITS_MAX * SY_UNIT_BYTES);
            assert_true(layout.colours >= 1 && layout.colours <= SY_COLOURS_MAX);
            assert_true((layout.colours - 1) * layout.colour_step <= tail_of(&layout));
            assert_int_equal(layout.words, sy_divide_up(layout.slots, 64));
        }
}

static void small_objects_leave_less_than_two_percent_of_tail(void **state) {
    (void)state;
    for (size_t size = 1; size <= 4096; size++) {
        sy_layout layout = sy_layout_make(size, 0, false, 0, 0);
        assert_true(tail_of(&layout) * 50 < layout.slab_bytes);
    }
}

static void a_slab_has_at_least_eight_slots(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size))
        assert_true(sy_layout_make(size, 0, false, 0, 0).slots >= SY_SLAB_SLOTS_LEAST);
    assert_true(sy_layout_make(SY_SLAB_SLOT_MAX, 0, false, 0, 0).slots >= SY_SLAB_SLOTS_LEAST);
}

/* In a size class, large slots have slabs of a few units, an eighth of which is tail at most. */
static void large_slots_of_a_class_have_short_slabs(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size)) {
        sy_layout layout = sy_layout_make(size, 0, false, 0, 0);
        sy_layout class_layout = sy_layout_make_class(size, 0, 0, 0);
        assert_int_equal(class_layout.slot, layout.slot);
        assert_true(class_layout.slab_bytes <= layout.slab_bytes);
        if (layout.slot <= SY_SHORT_SLOT) {
            assert_int_equal(class_layout.slab_bytes, layout.slab_bytes);
            assert_int_equal(class_layout.slots, layout.slots);
        } else {
            assert_true(class_layout.slots >= SY_SHORT_SLOTS_LEAST);
            assert_true(tail_of(&class_layout) * 8 <= class_layout.slab_bytes);
        }
    }
    sy_layout largest = sy_layout_make_class(SY_SLAB_SLOT_MAX, 0, 0, 0);
    assert_int_equal(largest.slots, 2);
    assert_int_equal(tail_of(&largest), 0);
}

static void powers_of_two_pack_without_loss(void **state) {
    (void)state;
    for (size_t size = 8; size <= SY_SLAB_SLOT_MAX; size *= 2) {
        sy_layout layout = sy_layout_make(size, size < 65536 ? size : 65536, false, 0, 0);
        assert_int_equal(tail_of(&layout), 0);
    }
}

static void large_objects_are_alone(void **state) {
    (void)state;
    static const size_t sizes[] = {SY_SLAB_SLOT_MAX + 1, 1 << 20, 5 << 20, SIZE_MAX / 4 + 1};
    for (int i = 0; i < 4; i++) {
        sy_layout layout = sy_layout_make(sizes[i], 0, false, 0, 0);
        assert_int_equal(layout.slots, 1);
        assert_int_equal(layout.colours, 1);
        assert_int_equal(layout.slab_bytes, sy_round_up(sizes[i], SY_UNIT_BYTES));
    }
    assert_int_equal(sy_layout_make(8, 2 << 20, true, 0, 0).slots, 1);
}

/* Where the tail has no room for a second colour, slots are given up for it. */
static void colour_buys_a_second_colour_for_every_size(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size)) {
        sy_layout plain = sy_layout_make(size, 0, false, 0, 0),
                  coloured = sy_layout_make(size, 0, true, 0, 0);
        assert_true(coloured.colours >= 2);
        if (plain.colours >= 2) assert_int_equal(coloured.slots, plain.slots);
        size_t given = (plain.slots - coloured.slots) * plain.slot;
        assert_true(given < plain.slot + plain.colour_step);
    }
}

/* Of the addresses from before the slab to behind it, only the beginnings of slots have an
 * index. */
static void the_index_of_an_address_is_exact(void **state) {
    (void)state;
    for (size_t size = 1; size <= SY_SLAB_SLOT_MAX; size = next_size(size)) {
        sy_layout layout = sy_layout_make(size, 0, true, 0, 0);
        sy_slab slab = {.start = (uintptr_t)1 << 30, .slots = (uint16_t)layout.slots};
        slab.first = slab.start + (layout.colours - 1) * layout.colour_step;
        for (uint32_t i = 0; i < layout.slots; i++) {
            uintptr_t address = slab.first + i * layout.slot;
            assert_int_equal(sy_slab_index(&slab, &layout, address), i);
            assert_int_equal(sy_slab_index(&slab, &layout, address + 1), UINT32_MAX);
            assert_int_equal(sy_slab_index(&slab, &layout, address - 1), UINT32_MAX);
            assert_int_equal(sy_slab_index(&slab, &layout, address + layout.slot / 2), UINT32_MAX);
        }
        uintptr_t end = slab.first + layout.slots * layout.slot;
        assert_int_equal(sy_slab_index(&slab, &layout, end), UINT32_MAX);
        assert_int_equal(sy_slab_index(&slab, &layout, slab.first - layout.slot), UINT32_MAX);
    }
}

static void the_index_of_a_lone_object_is_its_beginning(void **state) {
    (void)state;
    sy_layout layout = sy_layout_make((size_t)1 << 30, 0, false, 0, 0);
    sy_slab slab = {.start = 1 << 22, .first = 1 << 22, .slots = 1};
    assert_int_equal(sy_slab_index(&slab, &layout, slab.first), 0);
    assert_int_equal(sy_slab_index(&slab, &layout, slab.first + 16), UINT32_MAX);
    assert_int_equal(sy_slab_index(&slab, &layout, slab.first + ((size_t)1 << 29)), UINT32_MAX);
    assert_int_equal(sy_slab_index(&slab, &layout, slab.first - 16), UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_holds_the_object_at_its_align),
        cmocka_unit_test(a_slot_has_at_least_8_bytes),
        cmocka_unit_test(objects_of_half_words_take_no_whole_ones),
        cmocka_unit_test(slots_and_colours_fit_in_the_slab),
        cmocka_unit_test(small_objects_leave_less_than_two_percent_of_tail),
        cmocka_unit_test(a_slab_has_at_least_eight_slots),
        cmocka_unit_test(large_slots_of_a_class_have_short_slabs),
        cmocka_unit_test(powers_of_two_pack_without_loss),
        cmocka_unit_test(large_objects_are_alone),
        cmocka_unit_test(colour_buys_a_second_colour_for_every_size),
        cmocka_unit_test(the_index_of_an_address_is_exact),
        cmocka_unit_test(the_index_of_a_lone_object_is_its_beginning),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
