/*
 * test_vmem_exhaustive.c: every sequence of up to six operations on an arena of 16 quanta, from
 * each of four sets of operations. A model, which has a bit for each quantum and tries every value,
 * says what is right.
 *
 * Each sequence starts with an empty arena, and with next fit at the front. If an operation has
 * nothing to work on, the sequence ends there, and longer sequences with this beginning are left
 * out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <slabyard/vmem.h>

#include "support/child.h"
#include "support/sanitized.h"

enum {
    QUANTA = 16,
    LENGTH = 6,
    LENGTH_SANITIZED = 5,
    LETTERS_MAX = 16,
    WALKED_EVERY = 64, /* one in so many sequences is compared by a walk, which is slow */
};

typedef enum verb { ALLOC, XALLOC, FREE, RESIZE } verb;

typedef struct letter {
    verb verb;
    sy_vmem_fit fit;
    size_t size;              /* RESIZE: the new size */
    sy_vmem_constraints with; /* XALLOC */
    unsigned which;           /* FREE, RESIZE: which live segment; 0 is the oldest */
} letter;

typedef struct alphabet {
    uintptr_t base;
    const letter *letters;
    size_t count;
} alphabet;

/* A live segment. `start` is counted from the base. */
typedef struct live {
    unsigned start, size;
} live;

static sy_vmem *arena;
static uintptr_t base;
static unsigned used, rotor; /* a bit for each quantum; where next fit begins */
static live all[LENGTH];     /* oldest first */
static size_t live_count;

static unsigned mask_of(unsigned start, size_t size) { return ((1u << size) - 1) << start; }

static bool satisfies(const letter *it, unsigned start) {
    uintptr_t first = base + start, last = first + (it->size - 1);
    const sy_vmem_constraints *with = &it->with;
    if (start + it->size > QUANTA || used & mask_of(start, it->size)) return false;
    if (it->verb == ALLOC) return true;
    if (with->align && (first - with->phase) % with->align != 0) return false;
    if (first < with->min || (with->max && last >= with->max)) return false;
    for (uintptr_t at = first + 1; with->nocross && at != last + 1; at++)
        if (at % with->nocross == 0) return false;
    return true;
}

/* The size of the free segment around a free quantum. */
static unsigned gap_around(unsigned at) {
    unsigned start = at, end = at;
    while (start > 0 && !(used & mask_of(start - 1, 1))) start--;
    while (end < QUANTA && !(used & mask_of(end, 1))) end++;
    return end - start;
}

static bool is_right(const letter *it, unsigned start) {
    if (!satisfies(it, start)) return false;
    unsigned first = QUANTA, next = QUANTA;
    for (unsigned at = QUANTA; at-- > 0;) {
        if (!satisfies(it, at)) continue;
        if (it->fit == SY_VMEM_BEST && gap_around(at) < gap_around(start)) return false;
        first = at;
        if (at >= rotor) next = at;
    }
    if (it->fit != SY_VMEM_NEXT) return true;
    return start == (next < QUANTA ? next : first);
}

static bool has_place(const letter *it) {
    for (unsigned at = 0; at < QUANTA; at++)
        if (satisfies(it, at)) return true;
    return false;
}

static void take(const letter *it) {
    uintptr_t value = 0;
    int result = it->verb == ALLOC ? sy_vmem_alloc(arena, it->size, it->fit, &value)
                                   : sy_vmem_xalloc(arena, it->size, &it->with, it->fit, &value);
    if (result != 0) {
        must(errno == ENOMEM);
        must(!has_place(it));
        return;
    }
    must(value - base < QUANTA);
    unsigned start = (unsigned)(value - base);
    must(is_right(it, start));
    used |= mask_of(start, it->size);
    all[live_count++] = (live){start, (unsigned)it->size};
    if (it->fit == SY_VMEM_NEXT) rotor = (start + (unsigned)it->size) % QUANTA;
}

static void give(size_t which) {
    live it = all[which];
    must(sy_vmem_free(arena, base + it.start, it.size) == 0);
    used &= ~mask_of(it.start, it.size);
    live_count--;
    for (size_t i = which; i < live_count; i++) all[i] = all[i + 1];
}

static void resize(const letter *to) {
    live *it = &all[to->which];
    unsigned others = used & ~mask_of(it->start, it->size);
    bool fits = it->start + to->size <= QUANTA && !(others & mask_of(it->start, to->size));
    int result = sy_vmem_resize(arena, base + it->start, it->size, to->size);
    must((result == 0) == fits);
    if (result != 0) must(errno == ENOMEM);
    if (result != 0) return;
    it->size = (unsigned)to->size;
    used = others | mask_of(it->start, it->size);
}

/* Does the operation. False: it has nothing to work on. */
static bool act(const letter *it) {
    bool needs_one = it->verb == FREE || it->verb == RESIZE;
    if (needs_one && it->which >= live_count) return false;
    if (it->verb == FREE)
        give(it->which);
    else if (it->verb == RESIZE)
        resize(it);
    else
        take(it);
    must(sy_vmem_size(arena, SY_VMEM_ALLOCATED) == (size_t)__builtin_popcount(used));
    return true;
}

static int compare_segment(void *arg, unsigned what, uintptr_t start, size_t size) {
    unsigned *seen = arg, mask = mask_of((unsigned)(start - base), size);
    bool is_used = what == SY_VMEM_ALLOCATED;
    must((used & mask) == (is_used ? mask : 0));
    must(is_used || gap_around((unsigned)(start - base)) == size);
    *seen |= mask;
    return 0;
}

static void check_all(bool walked) {
    unsigned seen = 0;
    must(sy_vmem_verify(arena) == 0);
    if (!walked) return;
    must(sy_vmem_each(arena, SY_VMEM_ALLOCATED | SY_VMEM_FREE, compare_segment, &seen) == 0);
    must(seen == mask_of(0, QUANTA));
}

/* Empties the arena, and makes next fit begin at the front. */
static void start_over(void) {
    uintptr_t value;
    while (live_count) give(live_count - 1);
    must(sy_vmem_alloc(arena, QUANTA, SY_VMEM_NEXT, &value) == 0 && value == base);
    must(sy_vmem_free(arena, value, QUANTA) == 0);
    rotor = 0;
}

/* Returns how many operations of the sequence were done. */
static size_t run(const alphabet *it, const size_t *sequence, size_t length, bool walked) {
    size_t done = 0;
    while (done < length && act(&it->letters[sequence[done]])) done++;
    check_all(walked);
    start_over();
    return done;
}

/* Makes the next sequence that differs in its first `significant` letters. False: there is none. */
static bool advance(size_t *sequence, size_t length, size_t significant, size_t letters) {
    for (size_t i = significant; i < length; i++) sequence[i] = 0;
    for (size_t i = significant; i-- > 0; sequence[i] = 0)
        if (++sequence[i] < letters) return true;
    return false;
}

static void run_all(const alphabet *it) {
    size_t length = SANITIZED ? LENGTH_SANITIZED : LENGTH, sequence[LENGTH] = {0}, done, runs = 0;
    base = it->base;
    sy_vmem_config config = {.name = "sixteen", .base = base, .size = QUANTA};
    arena = sy_vmem_create(&config);
    assert_non_null(arena);
    do {
        done = run(it, sequence, length, ++runs % WALKED_EVERY == 0);
        if (done < length) done++;
    } while (advance(sequence, length, done, it->count));
    assert_int_equal(sy_vmem_destroy(arena), 0);
    assert_true(runs > 1000);
}

#define ALPHABET(base_, letters_) \
    (&(alphabet){base_, letters_, sizeof(letters_) / sizeof *(letters_)})

static void instant_and_best_fit(void **state) {
    static const letter letters[] = {
        {.verb = ALLOC, .size = 1},
        {.verb = ALLOC, .size = 3},
        {.verb = ALLOC, .size = 8},
        {.verb = ALLOC, .size = 16},
        {.verb = ALLOC, .size = 1, .fit = SY_VMEM_BEST},
        {.verb = ALLOC, .size = 2, .fit = SY_VMEM_BEST},
        {.verb = ALLOC, .size = 5, .fit = SY_VMEM_BEST},
        {.verb = FREE, .which = 0},
        {.verb = FREE, .which = 1},
        {.verb = FREE, .which = 2},
    };
    (void)state;
    run_all(ALPHABET(0, letters));
}

static void next_fit(void **state) {
    static const letter letters[] = {
        {.verb = ALLOC, .size = 1, .fit = SY_VMEM_NEXT},
        {.verb = ALLOC, .size = 3, .fit = SY_VMEM_NEXT},
        {.verb = ALLOC, .size = 5, .fit = SY_VMEM_NEXT},
        {.verb = ALLOC, .size = 8, .fit = SY_VMEM_NEXT},
        {.verb = XALLOC, .size = 2, .fit = SY_VMEM_NEXT, .with = {.align = 4}},
        {.verb = ALLOC, .size = 2},
        {.verb = RESIZE, .size = 4, .which = 0},
        {.verb = FREE, .which = 0},
        {.verb = FREE, .which = 1},
        {.verb = FREE, .which = 2},
    };
    (void)state;
    run_all(ALPHABET(64, letters));
}

static void constraints(void **state) {
    static const letter letters[] = {
        {.verb = XALLOC, .size = 2, .with = {.align = 4, .phase = 2}},
        {.verb = XALLOC, .size = 3, .with = {.nocross = 4}, .fit = SY_VMEM_BEST},
        {.verb = XALLOC, .size = 3, .with = {.min = 101, .max = 107}, .fit = SY_VMEM_NEXT},
        {.verb = XALLOC, .size = 4, .with = {.align = 2, .nocross = 8, .min = 99}},
        {.verb = XALLOC, .size = 5, .with = {.align = 4, .phase = 3, .nocross = 8, .max = 110}},
        {.verb = XALLOC, .size = 1, .with = {.align = 8, .phase = 7}, .fit = SY_VMEM_BEST},
        {.verb = ALLOC, .size = 1},
        {.verb = FREE, .which = 0},
        {.verb = FREE, .which = 1},
        {.verb = FREE, .which = 2},
    };
    (void)state;
    run_all(ALPHABET(96, letters));
}

/* An arena at the end of the integers. */
static void resizing(void **state) {
    static const letter letters[] = {
        {.verb = ALLOC, .size = 1},
        {.verb = ALLOC, .size = 4, .fit = SY_VMEM_BEST},
        {.verb = ALLOC, .size = 5, .fit = SY_VMEM_NEXT},
        {.verb = RESIZE, .size = 1, .which = 0},
        {.verb = RESIZE, .size = 6, .which = 0},
        {.verb = RESIZE, .size = 2, .which = 1},
        {.verb = RESIZE, .size = 8, .which = 1},
        {.verb = FREE, .which = 0},
        {.verb = FREE, .which = 1},
    };
    (void)state;
    run_all(ALPHABET((uintptr_t)0 - QUANTA, letters));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instant_and_best_fit),
        cmocka_unit_test(next_fit),
        cmocka_unit_test(constraints),
        cmocka_unit_test(resizing),
    };
    return cmocka_run_group_tests_name("vmem_exhaustive", tests, NULL, NULL);
}
