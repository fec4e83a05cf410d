/*
 * arenas.h: functions for the tests of arenas: they create, use and destroy arenas and check each
 * result. Also: the result of a walk, faults that are caught, and functions to import from.
 */
#ifndef SLABYARD_TESTS_ARENAS_H
#define SLABYARD_TESTS_ARENAS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/fault.h>
#include <slabyard/vmem.h>

#include "os/fake.h"
#include "support/child.h"

static const unsigned BOTH = SY_VMEM_ALLOCATED | SY_VMEM_FREE;
static const unsigned ALL = SY_VMEM_ALLOCATED | SY_VMEM_FREE | SY_VMEM_SPANS;

static inline sy_vmem *make(sy_vmem_config config) {
    sy_vmem *arena = sy_vmem_create(&config);
    assert_non_null(arena);
    assert_int_equal(sy_vmem_verify(arena), 0);
    return arena;
}

/* [0, size) in units. */
static inline sy_vmem *make_plain(size_t size) { return make((sy_vmem_config){.size = size}); }

static inline void end(sy_vmem *arena) {
    assert_int_equal(sy_vmem_verify(arena), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

static inline uintptr_t get_by(sy_vmem *arena, size_t size, sy_vmem_fit fit) {
    uintptr_t value = 4711;
    assert_int_equal(sy_vmem_alloc(arena, size, fit, &value), 0);
    return value;
}

static inline uintptr_t get(sy_vmem *arena, size_t size) {
    return get_by(arena, size, SY_VMEM_INSTANT);
}

static inline uintptr_t get_with(sy_vmem *arena, size_t size, sy_vmem_constraints with) {
    uintptr_t value = 4711;
    assert_int_equal(sy_vmem_xalloc(arena, size, &with, SY_VMEM_INSTANT, &value), 0);
    return value;
}

/* The segment [value, value + size) and no other. */
static inline void get_at(sy_vmem *arena, uintptr_t value, size_t size) {
    sy_vmem_constraints there = {.min = value, .max = value + size};
    assert_int_equal(get_with(arena, size, there), value);
}

static inline void give(sy_vmem *arena, uintptr_t value, size_t size) {
    assert_int_equal(sy_vmem_free(arena, value, size), 0);
}

static inline sy_vmem_stats stats_of(const sy_vmem *arena) {
    sy_vmem_stats stats;
    assert_int_equal(sy_vmem_get_stats(arena, &stats), 0);
    assert_int_equal(stats.total, stats.allocated + stats.cached + stats.free);
    return stats;
}

static inline void not_created(sy_vmem_config config, int error) {
    errno = 0;
    assert_null(sy_vmem_create(&config));
    assert_int_equal(errno, error);
}

static inline void not_added(sy_vmem *arena, uintptr_t start, size_t size, int error) {
    size_t before = sy_vmem_size(arena, BOTH);
    errno = 0;
    assert_int_equal(sy_vmem_add(arena, start, size), -1);
    assert_int_equal(errno, error);
    assert_int_equal(sy_vmem_size(arena, BOTH), before);
}

/* Both alloc and xalloc refuse the request, with each fit; nothing is written, nothing changes. */
static inline void not_given(sy_vmem *arena, size_t size, int error) {
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

static inline void not_given_with(sy_vmem *arena, size_t size, sy_vmem_constraints with,
                                  int error) {
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

static inline void not_resized(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size,
                               int error) {
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

static inline int note(void *arg, unsigned what, uintptr_t start, size_t size) {
    view *seen = arg;
    assert_true(seen->count < ENTRIES_MAX);
    seen->entries[seen->count++] = (entry){what, start, size};
    return 0;
}

static inline void shows(const sy_vmem *arena, unsigned what, const entry *entries, size_t count) {
    view seen = {.count = 0};
    assert_int_equal(sy_vmem_each(arena, what, note, &seen), 0);
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

static inline void note_fault(const sy_fault *it) {
    fault = *it;
    strcpy(fault_name, it->cache);
    faults++;
}

/* There was one fault since the last check, and its report is complete. */
static inline void expect_fault(sy_fault_kind kind, uintptr_t value, size_t size,
                                size_t found_size) {
    assert_int_equal(faults, 1);
    assert_int_equal(fault.kind, kind);
    assert_int_equal((uintptr_t)fault.address, value);
    assert_int_equal(fault.object_size, size);
    assert_string_equal(fault_name, "ports");
    if (kind == SY_FAULT_SEGMENT_SIZE) assert_int_equal(fault.found_size, found_size);
    faults = 0;
}

static sy_vmem *used_by_handler;

static inline void use_the_arena(const sy_fault *it) {
    note_fault(it);
    uintptr_t value;
    must(sy_vmem_alloc(used_by_handler, 3, SY_VMEM_BEST, &value) == 0);
    must(sy_vmem_free(used_by_handler, value, 3) == 0);
    must(sy_vmem_verify(used_by_handler) == 0);
}

static inline int begin(void **state) {
    (void)state;
    sy_fake_reset();
    faults = 0;
    sy_set_fault_handler(note_fault);
    return 0;
}

/* ---- imports ---- */

enum { SUPPLIES_MAX = 64 };

/* The spans that an import function of the test returns, one after the other. */
typedef struct supply {
    uintptr_t next;
    size_t more; /* beyond what is asked for */
    size_t gap;  /* between spans */
    bool refuses;
    size_t asked; /* at the last call */
    size_t calls, count, released;
    entry spans[SUPPLIES_MAX]; /* what: 1 while it is given */
} supply;

static inline int import(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
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

static inline void release(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
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

static inline sy_vmem_config supplied(supply *from) {
    return (sy_vmem_config){.name = "ports", .import = import, .release = release, .arg = from};
}

static inline void nothing_is_out(const supply *from) {
    assert_int_equal(from->released, from->count);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

#endif
