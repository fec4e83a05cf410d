/*
 * test_vmem_failures.c: the life of an arena. For each n it runs with the n-th call to the system
 * failing, with all calls failing from the n-th on until the phase is over, and with the n-th
 * import failing. A function that fails sets ENOMEM, and what was there before is there after it.
 * Frees never fail. When the arena is gone, nothing is left of it.
 *
 * Each run is a child of a process that has not used the library, so each run starts the library
 * anew.
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
#include "support/child.h"

enum {
    SEGMENTS = 1500, /* more than the first table has buckets, in several blocks of tags */
    SPANS = 6,       /* that are added; only one if the arena imports */
    SPAN = 3000,
    SUPPLIED = 2 * SEGMENTS, /* spans that the function import() gives at most */
    IMPORT_MIN = 128,
};

static const uintptr_t BASE = 1 << 20, SOURCE_BASE = 1 << 28;

typedef enum kind { PLAIN, BY_FUNCTIONS, FROM_AN_ARENA, KINDS } kind;

/* ---- the state, and what must hold ---- */

static sy_vmem *arena, *source;
static kind arena_kind;

static struct {
    uintptr_t value;
    size_t size; /* 0: not allocated */
} segments[SEGMENTS];

static size_t live_units, added_spans;

/* Spans that import() gave. */
static struct {
    uintptr_t start;
    size_t size; /* 0: released */
} supplied[SUPPLIED];

static size_t supplied_count, supplied_units;
static uint64_t imports, import_failures, failing_import; /* the n-th, or 0 for none */

static bool something_has_failed(void) {
    return sy_fake_failures(SY_FAKE_ANY) > 0 || import_failures > 0;
}

static void all_is_well(void) {
    sy_vmem_stats stats;
    if (source) must(sy_vmem_verify(source) == 0);
    if (!arena) return;
    must(sy_vmem_verify(arena) == 0);
    must(sy_vmem_size(arena, SY_VMEM_ALLOCATED) == live_units);
    must(sy_vmem_get_stats(arena, &stats) == 0);
    must(stats.total == stats.allocated + stats.cached + stats.free);
    must(stats.spans - stats.imported_spans == added_spans);
    must(stats.total - stats.imported == added_spans * SPAN);
    if (arena_kind == BY_FUNCTIONS) must(stats.imported == supplied_units);
    if (source) must(stats.imported == sy_vmem_size(source, SY_VMEM_ALLOCATED));
}

/* A function has failed, for a reason that the test caused. */
static void has_failed(void) {
    must(errno == ENOMEM);
    must(something_has_failed());
    all_is_well();
    errno = 0;
}

/* ---- imports ---- */

static int import(sy_vmem *from, void *arg, size_t size, uintptr_t *start, size_t *got) {
    (void)arg;
    must(from == NULL && *got == size && supplied_count < SUPPLIED);
    if (++imports == failing_import) {
        import_failures++;
        errno = EIO;
        return -1;
    }
    *start = SOURCE_BASE + supplied_count * (IMPORT_MIN + SPAN);
    supplied[supplied_count].start = *start;
    supplied[supplied_count++].size = size;
    supplied_units += size;
    return 0;
}

static void release(sy_vmem *from, void *arg, uintptr_t start, size_t size) {
    size_t i = (start - SOURCE_BASE) / (IMPORT_MIN + SPAN);
    (void)arg;
    must(from == NULL && i < supplied_count);
    must(supplied[i].start == start && supplied[i].size == size && size != 0);
    supplied[i].size = 0;
    supplied_units -= size;
}

/* ---- phases ---- */

static sy_vmem *create(const sy_vmem_config *config) {
    sy_vmem *created;
    while (!(created = sy_vmem_create(config))) {
        has_failed();
        sy_fake_succeed(SY_FAKE_ANY);
    }
    return created;
}

static void create_all(void) {
    sy_vmem_config config = {.name = "failures"};
    if (arena_kind == BY_FUNCTIONS) {
        config.import = import;
        config.release = release;
    }
    if (arena_kind == FROM_AN_ARENA) {
        source = create(&(sy_vmem_config){.base = SOURCE_BASE, .size = 1 << 20});
        config.source = source;
        config.cached_max = 4;
    }
    if (arena_kind != PLAIN) config.import_min = IMPORT_MIN;
    arena = create(&config);
}

static void add_spans(void) {
    for (size_t i = 0; i < (arena_kind == PLAIN ? SPANS : 1); i++) {
        uintptr_t start = BASE + i * 2 * SPAN;
        if (sy_vmem_contains(arena, start, SPAN)) continue;
        if (sy_vmem_add(arena, start, SPAN) == 0)
            added_spans++;
        else
            has_failed();
    }
}

static bool allocate(size_t i, size_t size) {
    uintptr_t *value = &segments[i].value;
    sy_vmem_constraints aligned = {.align = 16, .nocross = 64};
    if (i % 16 == 0) return sy_vmem_alloc(arena, size, SY_VMEM_BEST, value) == 0;
    if (i % 16 == 1) return sy_vmem_xalloc(arena, size, &aligned, SY_VMEM_INSTANT, value) == 0;
    return sy_vmem_alloc(arena, size, SY_VMEM_INSTANT, value) == 0;
}

/* An arena without imports can also run out of free units. */
static bool is_full(size_t size) {
    return arena_kind == PLAIN && sy_vmem_size(arena, SY_VMEM_FREE) < 40 * size;
}

static void fill(void) {
    for (size_t i = 0; i < SEGMENTS; i++) {
        size_t size = 1 + i % 9;
        if (segments[i].size) continue;
        if (is_full(size)) return;
        if (allocate(i, size)) {
            segments[i].size = size;
            live_units += size;
        } else {
            has_failed();
        }
    }
}

static void free_one(size_t i) {
    if (!segments[i].size) return;
    must(sy_vmem_free(arena, segments[i].value, segments[i].size) == 0);
    live_units -= segments[i].size;
    segments[i].size = 0;
}

static void thin_out(void) {
    for (size_t i = 0; i < SEGMENTS; i++)
        if (i % 50) free_one(i);
}

static void empty(void) {
    for (size_t i = 0; i < SEGMENTS; i++) free_one(i);
}

/* Shrinks each segment of 5 or more units to its half. The freed half mostly needs a tag. */
static void shrink(void) {
    for (size_t i = 0; i < SEGMENTS; i++) {
        size_t size = segments[i].size, half = size / 2;
        if (size < 5) continue;
        if (sy_vmem_resize(arena, segments[i].value, size, half) == 0) {
            segments[i].size = half;
            live_units -= size - half;
        } else {
            has_failed();
        }
    }
}

static int visit(void *arg, unsigned what, uintptr_t start, size_t size) {
    size_t *counts = arg;
    (void)start;
    (void)size;
    counts[what]++;
    return 0;
}

static void walk(void) {
    size_t counts[SY_VMEM_SPANS + 1] = {0};
    unsigned all = SY_VMEM_SPANS | SY_VMEM_ALLOCATED | SY_VMEM_FREE;
    if (sy_vmem_each(arena, all, visit, counts) != 0) {
        must(counts[SY_VMEM_SPANS] == 0);
        has_failed();
        return;
    }
    sy_vmem_stats stats;
    sy_vmem_get_stats(arena, &stats);
    must(counts[SY_VMEM_SPANS] == stats.spans);
    must(counts[SY_VMEM_FREE] == stats.segments_free);
    must(counts[SY_VMEM_ALLOCATED] == stats.segments_allocated);
}

static void drain(void) { sy_vmem_drain(arena); }

typedef void phase(void);

static phase *const history[] = {create_all, add_spans, fill,     walk, thin_out, add_spans, fill,
                                 shrink,     walk,      thin_out, fill, drain,    empty,     walk};

static void destroy_all(void) {
    must(sy_vmem_destroy(arena) == 0);
    must(supplied_units == 0);
    if (source) must(sy_vmem_size(source, SY_VMEM_ALLOCATED) == 0);
    must(sy_vmem_destroy(source) == 0);
}

/* ---- runs ---- */

typedef enum way { NTH, FROM_NTH, NTH_IMPORT } way;

typedef struct run {
    kind kind;
    way way;
    uint64_t n;
} run;

static void give_script(const run *it) {
    if (it->way == NTH) sy_fake_fail_nth(SY_FAKE_ANY, it->n);
    if (it->way == FROM_NTH) sy_fake_fail_from(SY_FAKE_ANY, it->n);
    if (it->way == NTH_IMPORT) failing_import = it->n;
}

/* The child ends with 1 if nothing failed because there are fewer calls. */
static void live_through(void *arg) {
    const run *it = arg;
    must(sy_vmem_destroy(sy_vmem_create(&(sy_vmem_config){.size = 1})) == 0);
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    arena_kind = it->kind;
    give_script(it);
    for (size_t i = 0; i < sizeof history / sizeof *history; i++) {
        errno = 0;
        history[i]();
        if (sy_fake_failures(SY_FAKE_ANY) > 0) sy_fake_succeed(SY_FAKE_ANY);
        all_is_well();
    }
    bool failed = something_has_failed(), stuck = sy_fake_failures(SY_FAKE_RELEASE) > 0;
    sy_fake_reset();
    destroy_all();
    /* The magazines of quantum caches stay, for others to use. */
    bool exact = !stuck && it->kind != FROM_AN_ARENA;
    if (exact) must(sy_fake_reserved() == reserved && sy_fake_committed() == committed);
    if (!failed) _exit(1);
}

/* Runs `body` for each n. Returns how many calls there are to fail. */
static uint64_t run_all(kind of, way failing, void (*body)(void *)) {
    run it = {.kind = of, .way = failing, .n = 1};
    int status;
    while ((status = in_child(body, &it)) == 0) it.n++;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        print_error("kind %d, call %llu failing\n", (int)of, (unsigned long long)it.n);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    return it.n - 1;
}

static void any_one_call_may_fail(void **state) {
    (void)state;
    for (kind of = PLAIN; of < KINDS; of++) assert_true(run_all(of, NTH, live_through) > 20);
}

static void all_calls_may_fail_for_a_while(void **state) {
    (void)state;
    for (kind of = PLAIN; of < KINDS; of++) assert_true(run_all(of, FROM_NTH, live_through) > 20);
}

static void any_one_import_may_fail(void **state) {
    (void)state;
    assert_true(run_all(BY_FUNCTIONS, NTH_IMPORT, live_through) > 20);
}

/* The process's first arena, and the first allocation from a quantum cache. */
static void start(void *arg) {
    const run *it = arg;
    sy_vmem_config config = {.base = BASE, .size = SPAN, .cached_max = 8};
    uintptr_t value;
    sy_vmem *first;
    give_script(it);
    while (!(first = sy_vmem_create(&config))) {
        must(errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0);
        sy_fake_succeed(SY_FAKE_ANY);
    }
    while (sy_vmem_alloc(first, 3, SY_VMEM_INSTANT, &value) != 0) {
        must(errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0);
        must(sy_vmem_verify(first) == 0 && sy_vmem_size(first, SY_VMEM_ALLOCATED) == 0);
        sy_fake_succeed(SY_FAKE_ANY);
    }
    must(sy_vmem_size(first, SY_VMEM_ALLOCATED) == 3 && sy_vmem_verify(first) == 0);
    must(sy_vmem_free(first, value, 3) == 0);
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    must(sy_vmem_destroy(first) == 0);
    if (!failed) _exit(1);
}

static void any_call_may_fail_at_the_start(void **state) {
    (void)state;
    assert_true(run_all(PLAIN, NTH, start) > 5);
    assert_true(run_all(PLAIN, FROM_NTH, start) > 5);
}

/* An imported span is released at once if there are no tags for it. */
static void import_without_tags(void *arg) {
    uintptr_t value;
    (void)arg;
    arena_kind = BY_FUNCTIONS;
    create_all();
    must(sy_vmem_alloc(arena, IMPORT_MIN, SY_VMEM_INSTANT, &value) == 0);
    live_units += IMPORT_MIN;
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    while (sy_vmem_alloc(arena, IMPORT_MIN, SY_VMEM_INSTANT, &value) == 0) live_units += IMPORT_MIN;
    must(imports > 1);
    has_failed();
    must(supplied_units == live_units);
    sy_fake_reset();
    must(sy_vmem_alloc(arena, IMPORT_MIN, SY_VMEM_INSTANT, &value) == 0);
    live_units += IMPORT_MIN;
    for (size_t i = 0; i < supplied_count; i++)
        if (supplied[i].size) must(sy_vmem_free(arena, supplied[i].start, IMPORT_MIN) == 0);
    destroy_all();
}

static void an_import_needs_tags(void **state) {
    (void)state;
    assert_int_equal(in_child(import_without_tags, NULL), 0);
}

/* A free gives tags back, so that allocations succeed without memory from the system. */
static void live_on_what_there_is(void *arg) {
    (void)arg;
    arena_kind = PLAIN;
    create_all();
    add_spans();
    fill();
    size_t units = live_units;
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    sy_fake_fail_from(SY_FAKE_COMMIT, 1);
    for (size_t i = 0; i < SEGMENTS; i++) {
        size_t size = segments[i].size;
        if (!size) continue;
        free_one(i);
        must(allocate(i, size));
        segments[i].size = size;
        live_units += size;
    }
    must(live_units == units);
    all_is_well();
    empty();
    sy_fake_reset();
    destroy_all();
}

static void what_was_freed_can_be_allocated_without_memory(void **state) {
    (void)state;
    assert_int_equal(in_child(live_on_what_there_is, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_call_may_fail),
        cmocka_unit_test(all_calls_may_fail_for_a_while),
        cmocka_unit_test(any_one_import_may_fail),
        cmocka_unit_test(any_call_may_fail_at_the_start),
        cmocka_unit_test(an_import_needs_tags),
        cmocka_unit_test(what_was_freed_can_be_allocated_without_memory),
    };
    return cmocka_run_group_tests_name("vmem_failures", tests, NULL, NULL);
}
