/*
 * fuzz_vmem.c: runs random operations on an arena, and compares it with a model: the sorted spans
 * and the sorted allocated segments.
 *
 * An allocated segment must be free in the model, lie in one span and satisfy the constraints. With
 * best fit and next fit the model knows its exact place. An allocation may fail only if the model
 * has no place and the import gave no suitable span, or if the system failed. Spans are imported
 * from another arena, or by functions of this file, which return more than was requested or
 * nothing, as the input says.
 *
 * Segments in quantum caches are free in the model. So with quantum caches the choice of a place is
 * not checked. Everything else is checked after the caches are drained.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/fault.h>
#include <slabyard/vmem.h>

#include "fuzz.h"
#include "os/fake.h"

enum {
    SPANS_WANTED = 48, /* spans from which on this file makes no more; a source may */
    SPANS_MAX = 8192,
    LIVE_MAX = 2000,
    ENTRIES_MAX = 2 * LIVE_MAX + 3 * SPANS_MAX,
};

typedef struct segment {
    uintptr_t start;
    size_t size;
} segment;

typedef struct span {
    segment at;
    bool imported;
} span;

typedef struct allocated {
    segment at;
    size_t asked; /* before rounding */
} allocated;

/* A request: rounded, with a value for each constraint. */
typedef struct request {
    size_t size, align, phase, nocross; /* nocross 0: none */
    uintptr_t min, last;                /* of the units that may be given */
    sy_vmem_fit fit;
} request;

typedef enum imports { NO_IMPORT, BY_FUNCTIONS, FROM_AN_ARENA, IMPORTS } imports;

static struct model {
    sy_vmem *arena, *source;
    sy_vmem_config config;
    imports imports;
    bool exact; /* no segment is in a quantum cache */
    span spans[SPANS_MAX];
    allocated live[LIVE_MAX];
    size_t span_count, live_count, live_most, size_bits;
    uintptr_t rotor; /* next fit begins here */
    uint64_t random;
    uint64_t allocs, frees, failures, imported, released;
    bool troubled; /* the system has failed since the arena was made */
    bool stuck;    /* and address space that it did not take back stays reserved */

    /* Of the present operation. */
    const request *request; /* NULL: not an allocation */
    unsigned asked, given;  /* imports */
    uintptr_t given_at;     /* the last of them */
    uint64_t system_failures;
} model;

/* All of the source arena; no span of the arena's own lies there. */
static const segment SOURCE = {UINTPTR_MAX / 4 + 1, (size_t)1 << 20};

static uint64_t next_random(void) {
    uint64_t bits = model.random += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* 0 to count - 1. */
static size_t below(size_t count) { return (size_t)(next_random() % count); }

/* As often small as large. */
static size_t spread(size_t bits) { return (size_t)(next_random() >> (63 - below(bits))) >> 1; }

/* ---- the model ---- */

static uintptr_t last_of(segment it) { return it.start + (it.size - 1); }

static bool overlap(segment a, segment b) { return a.start <= last_of(b) && b.start <= last_of(a); }

static size_t quantum(void) { return model.config.quantum; }

static size_t round_up(size_t size) { return (size + (quantum() - 1)) & ~(quantum() - 1); }

/* The first allocated segment that begins at `value` or after. */
static size_t live_from(uintptr_t value) {
    size_t low = 0, high = model.live_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (model.live[middle].at.start < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_live(segment at, size_t asked) {
    size_t i = live_from(at.start);
    allocated *place = &model.live[i];
    memmove(place + 1, place, (model.live_count++ - i) * sizeof *place);
    *place = (allocated){at, asked};
}

static void remove_live(size_t i) {
    allocated *place = &model.live[i];
    memmove(place, place + 1, (--model.live_count - i) * sizeof *place);
}

static bool is_used(segment at) {
    size_t i = live_from(at.start);
    return i < model.live_count && model.live[i].at.start <= last_of(at);
}

/* The number of the first span that does not end before `value`. */
static size_t span_from(uintptr_t value) {
    size_t low = 0, high = model.span_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (last_of(model.spans[middle].at) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The number of the span that holds it; span_count: none. */
static size_t span_of(uintptr_t value) {
    size_t i = span_from(value);
    return i < model.span_count && model.spans[i].at.start <= value ? i : model.span_count;
}

static bool meets_a_span(segment at) {
    size_t i = span_from(at.start);
    return i < model.span_count && overlap(model.spans[i].at, at);
}

static void insert_span(segment at, bool imported) {
    fuzz_expect(model.span_count < SPANS_MAX && !meets_a_span(at), "a span is a new one");
    size_t i = span_from(at.start);
    memmove(&model.spans[i + 1], &model.spans[i], (model.span_count++ - i) * sizeof(span));
    model.spans[i] = (span){at, imported};
}

static void remove_span(size_t i) {
    model.span_count--;
    memmove(&model.spans[i], &model.spans[i + 1], (model.span_count - i) * sizeof(span));
}

static size_t total(bool imported_only) {
    size_t units = 0;
    for (size_t i = 0; i < model.span_count; i++)
        if (model.spans[i].imported || !imported_only) units += model.spans[i].at.size;
    return units;
}

/* ---- places ---- */

typedef struct cursor {
    size_t span, live, used; /* the span, units of it that are passed, segments that are passed */
} cursor;

/* The next free segment, in order of value. */
static bool next_gap(cursor *at, segment *gap) {
    for (; at->span < model.span_count; at->span++, at->used = 0) {
        segment whole = model.spans[at->span].at;
        while (at->used < whole.size) {
            uintptr_t from = whole.start + at->used;
            size_t room = whole.size - at->used;
            const allocated *next = &model.live[at->live];
            bool meets = at->live < model.live_count && next->at.start - from < room;
            if (meets) room = next->at.start - from;
            at->used += room + (meets ? next->at.size : 0);
            at->live += meets;
            *gap = (segment){from, room};
            if (room > 0) return true;
        }
    }
    return false;
}

static uintptr_t larger(uintptr_t a, uintptr_t b) { return a > b ? a : b; }

/* The least value not below `from` that satisfies the request in the units `start` to `last`. */
static bool place_in(uintptr_t start, uintptr_t last, const request *it, uintptr_t from,
                     uintptr_t *value) {
    uintptr_t low = larger(larger(start, from), it->min);
    if (last > it->last) last = it->last;
    for (;;) {
        uintptr_t at = low + ((it->phase - low) & (it->align - 1));
        if (at < low || at > last || last - at < it->size - 1) return false;
        *value = at;
        if (it->nocross == 0 || (at & (it->nocross - 1)) <= it->nocross - it->size) return true;
        low = (at | (it->nocross - 1)) + 1;
        if (low == 0) return false;
    }
}

typedef struct places {
    bool any, after_rotor;
    uintptr_t first, next; /* of all; of those after the rotor */
    size_t smallest;       /* the size of the smallest free segment with a place in it */
    segment chosen;        /* the free segment that holds the value asked about; size 0: none */
} places;

/* Where the request could be served, and what of that `value` is. */
static places look(const request *it, uintptr_t value) {
    places found = {.smallest = SIZE_MAX};
    cursor at = {0};
    segment gap;
    uintptr_t place;
    while (next_gap(&at, &gap)) {
        if (value - gap.start < gap.size) found.chosen = gap;
        if (gap.size < it->size) continue;
        if (!place_in(gap.start, last_of(gap), it, 0, &place)) continue;
        if (!found.any) found.first = place;
        found.any = true;
        if (gap.size < found.smallest) found.smallest = gap.size;
        if (!found.after_rotor && place_in(gap.start, last_of(gap), it, model.rotor, &place)) {
            found.after_rotor = true;
            found.next = place;
        }
    }
    if (!found.after_rotor) found.next = found.first;
    return found;
}

/* ---- imports ---- */

static size_t import_least(void) {
    size_t least = round_up(model.config.import_min);
    if (model.exact && model.request && model.request->size > least) least = model.request->size;
    return least > 0 ? least : quantum();
}

/* A random place, a place beside another span, or one at either end of the integers. */
static uintptr_t somewhere(size_t size) {
    uintptr_t unit = ~((uintptr_t)quantum() - 1);
    segment beside = model.span_count ? model.spans[below(model.span_count)].at : SOURCE;
    switch (below(8)) {
    case 0: return 0;
    case 1: return 0 - size;
    case 2: return beside.start - size;
    case 3:
    case 4: return beside.start + beside.size;
    case 5: return (uintptr_t)next_random() & unit;
    default: return (uintptr_t)spread(40) & unit;
    }
}

static bool is_possible(segment at) {
    return last_of(at) >= at.start && !meets_a_span(at) && model.span_count < SPANS_WANTED &&
           at.size <= SIZE_MAX - total(false);
}

/* Instant fit asks the source before it has looked at more than 64 free segments. */
static bool in_a_hurry(const request *it) {
    cursor at = {0};
    segment gap;
    size_t gaps = 0;
    while (next_gap(&at, &gap)) gaps++;
    return it->fit == SY_VMEM_INSTANT && gaps > 64;
}

static int import(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    fuzz_expect(arg == &model && source == NULL, "an import has its own argument");
    fuzz_expect(size % quantum() == 0 && size >= import_least(), "an import is large enough");
    fuzz_expect(*got == size, "what is got is at first what is asked for");
    if (model.exact && model.request && !in_a_hurry(model.request))
        fuzz_expect(!look(model.request, 0).any, "nothing is imported while there is room");
    model.asked++;
    errno = EPERM;
    if (below(4) == 0) return -1;
    segment at = {.size = size};
    if (below(3) == 0 && size < SIZE_MAX / 2) at.size += quantum() * below(64);
    at.start = somewhere(at.size);
    if (!is_possible(at)) return 1;
    model.given++;
    model.given_at = at.start;
    model.imported++;
    insert_span(at, true);
    *start = at.start;
    *got = at.size;
    return 0;
}

static void release(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    fuzz_expect(arg == &model && source == NULL, "a release has its own argument");
    size_t i = span_of(start);
    fuzz_expect(i < model.span_count && model.spans[i].imported, "what is released was imported");
    fuzz_expect(model.spans[i].at.start == start && model.spans[i].at.size == size,
                "a span is released whole");
    fuzz_expect(!is_used(model.spans[i].at), "a span is released when nothing of it is in use");
    remove_span(i);
    /* A span that was imported without use never belonged to the arena. */
    if (model.request && model.given && model.given_at == start)
        model.imported--;
    else
        model.released++;
}

static int note_imported(void *arg, unsigned what, uintptr_t start, size_t size) {
    size_t *count = arg;
    segment at = {start, size};
    fuzz_expect(what == SY_VMEM_SPANS, "only spans were asked for");
    if (overlap(at, SOURCE)) {
        insert_span(at, true);
        ++*count;
    }
    return 0;
}

static int expect_imported(void *arg, unsigned what, uintptr_t start, size_t size) {
    size_t *count = arg, i = span_of(start);
    fuzz_expect(what == SY_VMEM_ALLOCATED, "only what is allocated was asked for");
    fuzz_expect(i < model.span_count && model.spans[i].at.start == start &&
                    model.spans[i].at.size == size,
                "what is allocated in the source is a span here");
    --*count;
    return 0;
}

/* Adds the spans imported from the source to the model. */
static void follow_source(void) {
    size_t count = 0;
    for (size_t i = model.span_count; i-- > 0;)
        if (model.spans[i].imported) remove_span(i);
    fuzz_expect(!sy_vmem_each(model.arena, SY_VMEM_SPANS, note_imported, &count), "a walk");
    fuzz_expect(!sy_vmem_each(model.source, SY_VMEM_ALLOCATED, expect_imported, &count), "a walk");
    fuzz_expect(count == 0, "what was imported is allocated in the source");
}

/* ---- operations ---- */

static void begin(const request *it) {
    model.request = it;
    model.asked = model.given = 0;
    model.system_failures = sy_fake_failures(SY_FAKE_ANY);
    errno = 0;
}

static void end(void) {
    model.request = NULL;
    if (sy_fake_failures(SY_FAKE_ANY) > model.system_failures) model.troubled = true;
    if (model.imports != FROM_AN_ARENA) return;
    sy_vmem_stats stats;
    sy_vmem_get_stats(model.arena, &stats);
    bool changed = stats.imports != model.imported || stats.releases != model.released;
    model.given = stats.imports != model.imported;
    model.imported = stats.imports;
    model.released = stats.releases;
    if (changed) follow_source();
}

static bool system_failed(void) { return sy_fake_failures(SY_FAKE_ANY) > model.system_failures; }

static void expect_good(const request *it, uintptr_t value, places found) {
    uintptr_t least;
    fuzz_expect(found.chosen.size > 0, "what is given was free, and in a span");
    fuzz_expect(place_in(found.chosen.start, last_of(found.chosen), it, value, &least) &&
                    least == value,
                "what is given satisfies its constraints, in one span");
    if (!model.exact) return;
    if (it->fit == SY_VMEM_BEST)
        fuzz_expect(found.chosen.size == found.smallest, "best fit takes the smallest");
    if (it->fit == SY_VMEM_NEXT)
        fuzz_expect(value == found.next, "next fit takes the first that is next");
}

/* Would the source have served it? */
static bool source_has(const request *it) {
    size_t size = it->size > import_least() ? it->size : import_least();
    uintptr_t value;
    size_t more = it->align + it->nocross;
    if (it->align > quantum() || it->nocross)
        size = size > SIZE_MAX - more ? SIZE_MAX : size + more;
    sy_vmem_constraints aligned = {.align = quantum()};
    if (sy_vmem_xalloc(model.source, size, &aligned, SY_VMEM_BEST, &value) != 0) return false;
    sy_vmem_xfree(model.source, value, size);
    return true;
}

/* The refusal was right: there is no room, and no span could be imported. */
static void expect_no_room(const request *it, places found) {
    bool bounded = it->min > 0 || it->last < UINTPTR_MAX;
    fuzz_expect(!found.any, "what has a place is given it");
    if (model.given)
        fuzz_expect(bounded, "an import serves what it was made for");
    else if (model.imports == FROM_AN_ARENA && !bounded)
        fuzz_expect(!source_has(it), "a source that has it serves it");
    else if (model.imports == BY_FUNCTIONS && it->size < SIZE_MAX / 4 && it->align < SIZE_MAX / 4)
        fuzz_expect(model.asked > 0, "an import is tried");
}

static void conclude(const request *it, int result, uintptr_t value, size_t asked) {
    bool failed = system_failed();
    int error = errno;
    end();
    if (model.exact) fuzz_expect(model.asked <= 1, "an import is tried once");
    places found = look(it, value);
    if (result == 0) {
        expect_good(it, value, found);
        insert_live((segment){value, it->size}, asked);
        if (it->fit == SY_VMEM_NEXT) model.rotor = value + it->size;
        model.allocs++;
        return;
    }
    fuzz_expect(result == -1 && error == ENOMEM, "no room is ENOMEM");
    model.failures++;
    if (!failed) expect_no_room(it, found);
}

static size_t some_size(void) {
    size_t size = quantum() * (1 + spread(model.size_bits));
    if (below(100) == 0) size = quantum() * (1 + spread(64));
    if (size == 0) size = quantum();
    return below(2) ? size : size - below(quantum());
}

static request plain(size_t size, sy_vmem_fit fit) {
    return (request){round_up(size), quantum(), 0, 0, 0, UINTPTR_MAX, fit};
}

static void alloc_one(sy_vmem_fit fit) {
    if (model.live_count == model.live_most) return;
    size_t size = some_size();
    if (round_up(size) < size) return;
    request it = plain(size, fit);
    uintptr_t value = 0;
    begin(&it);
    int result = sy_vmem_alloc(model.arena, size, fit, &value);
    conclude(&it, result, value, size);
}

/* Whether these arguments are refused before any search. */
static bool is_absurd(const request *it) {
    if (it->nocross > 0 && it->nocross < it->size) return true;
    if (it->last < it->min || it->last - it->min < it->size - 1) return true;
    return it->nocross > 0 && (it->phase & (it->nocross - 1)) > it->nocross - it->size;
}

static sy_vmem_constraints some_constraints(size_t size) {
    sy_vmem_constraints it = {0};
    if (below(2)) it.align = quantum() << below(below(16) ? 8 : 52);
    if (it.align > quantum() && below(2)) it.phase = quantum() * below(it.align / quantum());
    if (below(3) == 0) it.nocross = quantum() << below(12);
    if (below(3) == 0 && model.span_count) {
        segment in = model.spans[below(model.span_count)].at;
        it.min = in.start + (uintptr_t)spread(20) % in.size;
    }
    if (below(4) == 0) it.max = it.min + size + (uintptr_t)spread(24);
    return it;
}

static void xalloc_one(sy_vmem_fit fit) {
    if (model.live_count == model.live_most) return;
    size_t size = some_size();
    if (round_up(size) < size) return;
    sy_vmem_constraints with = some_constraints(size);
    request it = plain(size, fit);
    if (with.align) it.align = with.align;
    it.phase = with.phase;
    it.nocross = with.nocross;
    it.min = with.min;
    if (with.max) it.last = with.max - 1;
    uintptr_t value = 0, any;
    begin(&it);
    int result = sy_vmem_xalloc(model.arena, size, &with, fit, &value);
    bool refused = result == -1 && errno == EINVAL;
    if (is_absurd(&it)) fuzz_expect(refused, "constraints that nothing satisfies are refused");
    if (!refused) {
        conclude(&it, result, value, size);
        return;
    }
    end();
    fuzz_expect(is_absurd(&it) || !place_in(0, UINTPTR_MAX, &it, 0, &any),
                "constraints that can be satisfied are taken");
    fuzz_expect(model.asked == 0, "nothing is imported for what is refused");
}

static void free_one(size_t which) {
    if (model.live_count == 0) return;
    allocated gone = model.live[which % model.live_count];
    remove_live(which % model.live_count);
    begin(NULL);
    int result = below(4) ? sy_vmem_free(model.arena, gone.at.start, gone.asked)
                          : sy_vmem_xfree(model.arena, gone.at.start, gone.asked);
    fuzz_expect(result == 0, "a free cannot fail");
    end();
    model.frees++;
    size_t i = span_of(gone.at.start);
    if (model.exact && i < model.span_count && model.spans[i].imported)
        fuzz_expect(is_used(model.spans[i].at), "a span that is free is released");
}

/* The units between a segment and what is allocated behind it, or the end of its span. */
static size_t room_behind(size_t which) {
    segment at = model.live[which].at, in = model.spans[span_of(at.start)].at;
    size_t room = in.size - (at.start - in.start) - at.size;
    if (which + 1 == model.live_count) return room;
    size_t distance = model.live[which + 1].at.start - at.start - at.size;
    return distance < room ? distance : room;
}

static void resize_one(size_t which) {
    if (model.live_count == 0) return;
    which %= model.live_count;
    allocated *it = &model.live[which];
    size_t size = some_size(), room = room_behind(which);
    if (below(3) == 0) size = it->at.size + (room > 0 ? quantum() * below(room / quantum()) : 0);
    if (round_up(size) < size) return;
    begin(NULL);
    int result = sy_vmem_resize(model.arena, it->at.start, it->asked, size);
    int error = errno;
    bool failed = system_failed(), fits = round_up(size) <= it->at.size + room;
    end();
    if (result == 0) {
        fuzz_expect(fits, "only what fits grows");
        it->at.size = round_up(size);
        it->asked = size;
        return;
    }
    fuzz_expect(result == -1 && error == ENOMEM, "what cannot be resized is ENOMEM");
    fuzz_expect(failed || !fits || (!model.exact && round_up(size) > it->at.size),
                "what fits is resized");
}

static void add_one(void) {
    segment at = {.size = quantum() * (1 + spread(below(8) ? 14 : 64))};
    if (at.size == 0) return;
    at.start = somewhere(at.size);
    bool beyond = last_of(at) < at.start, met = !beyond && meets_a_span(at);
    if (!beyond && model.imports == FROM_AN_ARENA && overlap(at, SOURCE)) return;
    if (!beyond && !met && model.span_count >= SPANS_WANTED) return;
    begin(NULL);
    int result = sy_vmem_add(model.arena, at.start, at.size), error = errno;
    bool much = at.size > SIZE_MAX - total(false), failed = system_failed();
    end();
    if (result == 0) {
        fuzz_expect(!beyond && !met && !much, "a span is a new one");
        insert_span(at, false);
    } else if (beyond) {
        fuzz_expect(error == EINVAL, "a span past the end is refused");
    } else {
        fuzz_expect((met && error == EEXIST) || ((much || failed) && error == ENOMEM),
                    "a span that is new is added");
    }
}

/* ---- misuse ---- */

static sy_fault fault;
static unsigned faults;

static void note_fault(const sy_fault *it) {
    fault = *it;
    faults++;
}

static void expect_fault(int result, sy_fault_kind kind, uintptr_t value, size_t size) {
    fuzz_expect(result == -1 && errno == EINVAL && faults == 1, "misuse is refused, and told once");
    fuzz_expect(fault.kind == kind && (uintptr_t)fault.address == value &&
                    fault.object_size == size && strcmp(fault.cache, "fuzz") == 0,
                "misuse is told as what it is");
}

static void free_wrongly(void) {
    size_t size = some_size(), i;
    if (round_up(size) < size || size <= model.config.cached_max) return;
    uintptr_t value = somewhere(quantum());
    if (model.live_count && below(2)) value = model.live[below(model.live_count)].at.start;
    if (below(4) == 0) value += below(quantum() * 2);
    i = live_from(value);
    bool found = i < model.live_count && model.live[i].at.start == value;
    sy_fault_kind kind = found ? SY_FAULT_SEGMENT_SIZE : SY_FAULT_NOT_ALLOCATED;
    if (found && model.live[i].at.size == round_up(size)) return;
    if (!model.exact && !found) sy_vmem_drain(model.arena);
    faults = 0;
    begin(NULL);
    switch (below(3)) {
    case 0: expect_fault(sy_vmem_free(model.arena, value, size), kind, value, size); break;
    case 1: expect_fault(sy_vmem_xfree(model.arena, value, size), kind, value, size); break;
    default:
        expect_fault(sy_vmem_resize(model.arena, value, size,
                                    size + quantum() > size ? size + quantum() : size),
                     kind, value, size);
    }
    end();
    if (faults && found) fuzz_expect(fault.found_size == model.live[i].at.size, "with its size");
}

static void expect_refused(size_t size, sy_vmem_constraints with, unsigned fit) {
    uintptr_t value = 4711;
    begin(NULL);
    int result = sy_vmem_xalloc(model.arena, size, &with, (sy_vmem_fit)fit, &value);
    fuzz_expect(result == -1 && errno == EINVAL, "nonsense is refused");
    fuzz_expect(value == 4711 && model.asked == 0, "and nothing is done for it");
    end();
}

static void ask_nonsense(void) {
    size_t q = quantum(), much = q << 8;
    expect_refused(0, (sy_vmem_constraints){0}, SY_VMEM_INSTANT);
    expect_refused(q, (sy_vmem_constraints){0}, SY_VMEM_NEXT + 1);
    expect_refused(q, (sy_vmem_constraints){.align = q * 3}, SY_VMEM_BEST);
    expect_refused(q, (sy_vmem_constraints){.nocross = q * 6}, SY_VMEM_NEXT);
    expect_refused(q, (sy_vmem_constraints){.align = much, .phase = much}, SY_VMEM_INSTANT);
    expect_refused(q * 5, (sy_vmem_constraints){.nocross = q * 4}, SY_VMEM_BEST);
    expect_refused(q * 5, (sy_vmem_constraints){.min = much, .max = much + q * 4}, SY_VMEM_NEXT);
    expect_refused(q, (sy_vmem_constraints){.min = much, .max = much}, SY_VMEM_INSTANT);
    if (q == 1) return;
    expect_refused(SIZE_MAX - below(q - 1), (sy_vmem_constraints){0}, SY_VMEM_INSTANT);
    expect_refused(q, (sy_vmem_constraints){.align = q / 2}, SY_VMEM_BEST);
    expect_refused(q, (sy_vmem_constraints){.nocross = q / 2}, SY_VMEM_BEST);
    expect_refused(q, (sy_vmem_constraints){.align = much, .phase = q + 1}, SY_VMEM_NEXT);
}

/* ---- the whole ---- */

typedef struct entry {
    unsigned what;
    segment at;
} entry;

static entry expected[ENTRIES_MAX];
static size_t expected_count, walked;

static void expect_entry(unsigned wanted, unsigned what, uintptr_t start, size_t size) {
    if (wanted & what && size) expected[expected_count++] = (entry){what, {start, size}};
}

static void foresee_walk(unsigned what) {
    expected_count = walked = 0;
    size_t at = 0;
    for (size_t i = 0; i < model.span_count; i++) {
        segment in = model.spans[i].at;
        expect_entry(what, SY_VMEM_SPANS, in.start, in.size);
        uintptr_t from = in.start;
        for (; at < model.live_count && model.live[at].at.start - in.start < in.size; at++) {
            segment it = model.live[at].at;
            expect_entry(what, SY_VMEM_FREE, from, it.start - from);
            expect_entry(what, SY_VMEM_ALLOCATED, it.start, it.size);
            from = it.start + it.size;
        }
        expect_entry(what, SY_VMEM_FREE, from, in.start + in.size - from);
    }
}

static int compare_entry(void *arg, unsigned what, uintptr_t start, size_t size) {
    const size_t *stop = arg;
    fuzz_expect(walked < expected_count, "a walk shows no more than there is");
    entry it = expected[walked++];
    fuzz_expect(it.what == what && it.at.start == start && it.at.size == size,
                "a walk shows what there is, in order");
    return walked == *stop ? 5 : 0;
}

static void compare_walk(void) {
    unsigned what = 1 + (unsigned)below(7);
    foresee_walk(what);
    size_t stop = below(4) ? 0 : 1 + below(expected_count + 1);
    begin(NULL);
    int result = sy_vmem_each(model.arena, what, compare_entry, &stop);
    if (result == -1) {
        fuzz_expect(errno == ENOMEM && system_failed() && walked == 0, "a walk fails for memory");
    } else if (stop && stop <= expected_count) {
        fuzz_expect(result == 5 && walked == stop, "a walk ends when it is told");
    } else {
        fuzz_expect(result == 0 && walked == expected_count, "a walk shows all there is");
    }
    end();
}

static size_t live_units(void) {
    size_t units = 0;
    for (size_t i = 0; i < model.live_count; i++) units += model.live[i].at.size;
    return units;
}

static void compare_gaps(const sy_vmem_stats *stats) {
    cursor at = {0};
    segment gap;
    size_t count = 0, largest = 0;
    while (next_gap(&at, &gap)) {
        count++;
        if (gap.size > largest) largest = gap.size;
    }
    fuzz_expect(stats->segments_free == count, "what is freed together is one");
    fuzz_expect(stats->largest_free <= largest && stats->largest_free >= largest - largest / 8,
                "the largest is known to an eighth");
}

static size_t imported_spans(void) {
    size_t count = 0;
    for (size_t i = 0; i < model.span_count; i++) count += model.spans[i].imported;
    return count;
}

static void compare_events(const sy_vmem_stats *stats) {
    fuzz_expect(stats->imports - stats->releases == stats->imported_spans, "imports are counted");
    if (model.troubled) return;
    fuzz_expect(stats->imports == model.imported && stats->releases == model.released,
                "every import and release is counted");
    if (!model.exact) return;
    fuzz_expect(stats->allocs == model.allocs && stats->frees == model.frees &&
                    stats->failures == model.failures,
                "every event is counted");
}

/* The quantum caches were drained. */
static void compare_stats(void) {
    sy_vmem_stats stats;
    fuzz_expect(sy_vmem_get_stats(model.arena, &stats) == 0, "an arena has statistics");
    fuzz_expect(stats.total == stats.allocated + stats.cached + stats.free, "it adds up");
    fuzz_expect(stats.total == total(false) && stats.imported == total(true), "units are counted");
    fuzz_expect(stats.allocated == live_units() && stats.cached == 0, "so is what is in use");
    fuzz_expect(stats.spans == model.span_count && stats.imported_spans == imported_spans() &&
                    stats.segments_allocated == model.live_count,
                "and how many there are");
    fuzz_expect(stats.quantum == quantum() && strcmp(stats.name, "fuzz") == 0, "an arena is named");
    unsigned both = SY_VMEM_ALLOCATED | SY_VMEM_FREE;
    fuzz_expect(sy_vmem_size(model.arena, both) == stats.total &&
                    sy_vmem_size(model.arena, SY_VMEM_FREE) == stats.free &&
                    sy_vmem_size(model.arena, SY_VMEM_ALLOCATED) == stats.allocated,
                "sizes are those of the statistics");
    compare_gaps(&stats);
    compare_events(&stats);
}

static void drain(void) {
    begin(NULL);
    sy_vmem_drain(model.arena);
    end();
    for (size_t i = 0; i < model.span_count; i++)
        fuzz_expect(!model.spans[i].imported || is_used(model.spans[i].at),
                    "no span is kept for nothing");
}

static void compare_contains(void) {
    segment at = {somewhere(quantum()), 1 + spread(16)};
    if (below(2) && model.span_count) at = model.spans[below(model.span_count)].at;
    if (below(3) == 0) at.start += spread(16);
    if (below(3) == 0) at.size += spread(4);
    uintptr_t from = at.start;
    bool inside = last_of(at) >= at.start;
    while (inside) {
        size_t i = span_of(from);
        inside = i < model.span_count;
        if (!inside || last_of(model.spans[i].at) >= last_of(at)) break;
        from = last_of(model.spans[i].at) + 1;
    }
    fuzz_expect(sy_vmem_contains(model.arena, at.start, at.size) == inside,
                "an arena knows what is its own");
}

static void compare(void) {
    drain();
    compare_stats();
    compare_walk();
    compare_contains();
    fuzz_expect(sy_vmem_verify(model.arena) == 0, "an arena is sound");
    if (model.source) fuzz_expect(sy_vmem_verify(model.source) == 0, "so is its source");
}

static void destroy_in_use(void) {
    if (model.live_count == 0) return;
    begin(NULL);
    fuzz_expect(sy_vmem_destroy(model.arena) == -1 && errno == EBUSY, "an arena in use stays");
    end();
}

static void end_script(void) {
    model.stuck = model.stuck || sy_fake_failures(SY_FAKE_RELEASE) > 0;
    sy_fake_reset();
}

/* Sets which calls to the system will fail: none in half of the cases. The model cannot follow the
 * source arena when they fail. */
static void script(fuzz_input *input) {
    uint8_t choice = fuzz_byte(input);
    end_script();
    if (model.imports == FROM_AN_ARENA) return;
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 500, choice);
}

static void step(fuzz_input *input) {
    static const sy_vmem_fit fits[8] = {SY_VMEM_BEST, SY_VMEM_BEST, SY_VMEM_NEXT, SY_VMEM_NEXT};
    uint8_t operation = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    model.random += which;
    size_t count = 1 + which % ((size_t)1 << operation / 32);
    switch (operation % 32) {
    case 0: script(input); break;
    case 1: compare(); break;
    case 2: add_one(); break;
    case 3: drain(); break;
    case 4: free_wrongly(); break;
    case 5: destroy_in_use(); break;
    case 6: (which % 16 ? compare_contains : ask_nonsense)(); break;
    case 7: /* all, or all but some */
        for (size_t i = model.live_count; i-- > 0;)
            if (i % (2 + which % 64) || which % 2) free_one(i);
        break;
    case 8:
    case 9: /* neighbours */
        for (count *= 2; count > 0; count--) free_one(which);
        break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
        for (count *= 2; count > 0; count--) free_one(below(LIVE_MAX));
        break;
    case 15:
    case 16:
    case 17:
        for (; count > 0; count--) resize_one(below(LIVE_MAX));
        break;
    case 18:
    case 19:
    case 20:
    case 21:
    case 22:
    case 23:
        for (; count > 0; count--) xalloc_one((sy_vmem_fit)below(3));
        break;
    default:
        for (; count > 0; count--) alloc_one(fits[operation % 8]);
        break;
    }
}

/* ---- one arena ---- */

static void make_source(size_t source_quantum) {
    sy_vmem_config config = {.name = "source", .base = SOURCE.start, .size = SOURCE.size / 4};
    config.quantum = source_quantum;
    model.source = sy_vmem_create(&config);
    fuzz_expect(model.source != NULL, "a source is made");
    for (uintptr_t i = 1; i < 4; i++)
        fuzz_expect(!sy_vmem_add(model.source, SOURCE.start + SOURCE.size / 4 * i, SOURCE.size / 4),
                    "a source has several spans");
}

static void make_config(fuzz_input *input) {
    sy_vmem_config *config = &model.config;
    *config = (sy_vmem_config){.name = "fuzz", .quantum = (size_t)1 << fuzz_byte(input) % 13};
    uint8_t size = fuzz_byte(input), where = fuzz_byte(input), import_min = fuzz_byte(input);
    if (size % 4) config->size = quantum() * (1 + spread(size % 16 ? 14 : 63));
    config->base = where % 4 == 0 ? 0 : where % 4 == 1 ? 0 - config->size : quantum() * where;
    if (config->size > 0 - config->base && config->base) config->size = 0 - config->base;
    if (fuzz_byte(input) % 3 == 0) config->cached_max = fuzz_byte(input) % 17 * quantum();
    model.exact = config->cached_max == 0;
    model.imports = (imports)(fuzz_byte(input) % IMPORTS);
    if (model.imports == BY_FUNCTIONS) {
        config->import = import;
        config->release = release;
        config->arg = &model;
    }
    if (model.imports == FROM_AN_ARENA) {
        make_source(where % 2 ? quantum() : 1);
        config->source = model.source;
        segment first = {config->base, config->size};
        if (config->size && overlap(first, SOURCE)) config->size = quantum();
    }
    if (model.imports && import_min % 2) config->import_min = quantum() * import_min / 2;
}

static void make_arena(fuzz_input *input) {
    static const size_t most[] = {20, 100, 400, LIVE_MAX};
    memset(&model, 0, sizeof model);
    model.random = fuzz_u16(input);
    model.size_bits = 1 + fuzz_byte(input) % 10;
    model.live_most = most[fuzz_byte(input) % 4];
    make_config(input);
    model.arena = sy_vmem_create(&model.config);
    fuzz_expect(model.arena != NULL, "an arena is made");
    if (model.config.size) insert_span((segment){model.config.base, model.config.size}, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    sy_fake_reset();
    sy_fake_set_cpu_count(4);
    sy_set_fault_handler(note_fault);
    fuzz_expect(sy_vmem_destroy(sy_vmem_create(&(sy_vmem_config){.size = 1})) == 0, "all starts");
    size_t reserved = sy_fake_reserved();
    make_arena(&input);
    while (input.size > 0) step(&input);
    end_script();
    compare();
    destroy_in_use();
    while (model.live_count) free_one(model.live_count / 2);
    fuzz_expect(sy_vmem_destroy(model.arena) == 0, "an arena that is unused goes");
    if (model.imports == BY_FUNCTIONS)
        fuzz_expect(imported_spans() == 0, "nothing that was imported is kept");
    fuzz_expect(sy_vmem_destroy(model.source) == 0, "nor is anything of the source");
    if (model.exact && !model.stuck)
        fuzz_expect(sy_fake_reserved() == reserved, "an arena gives all memory back");
    return 0;
}
