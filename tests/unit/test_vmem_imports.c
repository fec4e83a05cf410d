/*
 * test_vmem_imports.c: what vmem.h promises about spans that come from functions and from other
 * arenas, one behaviour a test.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/arenas.h"

/* ---- imports ---- */

static void a_span_is_imported_when_there_is_no_room(void **state) {
    (void)state;
    supply from = {.next = 1000, .gap = 10};
    sy_vmem_config config = supplied(&from);
    config.size = 10;
    sy_vmem *arena = make(config);
    uintptr_t a = get(arena, 10);
    assert_int_equal(from.calls, 0);
    uintptr_t b = get(arena, 7);
    assert_int_equal(from.calls, 1);
    assert_int_equal(b, 1000);
    assert_int_equal(sy_vmem_contains(arena, 1000, 7), 1);
    give(arena, a, 10);
    uintptr_t c = get(arena, 10);
    assert_int_equal(from.calls, 1);
    give(arena, b, 7);
    assert_int_equal(from.released, 1);
    assert_int_equal(sy_vmem_contains(arena, 1000, 1), 0);
    give(arena, c, 10);
    end(arena);
    assert_int_equal(from.calls, 1);
}

static void an_import_may_give_more(void **state) {
    (void)state;
    supply from = {.next = 1000, .more = 100};
    sy_vmem *arena = make(supplied(&from));
    uintptr_t a = get(arena, 10), b = get(arena, 100);
    assert_int_equal(from.calls, 1);
    assert_int_equal(sy_vmem_size(arena, BOTH), 110);
    give(arena, a, 10);
    assert_int_equal(from.released, 0);
    give(arena, b, 100);
    assert_int_equal(from.released, 1);
    end(arena);
}

static void no_less_is_imported_than_was_said(void **state) {
    (void)state;
    supply from = {.next = 0};
    sy_vmem_config config = supplied(&from);
    config.quantum = 16;
    config.import_min = 1000;
    sy_vmem *arena = make(config);
    uintptr_t a = get(arena, 16), b = get(arena, 900);
    assert_true(from.asked >= 1000 && from.asked % 16 == 0);
    assert_int_equal(from.calls, 1);
    uintptr_t c = get(arena, 5000);
    assert_true(from.asked >= 5000);
    give(arena, a, 16);
    give(arena, b, 900);
    give(arena, c, 5000);
    nothing_is_out(&from);
    end(arena);
}

static void a_failing_import_is_no_room(void **state) {
    (void)state;
    supply from = {.refuses = true};
    sy_vmem *arena = make(supplied(&from));
    not_given(arena, 10, ENOMEM);
    assert_int_equal(from.calls, 6);
    assert_int_equal(sy_vmem_verify(arena), 0);
    end(arena);
}

static void a_size_that_cannot_be_is_not_imported(void **state) {
    (void)state;
    supply from = {.refuses = true};
    sy_vmem_config config = supplied(&from);
    config.quantum = 4096;
    sy_vmem *arena = make(config);
    not_given(arena, SIZE_MAX, EINVAL);
    assert_int_equal(from.calls, 0);
    not_given(arena, SIZE_MAX - 4095, ENOMEM);
    not_given_with(arena, SIZE_MAX - 4095, (sy_vmem_constraints){.align = 1 << 20}, ENOMEM);
    not_given_with(arena, 4096, (sy_vmem_constraints){.align = SIZE_MAX / 2 + 1}, ENOMEM);
    end(arena);
}

/* If the constraints do not bound the value, one import is large enough for them. */
static void an_import_is_large_enough_for_its_constraints(void **state) {
    (void)state;
    static const sy_vmem_constraints with[] = {
        {.align = 4096},
        {.align = 4096, .phase = 4088},
        {.nocross = 64},
        {.align = 16, .phase = 8, .nocross = 128},
        {.align = 4096, .phase = 64, .nocross = 1024},
        {.align = 64, .phase = 56, .nocross = 8192},
    };
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        for (uintptr_t start = 8; start < 8200; start += 8 * 29) {
            supply from = {.next = start};
            sy_vmem_config config = supplied(&from);
            config.quantum = 8;
            sy_vmem *arena = make(config);
            uintptr_t value = get_with(arena, 64, with[i]);
            size_t nocross = with[i].nocross, align = with[i].align ? with[i].align : 8;
            assert_int_equal(value % align, with[i].phase);
            assert_true(!nocross || value % nocross + 64 <= nocross);
            assert_int_equal(from.calls, 1);
            give(arena, value, 64);
            nothing_is_out(&from);
            end(arena);
        }
    }
}

/* An import takes no more than the constraints need, so a source that has just this much serves. If
 * align is at least nocross, then either all values at the phase cross a boundary or none does. */
static void a_source_serves_that_has_just_enough_for_the_constraints(void **state) {
    (void)state;
    static const sy_vmem_constraints with[] = {
        {.align = 256},
        {.align = 256, .phase = 255},
        {.align = 256, .phase = 192, .nocross = 256},
        {.align = 256, .phase = 192, .nocross = 64},
    };
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        sy_vmem *source = make((sy_vmem_config){.base = 1000, .size = 64 + 256 - 1});
        sy_vmem *arena = make((sy_vmem_config){.source = source});
        uintptr_t value = get_with(arena, 64, with[i]);
        assert_int_equal(value % 256, with[i].phase);
        give(arena, value, 64);
        end(arena);
        end(source);
    }
}

/* The spans lie outside of min and max. One span is imported and released at once, and no other. */
static void an_import_that_cannot_satisfy_ends(void **state) {
    (void)state;
    for (unsigned way = 0; way < 6; way++) {
        sy_vmem_fit fit = (sy_vmem_fit)(way % 3);
        supply from = {.next = 1000};
        sy_vmem_config config = supplied(&from);
        config.cached_max = way / 3 * 8;
        sy_vmem *arena = make(config);
        sy_vmem_constraints with = {.min = 10, .max = 500};
        uintptr_t value;
        errno = 0;
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, fit, &value), -1);
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(from.calls, 1);
        nothing_is_out(&from);
        assert_int_equal(sy_vmem_size(arena, BOTH), 0);
        assert_int_equal(sy_vmem_verify(arena), 0);
        from.next = 100;
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, fit, &value), 0);
        give(arena, value, 8);
        end(arena);
        nothing_is_out(&from);
    }
}

static void an_import_is_refused_that_is_more_than_a_size_can_say(void **state) {
    (void)state;
    supply from = {.next = UINTPTR_MAX};
    sy_vmem_config config = supplied(&from);
    config.size = SIZE_MAX;
    sy_vmem *arena = make(config);
    uintptr_t value = get(arena, SIZE_MAX), one;
    errno = 0;
    assert_int_equal(sy_vmem_alloc(arena, 1, SY_VMEM_BEST, &one), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(from.calls, 1);
    nothing_is_out(&from);
    assert_int_equal(sy_vmem_size(arena, BOTH), SIZE_MAX);
    give(arena, value, SIZE_MAX);
    end(arena);
}

/* The quarters of each span are freed in turn. A span is released once, with its last quarter. */
static void every_span_is_released_once(void **state) {
    (void)state;
    enum { SPANS = 20, PIECES = 4 };
    supply from = {.next = 4096};
    sy_vmem_config config = supplied(&from);
    config.import_min = 64;
    sy_vmem *arena = make(config);
    for (size_t i = 0; i < SPANS * PIECES; i++) get(arena, 16);
    assert_int_equal(from.count, SPANS);
    for (size_t piece = 0; piece < PIECES; piece++) {
        for (size_t i = 0; i < SPANS; i++) {
            size_t which = i * 7 % SPANS;
            give(arena, from.spans[which].start + 16 * ((piece + which) % PIECES), 16);
            assert_int_equal(from.released, piece < PIECES - 1 ? 0 : i + 1);
            assert_int_equal(from.spans[which].what, piece < PIECES - 1);
        }
    }
    assert_int_equal(sy_vmem_size(arena, BOTH), 0);
    end(arena);
    nothing_is_out(&from);
}

/* Imported spans that touch stay two spans. */
static void neighbouring_imports_are_not_one(void **state) {
    (void)state;
    supply from = {.next = 100};
    sy_vmem *arena = make(supplied(&from));
    get(arena, 10);
    get(arena, 10);
    assert_int_equal(from.count, 2);
    give(arena, 100, 10);
    assert_int_equal(from.released, 1);
    SHOWS(arena, ALL, {SY_VMEM_SPANS, 110, 10}, {SY_VMEM_ALLOCATED, 110, 10});
    give(arena, 110, 10);
    end(arena);
    nothing_is_out(&from);
}

static void a_span_that_was_added_stays(void **state) {
    (void)state;
    supply from = {.next = 1000};
    sy_vmem *arena = make(supplied(&from));
    assert_int_equal(sy_vmem_add(arena, 0, 10), 0);
    give(arena, get(arena, 10), 10);
    assert_int_equal(sy_vmem_size(arena, BOTH), 10);
    assert_int_equal(from.calls, 0);
    end(arena);
    assert_int_equal(from.released, 0);
}

/* An id comes back only after all other ids were given, whatever spans come and go. */
static void next_fit_goes_on_in_an_imported_span(void **state) {
    (void)state;
    sy_vmem *source = make((sy_vmem_config){.base = 100, .size = 4});
    sy_vmem *arena = make((sy_vmem_config){.source = source, .import_min = 4});
    for (uintptr_t i = 0; i < 10; i++) {
        uintptr_t id = get_by(arena, 1, SY_VMEM_NEXT);
        assert_int_equal(id, 100 + i % 4);
        give(arena, id, 1);
        assert_int_equal(sy_vmem_size(arena, BOTH), 0);
    }
    end(arena);
    end(source);
}

/* Functions that use the arena for which they are called. */
typedef struct reentrant {
    sy_vmem *arena;
    uintptr_t next;
    unsigned depth, given, released;
} reentrant;

static int import_and_use(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    reentrant *it = arg;
    uintptr_t value;
    (void)source;
    if (it->depth++ < 2) {
        assert_int_equal(sy_vmem_alloc(it->arena, 3, SY_VMEM_BEST, &value), 0);
        assert_int_equal(sy_vmem_free(it->arena, value, 3), 0);
        assert_int_equal(sy_vmem_verify(it->arena), 0);
    }
    *start = it->next;
    *got = size;
    it->next += size;
    it->given++;
    return 0;
}

static void release_and_use(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    reentrant *it = arg;
    (void)source;
    assert_int_equal(sy_vmem_contains(it->arena, start, size), 0);
    assert_int_equal(sy_vmem_verify(it->arena), 0);
    it->released++;
}

/* They are called in allocations and frees, when quantum caches are filled and drained, and in
 * destruction. */
static void the_functions_may_use_the_arena(void **state) {
    (void)state;
    for (size_t cached = 0; cached <= 8; cached += 8) {
        reentrant it = {.next = 100};
        sy_vmem_config config = {.cached_max = cached, .arg = &it};
        config.import = import_and_use;
        config.release = release_and_use;
        it.arena = make(config);
        for (size_t round = 0; round < 2; round++) {
            uintptr_t large = get(it.arena, 10), small = get(it.arena, 5);
            give(it.arena, large, 10);
            give(it.arena, small, 5);
            if (round == 0) sy_vmem_drain(it.arena);
        }
        assert_true(it.given >= 4);
        end(it.arena);
        assert_int_equal(it.given, it.released);
    }
}

/* ---- source arenas ---- */

static sy_vmem *handed_source;

static int import_from(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    (void)arg;
    (void)got;
    handed_source = source;
    return sy_vmem_alloc(source, size, SY_VMEM_BEST, start);
}

static void release_to(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    (void)arg;
    assert_ptr_equal(source, handed_source);
    assert_int_equal(sy_vmem_free(source, start, size), 0);
}

static void the_functions_are_handed_their_source(void **state) {
    (void)state;
    sy_vmem *source = make_plain(1000);
    sy_vmem *arena =
        make((sy_vmem_config){.import = import_from, .release = release_to, .source = source});
    uintptr_t value = get(arena, 100);
    assert_ptr_equal(handed_source, source);
    assert_int_equal(sy_vmem_size(source, SY_VMEM_ALLOCATED), 100);
    give(arena, value, 100);
    assert_int_equal(sy_vmem_size(source, SY_VMEM_ALLOCATED), 0);
    end(arena);
    end(source);
}

static void a_source_serves_without_functions(void **state) {
    (void)state;
    sy_vmem *source = make_plain(1000);
    sy_vmem *arena = make((sy_vmem_config){.source = source, .import_min = 100});
    uintptr_t a = get(arena, 60), b = get(arena, 40);
    assert_int_equal(sy_vmem_size(source, SY_VMEM_ALLOCATED), 100);
    errno = 0;
    assert_int_equal(sy_vmem_destroy(source), -1);
    assert_int_equal(errno, EBUSY);
    give(arena, a, 60);
    give(arena, b, 40);
    assert_int_equal(sy_vmem_size(source, SY_VMEM_ALLOCATED), 0);
    not_given(arena, 1001, ENOMEM);
    end(arena);
    end(source);
}

/* The first value of the source is no multiple of the arena's quantum. */
static void a_source_of_a_smaller_quantum_serves_multiples_of_the_larger(void **state) {
    (void)state;
    sy_vmem *source = make((sy_vmem_config){.base = 3, .size = 1000});
    sy_vmem *arena = make((sy_vmem_config){.source = source, .quantum = 64});
    uintptr_t a = get(arena, 64), b = get(arena, 100);
    assert_int_equal(a % 64, 0);
    assert_int_equal(b % 64, 0);
    assert_int_equal(sy_vmem_verify(arena), 0);
    give(arena, a, 64);
    give(arena, b, 100);
    end(arena);
    end(source);
}

static void a_chain_of_arenas_serves_and_is_served(void **state) {
    (void)state;
    sy_vmem *pages = make((sy_vmem_config){.name = "pages", .base = 1 << 20, .size = 1 << 20});
    sy_vmem *blocks = make(
        (sy_vmem_config){.name = "blocks", .quantum = 16, .source = pages, .import_min = 4096});
    sy_vmem *items = make(
        (sy_vmem_config){.name = "items", .quantum = 256, .source = blocks, .import_min = 1024});
    enum { COUNT = 500 };
    uintptr_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = get(items, 256 * (1 + i % 3));
        assert_int_equal(values[i] % 256, 0);
        assert_int_equal(sy_vmem_contains(pages, values[i], 256 * (1 + i % 3)), 1);
    }
    assert_int_equal(stats_of(items).imported, sy_vmem_size(blocks, SY_VMEM_ALLOCATED));
    assert_int_equal(stats_of(blocks).imported, sy_vmem_size(pages, SY_VMEM_ALLOCATED));
    for (size_t i = 0; i < COUNT; i++) {
        size_t which = i * 7 % COUNT;
        give(items, values[which], 256 * (1 + which % 3));
    }
    assert_int_equal(sy_vmem_size(items, BOTH), 0);
    assert_int_equal(sy_vmem_size(blocks, BOTH), 0);
    assert_int_equal(sy_vmem_size(pages, SY_VMEM_FREE), 1 << 20);
    not_given(items, 1 << 21, ENOMEM);
    end(items);
    end(blocks);
    end(pages);
}

/* Values in caches keep spans of the source. If the source has nothing else, they are drained. */
static void what_caches_give_back_can_be_imported_again(void **state) {
    (void)state;
    sy_vmem *source = make_plain(64);
    sy_vmem *arena = make((sy_vmem_config){.source = source, .cached_max = 4, .import_min = 32});
    give(arena, get(arena, 1), 1);
    assert_int_equal(get(arena, 64), 0);
    give(arena, 0, 64);
    end(arena);
    end(source);
}

static void an_import_of_what_is_there_is_given_back(void **state) {
    (void)state;
    supply from = {.next = 105, .gap = (size_t)-20}; /* the same span each time */
    sy_vmem *arena = make(supplied(&from));
    assert_int_equal(sy_vmem_add(arena, 100, 10), 0);
    uintptr_t all = get(arena, 10);
    not_given(arena, 20, ENOMEM);
    assert_int_equal(from.released, from.count);
    assert_true(from.count > 0);
    assert_int_equal(stats_of(arena).total, 10);
    give(arena, all, 10);
    end(arena);
}

/* If the source has nothing either, all free segments are tried, however many are too small. */
static void what_is_far_down_a_list_is_found_in_the_end(void **state) {
    (void)state;
    enum { SMALL = 64, LARGE = 71, MANY = 200 };
    static uintptr_t small[MANY], between[MANY + 1];
    supply from = {.refuses = true};
    sy_vmem_config config = supplied(&from);
    config.size = MANY * (SMALL + 1) + LARGE + 1;
    sy_vmem *arena = make(config);
    for (int i = 0; i < MANY; i++) small[i] = get(arena, SMALL), between[i] = get(arena, 1);
    uintptr_t large = get(arena, LARGE);
    between[MANY] = get(arena, 1);
    give(arena, large, LARGE); /* the last in its list */
    for (int i = 0; i < MANY; i++) give(arena, small[i], SMALL);
    assert_int_equal(get(arena, LARGE), large);
    assert_true(from.calls > 0);
    give(arena, large, LARGE);
    for (int i = 0; i <= MANY; i++) give(arena, between[i], 1);
    end(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_span_is_imported_when_there_is_no_room),
        TEST(an_import_may_give_more),
        TEST(no_less_is_imported_than_was_said),
        TEST(a_failing_import_is_no_room),
        TEST(a_size_that_cannot_be_is_not_imported),
        TEST(an_import_is_large_enough_for_its_constraints),
        TEST(a_source_serves_that_has_just_enough_for_the_constraints),
        TEST(an_import_that_cannot_satisfy_ends),
        TEST(an_import_is_refused_that_is_more_than_a_size_can_say),
        TEST(every_span_is_released_once),
        TEST(neighbouring_imports_are_not_one),
        TEST(a_span_that_was_added_stays),
        TEST(next_fit_goes_on_in_an_imported_span),
        TEST(the_functions_may_use_the_arena),
        TEST(the_functions_are_handed_their_source),
        TEST(a_source_serves_without_functions),
        TEST(a_source_of_a_smaller_quantum_serves_multiples_of_the_larger),
        TEST(a_chain_of_arenas_serves_and_is_served),
        TEST(what_caches_give_back_can_be_imported_again),
        TEST(an_import_of_what_is_there_is_given_back),
        TEST(what_is_far_down_a_list_is_found_in_the_end),
    };
    return cmocka_run_group_tests_name("vmem_imports", tests, NULL, NULL);
}
