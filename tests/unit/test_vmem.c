/*
 * test_vmem.c: what vmem.h promises, one behaviour a test, through the public header alone. Every
 * sequence of operations is compared with a model in tests/fuzz/fuzz_vmem.c and, of small arenas,
 * in test_vmem_exhaustive.c; what happens without memory is in test_vmem_failures.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabyard/cache.h>
#include <slabyard/fault.h>
#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/child.h"

static const unsigned BOTH = SY_VMEM_ALLOCATED | SY_VMEM_FREE;
static const unsigned ALL = SY_VMEM_ALLOCATED | SY_VMEM_FREE | SY_VMEM_SPANS;

/* ---- helpers ---- */

static sy_vmem *make(sy_vmem_config config) {
    sy_vmem *arena = sy_vmem_create(&config);
    assert_non_null(arena);
    assert_int_equal(sy_vmem_verify(arena), 0);
    return arena;
}

/* [0, size) in units. */
static sy_vmem *make_plain(size_t size) { return make((sy_vmem_config){.size = size}); }

static void end(sy_vmem *arena) {
    assert_int_equal(sy_vmem_verify(arena), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

static uintptr_t get_by(sy_vmem *arena, size_t size, sy_vmem_fit fit) {
    uintptr_t value = 4711;
    assert_int_equal(sy_vmem_alloc(arena, size, fit, &value), 0);
    return value;
}

static uintptr_t get(sy_vmem *arena, size_t size) { return get_by(arena, size, SY_VMEM_INSTANT); }

static uintptr_t get_with(sy_vmem *arena, size_t size, sy_vmem_constraints with) {
    uintptr_t value = 4711;
    assert_int_equal(sy_vmem_xalloc(arena, size, &with, SY_VMEM_INSTANT, &value), 0);
    return value;
}

/* The segment [value, value + size) and no other. */
static void get_at(sy_vmem *arena, uintptr_t value, size_t size) {
    sy_vmem_constraints there = {.min = value, .max = value + size};
    assert_int_equal(get_with(arena, size, there), value);
}

static void give(sy_vmem *arena, uintptr_t value, size_t size) {
    assert_int_equal(sy_vmem_free(arena, value, size), 0);
}

static sy_vmem_stats stats_of(const sy_vmem *arena) {
    sy_vmem_stats stats;
    assert_int_equal(sy_vmem_get_stats(arena, &stats), 0);
    assert_int_equal(stats.total, stats.allocated + stats.cached + stats.free);
    return stats;
}

static void not_created(sy_vmem_config config, int error) {
    errno = 0;
    assert_null(sy_vmem_create(&config));
    assert_int_equal(errno, error);
}

static void not_added(sy_vmem *arena, uintptr_t start, size_t size, int error) {
    size_t before = sy_vmem_size(arena, BOTH);
    errno = 0;
    assert_int_equal(sy_vmem_add(arena, start, size), -1);
    assert_int_equal(errno, error);
    assert_int_equal(sy_vmem_size(arena, BOTH), before);
}

/* Refused by alloc and xalloc alike, with every fit; nothing is written, nothing changes. */
static void not_given(sy_vmem *arena, size_t size, int error) {
    size_t before = sy_vmem_size(arena, SY_VMEM_FREE);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        uintptr_t value = 4711;
        errno = 0;
        assert_int_equal(sy_vmem_alloc(arena, size, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, error);
        errno = 0;
        assert_int_equal(sy_vmem_xalloc(arena, size, NULL, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, error);
        assert_int_equal(value, 4711);
    }
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), before);
}

static void not_given_with(sy_vmem *arena, size_t size, sy_vmem_constraints with, int error) {
    size_t before = sy_vmem_size(arena, SY_VMEM_FREE);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        uintptr_t value = 4711;
        errno = 0;
        assert_int_equal(sy_vmem_xalloc(arena, size, &with, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, error);
        assert_int_equal(value, 4711);
    }
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), before);
}

static void not_resized(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size, int error) {
    size_t before = sy_vmem_size(arena, SY_VMEM_FREE);
    errno = 0;
    assert_int_equal(sy_vmem_resize(arena, value, size, new_size), -1);
    assert_int_equal(errno, error);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), before);
}

/* ---- what a walk shows ---- */

enum { ENTRIES_MAX = 64 };

typedef struct entry {
    unsigned what;
    uintptr_t start;
    size_t size;
} entry;

typedef struct view {
    entry entries[ENTRIES_MAX];
    size_t count;
} view;

static int note(void *arg, unsigned what, uintptr_t start, size_t size) {
    view *seen = arg;
    assert_true(seen->count < ENTRIES_MAX);
    seen->entries[seen->count++] = (entry){what, start, size};
    return 0;
}

static void shows(const sy_vmem *arena, unsigned what, const entry *entries, size_t count) {
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_walk(arena, what, note, &seen), 0);
    assert_int_equal(seen.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen.entries[i].what, entries[i].what);
        assert_int_equal(seen.entries[i].start, entries[i].start);
        assert_int_equal(seen.entries[i].size, entries[i].size);
    }
}

#define SHOWS(arena, what, ...)                      \
    shows(arena, what, (const entry[]){__VA_ARGS__}, \
          sizeof((const entry[]){__VA_ARGS__}) / sizeof(entry))

/* ---- faults ---- */

static sy_fault fault;
static char fault_name[SY_VMEM_NAME_MAX + 1];
static unsigned faults;

static void note_fault(const sy_fault *it) {
    fault = *it;
    strcpy(fault_name, it->cache);
    faults++;
}

/* One since the last time, and it names all that is known. */
static void expect_fault(sy_fault_kind kind, uintptr_t value, size_t size, size_t found_size) {
    assert_int_equal(faults, 1);
    assert_int_equal(fault.kind, kind);
    assert_int_equal((uintptr_t)fault.address, value);
    assert_int_equal(fault.object_size, size);
    assert_string_equal(fault_name, "ports");
    if (kind == SY_FAULT_SEGMENT_SIZE) assert_int_equal(fault.found_size, found_size);
    faults = 0;
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    faults = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

/* ---- imports ---- */

enum { SUPPLIES_MAX = 64 };

/* What functions of the caller's hand out, one span after the other. */
typedef struct supply {
    uintptr_t next;
    size_t more; /* beyond what is asked for */
    size_t gap;  /* between spans */
    bool refuses;
    size_t asked; /* at the last call */
    size_t calls, count, released;
    entry spans[SUPPLIES_MAX]; /* what: 1 while it is given */
} supply;

static int import(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    supply *from = arg;
    assert_null(source);
    assert_int_equal(*got, size);
    from->calls++;
    from->asked = size;
    errno = EPERM;
    if (from->refuses) return 7;
    assert_true(from->count < SUPPLIES_MAX);
    *start = from->next;
    *got = size + from->more;
    from->spans[from->count++] = (entry){1, *start, *got};
    from->next += *got + from->gap;
    return 0;
}

static void release(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    supply *from = arg;
    assert_null(source);
    for (size_t i = 0; i < from->count; i++) {
        entry *it = &from->spans[i];
        if (it->start != start || !it->what) continue;
        assert_int_equal(it->size, size);
        it->what = 0;
        from->released++;
        return;
    }
    fail_msg("released what was not imported, or twice");
}

static sy_vmem_config supplied(supply *from) {
    return (sy_vmem_config){.name = "ports", .import = import, .release = release, .arg = from};
}

static void nothing_is_out(const supply *from) { assert_int_equal(from->released, from->count); }

/* ---- create ---- */

static void an_arena_of_zeroes_has_nothing(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){0});
    sy_vmem_stats stats = stats_of(arena);
    assert_int_equal(stats.quantum, 1);
    assert_int_equal(stats.total, 0);
    assert_int_equal(stats.spans, 0);
    assert_int_equal(stats.largest_free, 0);
    assert_string_equal(stats.name, "arena");
    not_given(arena, 1, ENOMEM);
    end(arena);
}

static void a_name_is_copied_and_cut(void **state) {
    (void)state;
    char name[] = "0123456789012345678901234567890123456789";
    sy_vmem *arena = make((sy_vmem_config){.name = name});
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(stats_of(arena).name, "0123456789012345678901234567890");
    assert_int_equal(strlen(stats_of(arena).name), SY_VMEM_NAME_MAX);
    end(arena);
}

static void create_refuses_no_config(void **state) {
    (void)state;
    errno = 0;
    assert_null(sy_vmem_create(NULL));
    assert_int_equal(errno, EINVAL);
}

static void create_refuses_a_quantum_that_is_no_power_of_two(void **state) {
    (void)state;
    not_created((sy_vmem_config){.quantum = 3}, EINVAL);
    not_created((sy_vmem_config){.quantum = SIZE_MAX}, EINVAL);
    end(make((sy_vmem_config){.quantum = SIZE_MAX / 2 + 1}));
}

static void create_refuses_a_span_off_the_quantum(void **state) {
    (void)state;
    not_created((sy_vmem_config){.quantum = 8, .base = 4, .size = 16}, EINVAL);
    not_created((sy_vmem_config){.quantum = 8, .base = 8, .size = 12}, EINVAL);
}

static void create_refuses_a_span_past_the_end(void **state) {
    (void)state;
    not_created((sy_vmem_config){.base = 2, .size = SIZE_MAX}, EINVAL);
    not_created((sy_vmem_config){.base = UINTPTR_MAX, .size = 2}, EINVAL);
    end(make((sy_vmem_config){.base = 1, .size = SIZE_MAX}));
    end(make((sy_vmem_config){.base = UINTPTR_MAX, .size = 1}));
}

static void create_refuses_more_than_16_cached_sizes(void **state) {
    (void)state;
    not_created((sy_vmem_config){.cached_max = 17}, EINVAL);
    not_created((sy_vmem_config){.quantum = 4096, .cached_max = 16 * 4096 + 1}, EINVAL);
    not_created((sy_vmem_config){.cached_max = SIZE_MAX}, EINVAL);
    end(make((sy_vmem_config){.quantum = 4096, .cached_max = 16 * 4096}));
}

static void create_refuses_one_function_without_the_other(void **state) {
    (void)state;
    not_created((sy_vmem_config){.import = import}, EINVAL);
    not_created((sy_vmem_config){.release = release}, EINVAL);
    sy_vmem *source = make_plain(100);
    not_created((sy_vmem_config){.import = import, .source = source}, EINVAL);
    end(source);
}

static void create_refuses_an_import_size_without_imports(void **state) {
    (void)state;
    not_created((sy_vmem_config){.import_min = 100}, EINVAL);
}

static void create_refuses_a_source_of_a_larger_quantum(void **state) {
    (void)state;
    sy_vmem *source = make((sy_vmem_config){.quantum = 16});
    not_created((sy_vmem_config){.quantum = 8, .source = source}, EINVAL);
    end(make((sy_vmem_config){.quantum = 16, .source = source}));
    end(source);
}

static void create_refuses_what_is_reserved(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        sy_vmem_config config = {.size = 16};
        config.reserved[i] = 1;
        not_created(config, EINVAL);
    }
}

/* Every quantum cache takes one of 16,384 client numbers. */
static void use_all_client_numbers(void *arg) {
    enum { ARENAS_MAX = 16384 / SY_VMEM_CACHED_SIZES + 1 };
    static sy_vmem *arenas[ARENAS_MAX];
    sy_vmem_config config = {.size = 1000, .cached_max = SY_VMEM_CACHED_SIZES};
    size_t count = 0;
    (void)arg;
    errno = 0;
    while (count < ARENAS_MAX && (arenas[count] = sy_vmem_create(&config)) != NULL) count++;
    must(count > 0 && count < ARENAS_MAX && errno == ENOMEM);
    must(sy_vmem_destroy(arenas[--count]) == 0);
    must((arenas[count++] = sy_vmem_create(&config)) != NULL);
    while (count > 0) must(sy_vmem_destroy(arenas[--count]) == 0);
}

static void create_fails_without_client_numbers(void **state) {
    (void)state;
    assert_int_equal(in_child(use_all_client_numbers, NULL), 0);
}

/* ---- destroy ---- */

static void destroying_nothing_is_nothing(void **state) {
    (void)state;
    assert_int_equal(sy_vmem_destroy(NULL), 0);
}

static void destroy_refuses_while_anything_is_allocated(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    uintptr_t value = get(arena, 7);
    errno = 0;
    assert_int_equal(sy_vmem_destroy(arena), -1);
    assert_int_equal(errno, EBUSY);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 7);
    give(arena, get(arena, 93), 93);
    give(arena, value, 7);
    end(arena);
}

static void be_child(void *arg) {
    uintptr_t value;
    must(sy_vmem_alloc(arg, 10, SY_VMEM_BEST, &value) == 0);
    must(sy_vmem_free(arg, value, 10) == 0);
    must(sy_vmem_verify(arg) == 0);
}

/* A fork takes the locks of those that there are. */
static void arenas_are_destroyed_in_any_order(void **state) {
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    (void)state;
    for (size_t order = 0; order < 4; order++) {
        sy_vmem *arenas[4];
        for (size_t i = 0; i < 4; i++) arenas[i] = make_plain(100);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(in_child(be_child, arenas[orders[order][3]]), 0);
            end(arenas[orders[order][i]]);
        }
    }
}

/* What the statistics say, to a page, is what was committed for the arena; how much that is. */
static size_t expect_bytes(const sy_vmem *arena, size_t committed) {
    size_t held = sy_fake_committed() - committed, page = (size_t)sysconf(_SC_PAGESIZE);
    assert_in_range(stats_of(arena).bytes, held - page, held);
    return held;
}

static void destroy_gives_all_memory_back(void **state) {
    (void)state;
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    sy_vmem *arena = make_plain(200000);
    for (size_t i = 0; i < 100000; i++) get(arena, 1);
    size_t most = expect_bytes(arena, committed);
    for (size_t i = 0; i < 100000; i++) give(arena, i, 1);
    assert_true(expect_bytes(arena, committed) < most / 4); /* much of it goes before */
    end(arena);
    assert_int_equal(sy_fake_reserved(), reserved);
    assert_int_equal(sy_fake_committed(), committed);
}

static void destroy_gives_imported_spans_back(void **state) {
    (void)state;
    supply from = {.next = 100, .more = 50};
    sy_vmem *arena = make(supplied(&from));
    uintptr_t value = get(arena, 8);
    assert_int_equal(from.released, 0);
    give(arena, value, 8);
    end(arena);
    nothing_is_out(&from);
}

/* ---- add ---- */

static void add_refuses_what_is_no_span(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.quantum = 8});
    not_added(arena, 0, 0, EINVAL);
    not_added(arena, 4, 8, EINVAL);
    not_added(arena, 8, 4, EINVAL);
    not_added(arena, UINTPTR_MAX - 7, 16, EINVAL);
    not_added(arena, 16, SIZE_MAX - 7, EINVAL);
    end(arena);
}

static void add_refuses_what_is_there(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    not_added(arena, 100, 100, EEXIST);
    not_added(arena, 199, 1, EEXIST);
    not_added(arena, 0, 101, EEXIST);
    not_added(arena, 50, 1000, EEXIST);
    not_added(arena, 120, 10, EEXIST);
    assert_int_equal(sy_vmem_add(arena, 0, 100), 0);
    assert_int_equal(sy_vmem_add(arena, 200, 1), 0);
    assert_int_equal(sy_vmem_size(arena, BOTH), 201);
    end(arena);
}

static void add_refuses_what_an_import_brought(void **state) {
    (void)state;
    supply from = {.next = 1000};
    sy_vmem *arena = make(supplied(&from));
    uintptr_t value = get(arena, 10);
    not_added(arena, 1009, 1, EEXIST);
    give(arena, value, 10);
    assert_int_equal(sy_vmem_add(arena, 1009, 1), 0);
    end(arena);
}

static void an_arena_holds_no_more_than_a_size_can_say(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(SIZE_MAX);
    not_added(arena, UINTPTR_MAX, 1, ENOMEM);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), SIZE_MAX);
    assert_int_equal(get(arena, SIZE_MAX), 0);
    give(arena, 0, SIZE_MAX);
    end(arena);
}

static void spans_that_touch_stay_two(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(64);
    assert_int_equal(sy_vmem_add(arena, 64, 64), 0);
    not_given(arena, 65, ENOMEM);
    assert_int_equal(stats_of(arena).spans, 2);
    assert_int_equal(stats_of(arena).segments_free, 2);
    get_at(arena, 60, 4);
    get_at(arena, 64, 4);
    give(arena, 64, 4);
    give(arena, 60, 4);
    assert_int_equal(stats_of(arena).segments_free, 2);
    end(arena);
}

/* ---- alloc ---- */

static void zero_is_a_value(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1);
    assert_int_equal(get(arena, 1), 0);
    not_given(arena, 1, ENOMEM);
    give(arena, 0, 1);
    assert_int_equal(get_with(arena, 1, (sy_vmem_constraints){.max = 1}), 0);
    give(arena, 0, 1);
    end(arena);
}

static void the_last_integer_is_a_value(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 1, .size = 2});
    get_at(arena, UINTPTR_MAX - 1, 1);
    assert_int_equal(get(arena, 1), UINTPTR_MAX);
    give(arena, UINTPTR_MAX - 1, 1);
    give(arena, UINTPTR_MAX, 1);
    assert_int_equal(get(arena, 2), UINTPTR_MAX - 1);
    give(arena, UINTPTR_MAX - 1, 2);
    end(arena);
}

static void sizes_are_rounded_to_the_quantum(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 64, .size = 64, .quantum = 16});
    uintptr_t a = get(arena, 1), b = get(arena, 17);
    assert_int_equal(a % 16, 0);
    assert_int_equal(b % 16, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 48);
    not_given(arena, 17, ENOMEM);
    give(arena, a, 1);
    give(arena, b, 17);
    end(arena);
}

static void alloc_refuses_no_size(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    not_given(arena, 0, EINVAL);
    end(arena);
}

static void alloc_refuses_sizes_that_overflow(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 20, .quantum = 4096});
    not_given(arena, SIZE_MAX, EINVAL);
    not_given(arena, SIZE_MAX - 4094, EINVAL);
    not_given(arena, SIZE_MAX - 4095, ENOMEM);
    end(arena);
}

static void what_is_too_large_is_no_room(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    not_given(arena, 101, ENOMEM);
    not_given(arena, SIZE_MAX, ENOMEM);
    not_given(arena, SIZE_MAX / 2 + 1, ENOMEM);
    end(arena);
}

static void alloc_refuses_an_unknown_fit(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 100, .cached_max = 8});
    uintptr_t value;
    for (int fit = SY_VMEM_NEXT + 1; fit < 100; fit += 31) {
        errno = 0;
        assert_int_equal(sy_vmem_alloc(arena, 1, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_int_equal(sy_vmem_xalloc(arena, 1, NULL, (sy_vmem_fit)fit, &value), -1);
        assert_int_equal(errno, EINVAL);
    }
    end(arena);
}

/* Instant fit looks at the lists of what is surely large enough first, but not at those alone. */
static void any_fit_finds_the_one_that_fits_exactly(void **state) {
    (void)state;
    for (size_t size = 1; size < 1200; size += 1 + size / 16) {
        for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
            sy_vmem *arena = make_plain(size);
            assert_int_equal(get_by(arena, size, (sy_vmem_fit)fit), 0);
            give(arena, 0, size);
            end(arena);
        }
    }
}

static void best_fit_takes_the_smallest(void **state) {
    (void)state;
    static const size_t sizes[] = {90, 70, 68, 65, 66, 81};
    sy_vmem *arena = make_plain(0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(sy_vmem_add(arena, 1000 * (i + 1), sizes[i]), 0);
    assert_int_equal(get_by(arena, 64, SY_VMEM_BEST), 4000);
    assert_int_equal(get_by(arena, 64, SY_VMEM_BEST), 5000);
    assert_int_equal(get_by(arena, 67, SY_VMEM_BEST), 3000);
    assert_int_equal(get_by(arena, 82, SY_VMEM_BEST), 1000);
    give(arena, 4000, 64);
    give(arena, 5000, 64);
    give(arena, 3000, 67);
    give(arena, 1000, 82);
    end(arena);
}

static void next_fit_uses_every_id_before_it_repeats_one(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 10, .size = 5});
    for (uintptr_t i = 0; i < 23; i++) {
        uintptr_t id = get_by(arena, 1, SY_VMEM_NEXT);
        assert_int_equal(id, 10 + i % 5);
        give(arena, id, 1);
    }
    end(arena);
}

static void next_fit_goes_around_what_is_in_use(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(6);
    get_at(arena, 1, 1);
    get_at(arena, 4, 1);
    static const uintptr_t turns[] = {0, 2, 3, 5, 0, 2};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), turns[i]);
        give(arena, turns[i], 1);
    }
    give(arena, 1, 1);
    give(arena, 4, 1);
    end(arena);
}

static void next_fit_goes_on_in_the_next_span(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 2});
    assert_int_equal(sy_vmem_add(arena, UINTPTR_MAX, 1), 0);
    assert_int_equal(sy_vmem_add(arena, 0, 1), 0);
    static const uintptr_t turns[] = {0, 100, 101, UINTPTR_MAX, 0, 100};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), turns[i]);
        give(arena, turns[i], 1);
    }
    end(arena);
}

static void next_fit_takes_larger_pieces_where_they_fit(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    assert_int_equal(get_by(arena, 6, SY_VMEM_NEXT), 0);
    give(arena, 0, 6);
    assert_int_equal(get_by(arena, 5, SY_VMEM_NEXT), 0); /* 6 to 9 are too few */
    assert_int_equal(get_by(arena, 2, SY_VMEM_NEXT), 5);
    give(arena, 0, 5);
    give(arena, 5, 2);
    end(arena);
}

/* The last one chosen, 2 to 5, is freed, its place grown over by another, and free again. */
static void next_fit_goes_on_from_a_place_that_others_had(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    get_at(arena, 0, 2);
    assert_int_equal(get_by(arena, 4, SY_VMEM_NEXT), 2);
    give(arena, 2, 4);
    assert_int_equal(sy_vmem_resize(arena, 0, 2, 10), 0);
    assert_int_equal(get(arena, 10), 10);
    assert_int_equal(sy_vmem_resize(arena, 0, 10, 2), 0);
    assert_int_equal(get_by(arena, 1, SY_VMEM_NEXT), 6);
    give(arena, 0, 2);
    give(arena, 6, 1);
    give(arena, 10, 10);
    end(arena);
}

/* ---- freeing, coalescing ---- */

enum { RUN = 128 };

static void free_in_order(sy_vmem *arena, const size_t *order) {
    for (size_t i = 0; i < RUN; i++) get_at(arena, 1000 + i, 1);
    not_given(arena, 1, ENOMEM);
    for (size_t i = 0; i < RUN; i++) {
        give(arena, 1000 + order[i], 1);
        assert_int_equal(sy_vmem_verify(arena), 0);
    }
    assert_int_equal(stats_of(arena).segments_free, 1);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        assert_int_equal(get_by(arena, RUN, (sy_vmem_fit)fit), 1000);
        give(arena, 1000, RUN);
    }
}

static void contiguous_quanta_are_one_segment_however_they_were_freed(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 1000, .size = RUN});
    size_t order[RUN];
    uint64_t random = 1;
    for (size_t i = 0; i < RUN; i++) order[i] = i;
    free_in_order(arena, order);
    for (size_t i = 0; i < RUN; i++) order[i] = RUN - 1 - i;
    free_in_order(arena, order);
    for (size_t i = 0; i < RUN; i++) order[i] = i * 2 % RUN + i * 2 / RUN;
    free_in_order(arena, order);
    for (int round = 0; round < 20; round++) {
        for (size_t i = RUN; i > 1; i--) {
            size_t j = next_random(&random) % i, kept = order[i - 1];
            order[i - 1] = order[j];
            order[j] = kept;
        }
        free_in_order(arena, order);
    }
    end(arena);
}

/* A run that lies between what stays allocated, wherever it lies. */
static void contiguous_quanta_among_others_can_be_had_together(void **state) {
    (void)state;
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        for (uintptr_t start = 1; start < 1024 - RUN; start += 37) {
            sy_vmem *arena = make_plain(1024);
            for (size_t i = 0; i < 1024; i++) get(arena, 1);
            for (size_t i = 0; i < RUN; i++) give(arena, start + i * 55 % RUN, 1);
            not_given(arena, RUN + 1, ENOMEM);
            assert_int_equal(get_by(arena, RUN, (sy_vmem_fit)fit), start);
            for (uintptr_t i = 0; i < start; i++) give(arena, i, 1);
            for (uintptr_t i = start + RUN; i < 1024; i++) give(arena, i, 1);
            give(arena, start, RUN);
            end(arena);
        }
    }
}

static void either_function_frees_what_the_other_gave(void **state) {
    (void)state;
    for (size_t cached = 0; cached <= 8; cached += 8) {
        sy_vmem *arena = make((sy_vmem_config){.size = 100, .cached_max = cached});
        uintptr_t a = get(arena, 4), b = get_with(arena, 4, (sy_vmem_constraints){.align = 4});
        assert_int_equal(sy_vmem_xfree(arena, a, 4), 0);
        assert_int_equal(sy_vmem_free(arena, b, 4), 0);
        sy_vmem_drain(arena);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 100);
        assert_int_equal(faults, 0);
        end(arena);
    }
}

typedef int free_function(sy_vmem *arena, uintptr_t value, size_t size);

static free_function *const free_functions[] = {sy_vmem_free, sy_vmem_xfree};

static void freeing_what_is_not_allocated_is_told(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .base = 0x40, .size = 0x100});
    get_at(arena, 0x50, 16);
    static const uintptr_t wrong[] = {0x40, 0x51, 0x4f, 0x60, 0, UINTPTR_MAX, 0x140};
    for (size_t i = 0; i < 14; i++) {
        errno = 0;
        assert_int_equal(free_functions[i % 2](arena, wrong[i / 2], 16), -1);
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_NOT_ALLOCATED, wrong[i / 2], 16, 0);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 16);
    }
    give(arena, 0x50, 16);
    assert_int_equal(faults, 0);
    assert_int_equal(sy_vmem_free(arena, 0x50, 16), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 0x50, 16, 0);
    end(arena);
}

static void freeing_with_another_size_is_told(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .base = 0x40, .size = 0x100});
    get_at(arena, 0x50, 16);
    static const size_t wrong[] = {15, 17, 1, 0, SIZE_MAX};
    for (size_t i = 0; i < 10; i++) {
        errno = 0;
        assert_int_equal(free_functions[i % 2](arena, 0x50, wrong[i / 2]), -1);
        assert_int_equal(errno, EINVAL);
        expect_fault(SY_FAULT_SEGMENT_SIZE, 0x50, wrong[i / 2], 16);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 16);
    }
    give(arena, 0x50, 16);
    end(arena);
}

static sy_vmem *used_by_handler;

static void use_the_arena(const sy_fault *it) {
    note_fault(it);
    uintptr_t value;
    must(sy_vmem_alloc(used_by_handler, 3, SY_VMEM_BEST, &value) == 0);
    must(sy_vmem_free(used_by_handler, value, 3) == 0);
    must(sy_vmem_verify(used_by_handler) == 0);
}

static void the_handler_of_a_fault_may_use_the_arena(void **state) {
    (void)state;
    sy_vmem *arena = used_by_handler = make((sy_vmem_config){.name = "ports", .size = 100});
    sy_set_fault_handler(use_the_arena);
    assert_int_equal(sy_vmem_free(arena, 50, 1), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 50, 1, 0);
    assert_int_equal(sy_vmem_resize(arena, 50, 1, 2), -1);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 50, 1, 0);
    end(arena);
}

/* ---- xalloc ---- */

static void align_and_phase_are_kept(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 96, .size = 4096, .quantum = 8});
    uintptr_t a = get_with(arena, 8, (sy_vmem_constraints){.align = 256});
    uintptr_t b = get_with(arena, 8, (sy_vmem_constraints){.align = 256, .phase = 24});
    uintptr_t c = get_with(arena, 8, (sy_vmem_constraints){.align = 8});
    assert_int_equal(a % 256, 0);
    assert_int_equal(b % 256, 24);
    assert_int_equal(c % 8, 0);
    give(arena, a, 8);
    give(arena, b, 8);
    give(arena, c, 8);
    end(arena);
}

static void the_phase_may_lie_before_the_first_multiple(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 10, .size = 4});
    assert_int_equal(get_with(arena, 1, (sy_vmem_constraints){.align = 64, .phase = 11}), 11);
    not_given_with(arena, 1, (sy_vmem_constraints){.align = 64, .phase = 11}, ENOMEM);
    give(arena, 11, 1);
    end(arena);
}

static void alignment_near_the_end_of_the_integers_does_not_wrap(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 99, .size = 100});
    not_given_with(arena, 1, (sy_vmem_constraints){.align = 4096}, ENOMEM);
    not_given_with(arena, 1, (sy_vmem_constraints){.align = SIZE_MAX / 2 + 1}, ENOMEM);
    sy_vmem_constraints top = {.align = 4096, .phase = 4095};
    assert_int_equal(get_with(arena, 1, top), UINTPTR_MAX);
    not_given_with(arena, 2, (sy_vmem_constraints){.align = 4096, .phase = 4095}, ENOMEM);
    give(arena, UINTPTR_MAX, 1);
    end(arena);
}

/* The first candidate crosses; there is another in the same free segment, behind the boundary. */
static void nocross_tries_beyond_the_boundary(void **state) {
    (void)state;
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        sy_vmem *arena = make((sy_vmem_config){.base = 60, .size = 20});
        sy_vmem_constraints with = {.nocross = 64};
        uintptr_t value;
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, (sy_vmem_fit)fit, &value), 0);
        assert_true(value >= 64 && value <= 72);
        give(arena, value, 8);
        with = (sy_vmem_constraints){.nocross = 64, .align = 4, .phase = 3};
        assert_int_equal(sy_vmem_xalloc(arena, 8, &with, (sy_vmem_fit)fit, &value), 0);
        assert_true(value == 67 || value == 71);
        give(arena, value, 8);
        end(arena);
    }
}

static void a_segment_may_touch_a_boundary_but_not_cross_it(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 56, .size = 8});
    assert_int_equal(get_with(arena, 8, (sy_vmem_constraints){.nocross = 64}), 56);
    give(arena, 56, 8);
    assert_int_equal(get_with(arena, 8, (sy_vmem_constraints){.nocross = 8}), 56);
    give(arena, 56, 8);
    not_given_with(arena, 5, (sy_vmem_constraints){.nocross = 64, .min = 60}, ENOMEM);
    end(arena);
    arena = make((sy_vmem_config){.base = 60, .size = 8});
    not_given_with(arena, 8, (sy_vmem_constraints){.nocross = 64}, ENOMEM);
    not_given_with(arena, 5, (sy_vmem_constraints){.nocross = 64}, ENOMEM);
    end(arena);
}

static void min_and_max_bound_all_of_a_segment(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1000);
    sy_vmem_constraints with = {.min = 500, .max = 510};
    uintptr_t a = get_with(arena, 4, with), b = get_with(arena, 6, with);
    assert_true(a >= 500 && a + 4 <= 510 && b >= 500 && b + 6 <= 510);
    not_given_with(arena, 1, with, ENOMEM);
    give(arena, a, 4);
    give(arena, b, 6);
    get_at(arena, 500, 10);
    give(arena, 500, 10);
    assert_true(get_with(arena, 1, (sy_vmem_constraints){.min = 999}) == 999);
    give(arena, 999, 1);
    end(arena);
}

static void max_0_is_the_end_of_the_integers(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 9, .size = 10});
    sy_vmem_constraints with = {.min = UINTPTR_MAX - 1};
    assert_int_equal(get_with(arena, 2, with), UINTPTR_MAX - 1);
    give(arena, UINTPTR_MAX - 1, 2);
    with.max = UINTPTR_MAX;
    assert_int_equal(get_with(arena, 1, with), UINTPTR_MAX - 1);
    not_given_with(arena, 1, with, ENOMEM);
    give(arena, UINTPTR_MAX - 1, 1);
    end(arena);
}

static void all_constraints_hold_together(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 20, .quantum = 16});
    sy_vmem_constraints with = {
        .align = 256, .phase = 64, .nocross = 1024, .min = 5000, .max = 100000};
    for (int i = 0; i < 40; i++) {
        uintptr_t value = get_with(arena, 400, with);
        assert_int_equal(value % 256, 64);
        assert_true(value % 1024 + 400 <= 1024);
        assert_true(value >= 5000 && value + 400 <= 100000);
    }
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_walk(arena, SY_VMEM_ALLOCATED, note, &seen), 0);
    assert_int_equal(seen.count, 40);
    for (size_t i = 0; i < 40; i++) give(arena, seen.entries[i].start, 400);
    end(arena);
}

static void best_fit_under_constraints_takes_the_smallest_that_has_a_place(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 1001, .size = 10}); /* the smallest: no place */
    assert_int_equal(sy_vmem_add(arena, 2000, 30), 0);
    assert_int_equal(sy_vmem_add(arena, 3001, 20), 0);
    sy_vmem_constraints with = {.align = 16};
    uintptr_t value;
    assert_int_equal(sy_vmem_xalloc(arena, 8, &with, SY_VMEM_BEST, &value), 0);
    assert_int_equal(value, 3008);
    give(arena, value, 8);
    end(arena);
}

static void xalloc_refuses_what_is_no_alignment(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 1 << 16, .quantum = 16});
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 48}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 8}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = SIZE_MAX}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.nocross = 48}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.nocross = 8}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 64, .phase = 64}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.align = 64, .phase = 24}, EINVAL);
    not_given_with(arena, 16, (sy_vmem_constraints){.phase = 16}, EINVAL);
    end(arena);
}

static void xalloc_refuses_what_no_value_satisfies(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(1 << 16);
    not_given_with(arena, 65, (sy_vmem_constraints){.nocross = 64}, EINVAL);
    not_given_with(arena, 11, (sy_vmem_constraints){.min = 100, .max = 110}, EINVAL);
    not_given_with(arena, 1, (sy_vmem_constraints){.min = 100, .max = 100}, EINVAL);
    not_given_with(arena, 1, (sy_vmem_constraints){.min = 100, .max = 99}, EINVAL);
    not_given_with(arena, 2, (sy_vmem_constraints){.min = UINTPTR_MAX}, EINVAL);
    not_given_with(arena, SIZE_MAX, (sy_vmem_constraints){.min = 2}, EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 64},
                   EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 8}, EINVAL);
    not_given_with(arena, 8, (sy_vmem_constraints){.align = 16, .phase = 12, .nocross = 16},
                   EINVAL);
    uintptr_t value =
        get_with(arena, 4, (sy_vmem_constraints){.align = 64, .phase = 60, .nocross = 64});
    give(arena, value, 4);
    end(arena);
}

static void no_constraints_are_none(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    uintptr_t value;
    assert_int_equal(sy_vmem_xalloc(arena, 4, NULL, SY_VMEM_INSTANT, &value), 0);
    give(arena, value, 4);
    assert_int_equal(get_with(arena, 10, (sy_vmem_constraints){0}), 0);
    give(arena, 0, 10);
    end(arena);
}

/* ---- resize ---- */

static void a_segment_grows_and_shrinks_where_it_is(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    get_at(arena, 110, 10);
    assert_int_equal(sy_vmem_resize(arena, 110, 10, 30), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 30},
          {SY_VMEM_FREE, 140, 60});
    assert_int_equal(sy_vmem_resize(arena, 110, 30, 5), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 5},
          {SY_VMEM_FREE, 115, 85});
    assert_int_equal(sy_vmem_resize(arena, 110, 5, 5), 0);
    assert_int_equal(sy_vmem_resize(arena, 110, 5, 90), 0);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 100, 10}, {SY_VMEM_ALLOCATED, 110, 90});
    give(arena, 110, 90);
    end(arena);
}

static void a_segment_shrinks_before_another(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    get_at(arena, 0, 10);
    get_at(arena, 10, 10);
    assert_int_equal(sy_vmem_resize(arena, 0, 10, 4), 0);
    SHOWS(arena, BOTH, {SY_VMEM_ALLOCATED, 0, 4}, {SY_VMEM_FREE, 4, 6},
          {SY_VMEM_ALLOCATED, 10, 10});
    assert_int_equal(sy_vmem_resize(arena, 0, 4, 10), 0);
    give(arena, 0, 10);
    give(arena, 10, 10);
    end(arena);
}

static void a_segment_does_not_grow_beyond_what_is_free(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(20);
    assert_int_equal(sy_vmem_add(arena, 20, 20), 0);
    get_at(arena, 0, 5);
    get_at(arena, 10, 10);
    not_resized(arena, 0, 5, 11, ENOMEM);   /* another segment */
    not_resized(arena, 10, 10, 11, ENOMEM); /* the end of the span */
    not_resized(arena, 0, 5, SIZE_MAX, ENOMEM);
    assert_int_equal(sy_vmem_resize(arena, 0, 5, 10), 0);
    give(arena, 0, 10);
    give(arena, 10, 10);
    get_at(arena, 39, 1);
    not_resized(arena, 39, 1, 2, ENOMEM); /* the end of all */
    give(arena, 39, 1);
    end(arena);
}

static void resize_refuses_no_size_and_overflow(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.size = 4096, .quantum = 16});
    get_at(arena, 0, 16);
    not_resized(arena, 0, 16, 0, EINVAL);
    not_resized(arena, 0, 16, SIZE_MAX, EINVAL);
    not_resized(arena, 0, 16, SIZE_MAX - 15, ENOMEM);
    assert_int_equal(faults, 0);
    give(arena, 0, 16);
    end(arena);
}

static void resize_tells_what_free_tells(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .size = 100});
    get_at(arena, 10, 10);
    not_resized(arena, 11, 10, 12, EINVAL);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 11, 10, 0);
    not_resized(arena, 10, 9, 12, EINVAL);
    expect_fault(SY_FAULT_SEGMENT_SIZE, 10, 9, 10);
    give(arena, 10, 10);
    end(arena);
}

static void what_was_resized_is_freed_with_its_new_size(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.name = "ports", .size = 4096, .quantum = 16});
    get_at(arena, 64, 64);
    assert_int_equal(sy_vmem_resize(arena, 64, 64, 100), 0);
    assert_int_equal(sy_vmem_free(arena, 64, 64), -1);
    expect_fault(SY_FAULT_SEGMENT_SIZE, 64, 64, 112);
    give(arena, 64, 100);
    end(arena);
}

/* ---- contains, size, walk, statistics ---- */

static void an_arena_contains_its_spans_and_nothing_else(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    assert_int_equal(sy_vmem_contains(arena, 100, 100), 1);
    assert_int_equal(sy_vmem_contains(arena, 150, 1), 1);
    assert_int_equal(sy_vmem_contains(arena, 99, 1), 0);
    assert_int_equal(sy_vmem_contains(arena, 99, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 200, 1), 0);
    assert_int_equal(sy_vmem_contains(arena, 199, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 100, SIZE_MAX), 0);
    assert_int_equal(sy_vmem_contains(arena, 0, SIZE_MAX), 0);
    end(arena);
}

static void neighbouring_spans_contain_what_lies_in_both(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 100});
    assert_int_equal(sy_vmem_add(arena, 200, 50), 0);
    assert_int_equal(sy_vmem_add(arena, 251, 50), 0);
    assert_int_equal(sy_vmem_contains(arena, 100, 150), 1);
    assert_int_equal(sy_vmem_contains(arena, 199, 2), 1);
    assert_int_equal(sy_vmem_contains(arena, 199, 52), 0);
    assert_int_equal(sy_vmem_contains(arena, 251, 50), 1);
    end(arena);
}

/* What would go past the end of the integers does not begin again at 0. */
static void what_an_arena_contains_does_not_wrap(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){.base = UINTPTR_MAX - 9, .size = 10});
    assert_int_equal(sy_vmem_add(arena, 0, 10), 0);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX - 9, 10), 1);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX, 1), 1);
    assert_int_equal(sy_vmem_contains(arena, UINTPTR_MAX, 2), 0);
    assert_int_equal(sy_vmem_contains(arena, 5, SIZE_MAX), 0);
    end(arena);
}

static void sizes_are_of_what_is_asked(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(100);
    get_at(arena, 20, 30);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 30);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 70);
    assert_int_equal(sy_vmem_size(arena, BOTH), 100);
    give(arena, 20, 30);
    end(arena);
}

static sy_vmem *make_varied(void) {
    sy_vmem *arena = make((sy_vmem_config){.base = 100, .size = 10});
    assert_int_equal(sy_vmem_add(arena, 110, 10), 0);
    assert_int_equal(sy_vmem_add(arena, 0, 5), 0);
    get_at(arena, 103, 4);
    get_at(arena, 110, 10);
    return arena;
}

static void end_varied(sy_vmem *arena) {
    give(arena, 103, 4);
    give(arena, 110, 10);
    end(arena);
}

static void a_walk_shows_all_in_order_of_value(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    SHOWS(arena, ALL, {SY_VMEM_SPANS, 0, 5}, {SY_VMEM_FREE, 0, 5}, {SY_VMEM_SPANS, 100, 10},
          {SY_VMEM_FREE, 100, 3}, {SY_VMEM_ALLOCATED, 103, 4}, {SY_VMEM_FREE, 107, 3},
          {SY_VMEM_SPANS, 110, 10}, {SY_VMEM_ALLOCATED, 110, 10});
    end_varied(arena);
}

static void a_walk_shows_what_it_was_asked_for(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    SHOWS(arena, SY_VMEM_SPANS, {SY_VMEM_SPANS, 0, 5}, {SY_VMEM_SPANS, 100, 10},
          {SY_VMEM_SPANS, 110, 10});
    SHOWS(arena, SY_VMEM_ALLOCATED, {SY_VMEM_ALLOCATED, 103, 4}, {SY_VMEM_ALLOCATED, 110, 10});
    SHOWS(arena, SY_VMEM_FREE, {SY_VMEM_FREE, 0, 5}, {SY_VMEM_FREE, 100, 3},
          {SY_VMEM_FREE, 107, 3});
    end_varied(arena);
}

static void a_walk_of_nothing_calls_nobody(void **state) {
    (void)state;
    sy_vmem *arena = make((sy_vmem_config){0});
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_walk(arena, ALL, note, &seen), 0);
    assert_int_equal(seen.count, 0);
    end(arena);
}

static void walk_refuses_what_it_does_not_know(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    static const unsigned unknown[] = {0, 8, 9, ~0u};
    view seen = {.count = 0};
    for (size_t i = 0; i < 4; i++) {
        errno = 0;
        assert_int_equal(sy_vmem_walk(arena, unknown[i], note, &seen), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(seen.count, 0);
    end(arena);
}

static int stop_at_allocated(void *arg, unsigned what, uintptr_t start, size_t size) {
    note(arg, what, start, size);
    return what == SY_VMEM_ALLOCATED ? 42 : 0;
}

static void a_visit_ends_the_walk(void **state) {
    (void)state;
    sy_vmem *arena = make_varied();
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_walk(arena, ALL, stop_at_allocated, &seen), 42);
    assert_int_equal(seen.count, 5);
    end_varied(arena);
}

typedef struct freeing_view {
    sy_vmem *arena;
    view seen;
} freeing_view;

/* Frees the segment visited, and takes it and more again as one. */
static int change_all(void *arg, unsigned what, uintptr_t start, size_t size) {
    freeing_view *it = arg;
    note(&it->seen, what, start, size);
    assert_int_equal(what, SY_VMEM_ALLOCATED);
    give(it->arena, start, size);
    if (it->seen.count < 5) return 0;
    uintptr_t all = get(it->arena, 50);
    assert_int_equal(all, 0);
    give(it->arena, all, 50);
    assert_int_equal(sy_vmem_add(it->arena, 100, 10), 0);
    return 0;
}

static void a_walk_shows_what_was_at_one_moment(void **state) {
    (void)state;
    freeing_view it = {.arena = make_plain(50)};
    for (uintptr_t i = 0; i < 5; i++) get_at(it.arena, i * 10, 10);
    assert_int_equal(sy_vmem_walk(it.arena, SY_VMEM_ALLOCATED, change_all, &it), 0);
    assert_int_equal(it.seen.count, 5);
    for (uintptr_t i = 0; i < 5; i++) assert_int_equal(it.seen.entries[i].start, i * 10);
    assert_int_equal(sy_vmem_size(it.arena, SY_VMEM_FREE), 60);
    end(it.arena);
}

static void statistics_count_everything(void **state) {
    (void)state;
    supply from = {.next = 1000};
    sy_vmem_config config = supplied(&from);
    config.size = 64;
    config.quantum = 4;
    sy_vmem *arena = make(config);
    uintptr_t a = get(arena, 10), b = get(arena, 64);
    from.refuses = true;
    not_given(arena, 100, ENOMEM);
    sy_vmem_stats stats = stats_of(arena);
    assert_string_equal(stats.name, "ports");
    assert_int_equal(stats.quantum, 4);
    assert_int_equal(stats.total, 128);
    assert_int_equal(stats.allocated, 76);
    assert_int_equal(stats.free, 52);
    assert_int_equal(stats.cached, 0);
    assert_int_equal(stats.imported, 64);
    assert_in_range(stats.largest_free, 52 - 52 / 8, 52);
    assert_int_equal(stats.spans, 2);
    assert_int_equal(stats.imported_spans, 1);
    assert_int_equal(stats.segments_allocated, 2);
    assert_int_equal(stats.segments_free, 1);
    assert_true(stats.buckets > 0 && stats.bytes > 0);
    assert_int_equal(stats.allocs, 2);
    assert_int_equal(stats.failures, 6);
    give(arena, a, 10);
    give(arena, b, 64);
    stats = stats_of(arena);
    assert_int_equal(stats.frees, 2);
    assert_int_equal(stats.imports, 1);
    assert_int_equal(stats.releases, 1);
    assert_int_equal(stats.total, 64);
    assert_int_equal(stats.imported, 0);
    assert_int_equal(stats.spans, 1);
    end(arena);
}

static void statistics_need_a_place(void **state) {
    (void)state;
    sy_vmem *arena = make_plain(10);
    errno = 0;
    assert_int_equal(sy_vmem_get_stats(arena, NULL), -1);
    assert_int_equal(errno, EINVAL);
    end(arena);
}

static void the_largest_free_segment_is_known_to_an_eighth(void **state) {
    (void)state;
    for (size_t size = 1; size < SIZE_MAX / 3; size += 1 + size / 5) {
        sy_vmem *arena = make_plain(size);
        assert_in_range(stats_of(arena).largest_free, size - size / 8, size);
        end(arena);
    }
}

/* Segments of 1 to 8 quanta, of which every other one is freed and taken again, by fits that say
 * so: how many segments were looked at for an allocation, and for a free, times 100. */
static void work_per_operation(size_t count, uint64_t *probes, uint64_t *steps) {
    uintptr_t *values = malloc(count * sizeof *values);
    sy_vmem *arena = make_plain(count * 16);
    for (size_t i = 0; i < count; i++) values[i] = get(arena, 1 + i % 8);
    sy_vmem_stats before = stats_of(arena);
    for (size_t i = 0; i < count; i += 2) give(arena, values[i], 1 + i % 8);
    for (size_t i = 0; i < count; i += 2) values[i] = get(arena, 1 + i % 8);
    sy_vmem_stats after = stats_of(arena);
    *probes = (after.probes - before.probes) * 100 / (after.allocs - before.allocs);
    *steps = (after.steps - before.steps) * 100 / (after.frees - before.frees);
    for (size_t i = 0; i < count; i++) give(arena, values[i], 1 + i % 8);
    end(arena);
    free(values);
}

static void operations_take_no_longer_among_many(void **state) {
    (void)state;
    uint64_t probes, steps, probes_many, steps_many;
    work_per_operation(100, &probes, &steps);
    work_per_operation(100000, &probes_many, &steps_many);
    assert_true(probes_many <= probes * 2 + 100);
    assert_true(steps_many <= 400); /* a table that is never loaded more than its buckets */
}

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

/* Whatever the constraints are, where nothing bounds the value one import is enough. */
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

/* min and max lie elsewhere: one span is imported, released at once, and that is all. */
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

/* Halves and quarters of each span, freed in turn: each goes once, when its last piece does. */
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

/* Imported spans that touch are still two. */
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

/* An id comes back only when all others had their turn, whatever spans come and go. */
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

/* The functions use the arena that they are called for. */
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

/* From allocations, frees, quantum caches that are filled and drained, and destruction. */
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

/* What the source has first is no multiple of the quantum here. */
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

/* What the caches hold keeps spans from their source, which has nothing else. */
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

/* ---- quantum caches ---- */

static sy_vmem *make_cached(size_t size) {
    return make((sy_vmem_config){.name = "ports", .size = size, .cached_max = 4});
}

static void a_cached_value_comes_back(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    for (size_t size = 1; size <= 4; size++) {
        uintptr_t value = get(arena, size);
        give(arena, value, size);
        assert_int_equal(get(arena, size), value);
        give(arena, value, size);
    }
    end(arena);
}

static void cached_values_are_given_once(void **state) {
    (void)state;
    enum { COUNT = 500 };
    sy_vmem *arena = make_cached(COUNT * 2);
    bool out[COUNT * 2] = {false};
    for (size_t i = 0; i < COUNT; i++) {
        uintptr_t value = get(arena, 2);
        assert_false(out[value] || out[value + 1]);
        out[value] = out[value + 1] = true;
    }
    not_given(arena, 2, ENOMEM);
    for (uintptr_t i = 0; i < COUNT; i++) give(arena, i * 2, 2);
    end(arena);
}

/* A value may be 0 in a cache too. */
static void zero_is_cached_like_any_other(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(arena, 1), 0);
        not_given(arena, 1, ENOMEM);
        give(arena, 0, 1);
    }
    end(arena);
}

static void what_waits_in_caches_is_counted_apart(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t a = get(arena, 3), b = get(arena, 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 6);
    assert_int_equal(stats_of(arena).allocated, 6);
    give(arena, a, 3);
    sy_vmem_stats stats = stats_of(arena);
    assert_int_equal(stats.allocated, 3);
    assert_true(stats.cached >= 3);
    assert_int_equal(stats.total, 1000);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), stats.free);
    assert_int_equal(sy_vmem_size(arena, BOTH), 1000);
    give(arena, b, 3);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
    end(arena);
}

static void draining_gives_all_back(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    give(arena, get(arena, 1), 1);
    give(arena, get(arena, 4), 4);
    assert_true(stats_of(arena).cached >= 5);
    sy_vmem_drain(arena);
    assert_int_equal(stats_of(arena).cached, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    assert_int_equal(stats_of(arena).segments_free, 1);
    end(arena);
}

static void caches_are_drained_before_there_is_no_room(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(64);
    for (int fit = SY_VMEM_INSTANT; fit <= SY_VMEM_NEXT; fit++) {
        give(arena, get(arena, 1), 1);
        uintptr_t value = get_by(arena, 64, (sy_vmem_fit)fit);
        give(arena, value, 64);
        give(arena, get(arena, 1), 1);
        assert_int_equal(get_with(arena, 64, (sy_vmem_constraints){.align = 64}), 0);
        give(arena, 0, 64);
        give(arena, get(arena, 1), 1); /* one cache is drained for another */
        for (uintptr_t i = 0; i < 16; i++) get(arena, 4);
        for (uintptr_t i = 0; i < 16; i++) give(arena, i * 4, 4);
    }
    end(arena);
}

/* Other fits and sizes do not come from caches: what waits in them is passed over. */
static void only_instant_fit_is_served_from_caches(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 4);
    sy_vmem_stats before = stats_of(arena);
    uintptr_t a = get_by(arena, 4, SY_VMEM_BEST), b = get_by(arena, 4, SY_VMEM_NEXT);
    uintptr_t c = get_with(arena, 4, (sy_vmem_constraints){.align = 4});
    sy_vmem_stats after = stats_of(arena);
    assert_int_equal(after.allocs, before.allocs + 3);
    assert_int_equal(after.cached, before.cached);
    assert_int_equal(sy_vmem_xfree(arena, a, 4), 0);
    assert_int_equal(sy_vmem_xfree(arena, b, 4), 0);
    assert_int_equal(sy_vmem_xfree(arena, c, 4), 0);
    assert_int_equal(stats_of(arena).cached, before.cached);
    give(arena, value, 4);
    end(arena);
}

static void a_wrong_free_to_a_cache_is_told_when_it_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 9);
    assert_int_equal(sy_vmem_free(arena, 999, 4), 0);
    assert_int_equal(faults, 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    assert_int_equal(sy_vmem_free(arena, value, 2), 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_SEGMENT_SIZE, value, 2, 9);
    sy_vmem_drain(arena);
    assert_int_equal(faults, 0);
    give(arena, value, 9);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

static void a_wrong_xfree_of_a_cached_size_is_told_at_once(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    errno = 0;
    assert_int_equal(sy_vmem_xfree(arena, 999, 4), -1);
    assert_int_equal(errno, EINVAL);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    end(arena);
}

static void the_handler_may_use_an_arena_that_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = used_by_handler = make_cached(1000);
    sy_set_fault_handler(use_the_arena);
    assert_int_equal(sy_vmem_free(arena, 999, 4), 0);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, 999, 4, 0);
    end(arena);
}

static void a_wrong_free_does_not_keep_the_others_of_its_magazine(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t values[20];
    for (size_t i = 0; i < 20; i++) values[i] = get(arena, 4);
    for (size_t i = 0; i < 20; i++) {
        give(arena, values[i], 4);
        if (i % 2) assert_int_equal(sy_vmem_free(arena, 900 + i, 4), 0);
    }
    sy_vmem_drain(arena);
    assert_true(faults > 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

/* The size that a segment has when it is freed says which cache it goes to. */
static void what_was_resized_is_cached_as_what_it_is(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    get_at(arena, 500, 20);
    assert_int_equal(sy_vmem_resize(arena, 500, 20, 2), 0);
    give(arena, 500, 2);
    assert_int_equal(get(arena, 2), 500);
    assert_int_equal(sy_vmem_resize(arena, 500, 2, 30), 0);
    give(arena, 500, 30);
    sy_vmem_drain(arena);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    assert_int_equal(faults, 0);
    end(arena);
}

static void a_double_free_to_a_cache_is_told_when_it_is_drained(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 2);
    give(arena, value, 2);
    give(arena, value, 2);
    sy_vmem_drain(arena);
    expect_fault(SY_FAULT_NOT_ALLOCATED, value, 2, 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_FREE), 1000);
    end(arena);
}

static void what_is_cached_does_not_keep_an_arena(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t values[200];
    for (size_t i = 0; i < 200; i++) values[i] = get(arena, 1 + i % 4);
    for (size_t i = 0; i < 200; i++) give(arena, values[i], 1 + i % 4);
    assert_true(stats_of(arena).cached > 0);
    end(arena);
}

static void an_arena_with_caches_is_busy_like_any_other(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(1000);
    uintptr_t value = get(arena, 1);
    errno = 0;
    assert_int_equal(sy_vmem_destroy(arena), -1);
    assert_int_equal(errno, EBUSY);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 1);
    give(arena, value, 1);
    assert_int_equal(get(arena, 1), value); /* the cache goes on */
    give(arena, value, 1);
    sy_thread_flush();
    assert_int_equal(stats_of(arena).cached, 0);
    end(arena);
}

static void a_walk_drains_first(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(100);
    give(arena, get(arena, 2), 2);
    get_at(arena, 50, 3);
    SHOWS(arena, BOTH, {SY_VMEM_FREE, 0, 50}, {SY_VMEM_ALLOCATED, 50, 3}, {SY_VMEM_FREE, 53, 47});
    give(arena, 50, 3);
    end(arena);
}

static void *take_and_give(void *arg) {
    uintptr_t values[50];
    for (size_t i = 0; i < 50; i++) must(sy_vmem_alloc(arg, 2, SY_VMEM_INSTANT, &values[i]) == 0);
    for (size_t i = 0; i < 50; i++) must(sy_vmem_free(arg, values[i], 2) == 0);
    return NULL;
}

static void what_threads_leave_behind_can_be_had(void **state) {
    (void)state;
    sy_vmem *arena = make_cached(100);
    for (int i = 0; i < 3; i++) {
        in_thread(take_and_give, arena);
        assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
        assert_int_equal(get(arena, 100), 0);
        give(arena, 0, 100);
    }
    end(arena);
}

/* Magazines are filled by imports, and what they hold keeps spans until it is drained. */
static void caches_over_imports_give_every_span_back(void **state) {
    (void)state;
    supply from = {.next = 64, .gap = 8};
    sy_vmem_config config = supplied(&from);
    config.cached_max = 8;
    config.import_min = 256;
    sy_vmem *arena = make(config);
    uintptr_t values[300];
    for (size_t i = 0; i < 300; i++) values[i] = get(arena, 1 + i % 8);
    for (size_t i = 0; i < 300; i++) give(arena, values[i], 1 + i % 8);
    sy_vmem_drain(arena);
    nothing_is_out(&from);
    give(arena, get(arena, 1), 1);
    end(arena);
    nothing_is_out(&from);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_arena_of_zeroes_has_nothing),
        TEST(a_name_is_copied_and_cut),
        TEST(create_refuses_no_config),
        TEST(create_refuses_a_quantum_that_is_no_power_of_two),
        TEST(create_refuses_a_span_off_the_quantum),
        TEST(create_refuses_a_span_past_the_end),
        TEST(create_refuses_more_than_16_cached_sizes),
        TEST(create_refuses_one_function_without_the_other),
        TEST(create_refuses_an_import_size_without_imports),
        TEST(create_refuses_a_source_of_a_larger_quantum),
        TEST(create_refuses_what_is_reserved),
        TEST(create_fails_without_client_numbers),
        TEST(destroying_nothing_is_nothing),
        TEST(destroy_refuses_while_anything_is_allocated),
        TEST(arenas_are_destroyed_in_any_order),
        TEST(destroy_gives_all_memory_back),
        TEST(destroy_gives_imported_spans_back),
        TEST(add_refuses_what_is_no_span),
        TEST(add_refuses_what_is_there),
        TEST(add_refuses_what_an_import_brought),
        TEST(an_arena_holds_no_more_than_a_size_can_say),
        TEST(spans_that_touch_stay_two),
        TEST(zero_is_a_value),
        TEST(the_last_integer_is_a_value),
        TEST(sizes_are_rounded_to_the_quantum),
        TEST(alloc_refuses_no_size),
        TEST(alloc_refuses_sizes_that_overflow),
        TEST(what_is_too_large_is_no_room),
        TEST(alloc_refuses_an_unknown_fit),
        TEST(any_fit_finds_the_one_that_fits_exactly),
        TEST(best_fit_takes_the_smallest),
        TEST(next_fit_uses_every_id_before_it_repeats_one),
        TEST(next_fit_goes_around_what_is_in_use),
        TEST(next_fit_goes_on_in_the_next_span),
        TEST(next_fit_takes_larger_pieces_where_they_fit),
        TEST(next_fit_goes_on_from_a_place_that_others_had),
        TEST(contiguous_quanta_are_one_segment_however_they_were_freed),
        TEST(contiguous_quanta_among_others_can_be_had_together),
        TEST(either_function_frees_what_the_other_gave),
        TEST(freeing_what_is_not_allocated_is_told),
        TEST(freeing_with_another_size_is_told),
        TEST(the_handler_of_a_fault_may_use_the_arena),
        TEST(align_and_phase_are_kept),
        TEST(the_phase_may_lie_before_the_first_multiple),
        TEST(alignment_near_the_end_of_the_integers_does_not_wrap),
        TEST(nocross_tries_beyond_the_boundary),
        TEST(a_segment_may_touch_a_boundary_but_not_cross_it),
        TEST(min_and_max_bound_all_of_a_segment),
        TEST(max_0_is_the_end_of_the_integers),
        TEST(all_constraints_hold_together),
        TEST(best_fit_under_constraints_takes_the_smallest_that_has_a_place),
        TEST(xalloc_refuses_what_is_no_alignment),
        TEST(xalloc_refuses_what_no_value_satisfies),
        TEST(no_constraints_are_none),
        TEST(a_segment_grows_and_shrinks_where_it_is),
        TEST(a_segment_shrinks_before_another),
        TEST(a_segment_does_not_grow_beyond_what_is_free),
        TEST(resize_refuses_no_size_and_overflow),
        TEST(resize_tells_what_free_tells),
        TEST(what_was_resized_is_freed_with_its_new_size),
        TEST(an_arena_contains_its_spans_and_nothing_else),
        TEST(neighbouring_spans_contain_what_lies_in_both),
        TEST(what_an_arena_contains_does_not_wrap),
        TEST(sizes_are_of_what_is_asked),
        TEST(a_walk_shows_all_in_order_of_value),
        TEST(a_walk_shows_what_it_was_asked_for),
        TEST(a_walk_of_nothing_calls_nobody),
        TEST(walk_refuses_what_it_does_not_know),
        TEST(a_visit_ends_the_walk),
        TEST(a_walk_shows_what_was_at_one_moment),
        TEST(statistics_count_everything),
        TEST(statistics_need_a_place),
        TEST(the_largest_free_segment_is_known_to_an_eighth),
        TEST(operations_take_no_longer_among_many),
        TEST(a_span_is_imported_when_there_is_no_room),
        TEST(an_import_may_give_more),
        TEST(no_less_is_imported_than_was_said),
        TEST(a_failing_import_is_no_room),
        TEST(a_size_that_cannot_be_is_not_imported),
        TEST(an_import_is_large_enough_for_its_constraints),
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
        TEST(a_cached_value_comes_back),
        TEST(cached_values_are_given_once),
        TEST(zero_is_cached_like_any_other),
        TEST(what_waits_in_caches_is_counted_apart),
        TEST(draining_gives_all_back),
        TEST(caches_are_drained_before_there_is_no_room),
        TEST(only_instant_fit_is_served_from_caches),
        TEST(a_wrong_free_to_a_cache_is_told_when_it_is_drained),
        TEST(a_wrong_xfree_of_a_cached_size_is_told_at_once),
        TEST(the_handler_may_use_an_arena_that_is_drained),
        TEST(a_wrong_free_does_not_keep_the_others_of_its_magazine),
        TEST(what_was_resized_is_cached_as_what_it_is),
        TEST(a_double_free_to_a_cache_is_told_when_it_is_drained),
        TEST(what_is_cached_does_not_keep_an_arena),
        TEST(an_arena_with_caches_is_busy_like_any_other),
        TEST(a_walk_drains_first),
        TEST(what_threads_leave_behind_can_be_had),
        TEST(caches_over_imports_give_every_span_back),
    };
    return cmocka_run_group_tests_name("vmem", tests, NULL, NULL);
}
