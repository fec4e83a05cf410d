/*
 * fit.c: checks a request, and finds the free segment and the value in it that satisfy it. Called
 * with the arena's lock held by each allocation that no quantum cache serves.
 */
#include <errno.h>

#include "base/bits.h"
#include "vmem/arena.h"

/* An instant fit looks at so many segments in the lists, which may all be too small, before it asks
 * the source for a new span. */
enum { PATIENCE = 64 };

/* ---- requests ---- */

static int invalid(void) {
    errno = EINVAL;
    return -1;
}

static bool valid_constraints(const sy_request *request, size_t quantum) {
    size_t unit = quantum - 1;
    if (!sy_is_power_of_two(request->align) || request->align < quantum) return false;
    if (request->phase >= request->align || request->phase & unit) return false;
    if (request->size - 1 > request->max - request->min || request->max < request->min)
        return false;
    if (!request->nocross) return true;
    if (!sy_is_power_of_two(request->nocross) || request->nocross < quantum) return false;
    /* The lowest value at the phase behind a multiple of nocross has the most room up to the next
     * multiple. The size has to fit there. */
    size_t offset = request->phase & (request->nocross - 1);
    return request->size <= request->nocross && offset <= request->nocross - request->size;
}

/* The size at which any segment serves: it has room to align the value and, if the aligned segment
 * would cross a multiple of nocross, to begin behind it. 0 if that overflows. */
static size_t ample(const sy_request *request, size_t quantum) {
    size_t slack = request->align - quantum, total;
    /* If nocross is not larger, all values at the phase have the same offset in it. */
    bool may_cross = request->nocross > request->align;
    if (may_cross) slack += request->size - quantum + request->phase;
    return __builtin_add_overflow(request->size, slack, &total) ? 0 : total;
}

int sy_request_make(const sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                    sy_vmem_fit fit, sy_request *request) {
    static const sy_vmem_constraints none = {0};
    if (!constraints) constraints = &none;
    if (fit > SY_VMEM_NEXT || !sy_vmem_round(arena, size, &size)) return invalid();
    *request = (sy_request){
        .size = size,
        .align = constraints->align ? constraints->align : arena->quantum,
        .phase = constraints->phase,
        .nocross = constraints->nocross,
        .min = constraints->min,
        .max = constraints->max - 1, /* 0: the end of the integers */
        .patience = fit == SY_VMEM_INSTANT && arena->import ? PATIENCE : SY_PATIENCE_WITHOUT_END,
        .fit = fit,
    };
    if (!valid_constraints(request, arena->quantum)) return invalid();
    request->ample = ample(request, arena->quantum);
    return 0;
}

/* The first value at the phase from `from` on; false past the end of the integers. */
static bool at_phase(const sy_request *request, uintptr_t from, uintptr_t *value) {
    *value = from + ((request->phase - from) & (request->align - 1));
    return *value >= from;
}

/*
 *      start                 boundary of nocross                last
 *      |        value [     size    :   ]   value [   size   ]   |
 *                     crosses                     the first at the phase beyond it
 */
bool sy_request_fits(const sy_request *request, uintptr_t start, uintptr_t last, uintptr_t *value) {
    size_t extent = request->size - 1;
    if (request->min > start) start = request->min;
    if (request->max < last) last = request->max;
    if (start > last || !at_phase(request, start, value)) return false;
    if (*value > last || last - *value < extent) return false;
    if (!request->nocross) return true;
    uintptr_t boundary = (*value + extent) & ~(request->nocross - 1);
    if (boundary <= *value) return true;
    if (!at_phase(request, boundary, value)) return false;
    return *value <= last && last - *value >= extent;
}

/* ---- finding a segment ---- */

static bool tag_fits(sy_vmem *arena, const sy_request *request, const sy_boundary *tag,
                     uintptr_t *value) {
    arena->probes++;
    return sy_request_fits(request, tag->start, sy_tag_last(tag), value);
}

/* The first segment of a list that serves. Gives up (NULL) when the arena's probes reach `most`. */
static sy_boundary *first_in(sy_vmem *arena, const sy_request *request, unsigned list,
                             uint64_t most, uintptr_t *value) {
    for (sy_boundary *tag = arena->list[list]; tag && arena->probes < most; tag = tag->kin)
        if (tag_fits(arena, request, tag, value)) return tag;
    return NULL;
}

/* The smallest segment of a list that serves. */
static sy_boundary *smallest_in(sy_vmem *arena, const sy_request *request, unsigned list,
                                uintptr_t *value) {
    sy_boundary *best = NULL;
    for (sy_boundary *tag = arena->list[list]; tag; tag = tag->kin) {
        uintptr_t at;
        if ((best && tag->size >= best->size) || !tag_fits(arena, request, tag, &at)) continue;
        best = tag;
        *value = at;
        if (tag->size == request->size) break;
    }
    return best;
}

/* Looks through the free lists, beginning with the list of the request's size. Takes a segment from
 * the first list with one that serves: later lists have only larger segments. */
static sy_boundary *find_in_lists(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    unsigned list = sy_list_filled(arena, sy_list_of(request->size >> arena->quantum_shift));
    uint64_t from = arena->probes;
    while (list < SY_LISTS) {
        sy_boundary *tag = request->fit == SY_VMEM_BEST
                               ? smallest_in(arena, request, list, value)
                               : first_in(arena, request, list, from + request->patience, value);
        if (tag || arena->probes - from >= request->patience) return tag;
        list = sy_list_filled(arena, list + 1);
    }
    return NULL;
}

static sy_boundary *find_instant(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    bool bounded = request->min || request->max != UINTPTR_MAX;
    if (request->ample && !bounded) {
        unsigned sure = sy_list_above(request->ample >> arena->quantum_shift);
        unsigned list = sy_list_filled(arena, sure);
        if (list < SY_LISTS) return first_in(arena, request, list, UINT64_MAX, value);
    }
    return find_in_lists(arena, request, value);
}

static sy_boundary *find_from(sy_vmem *arena, const sy_request *request, sy_boundary *tag,
                              uintptr_t *value) {
    while (tag && (tag->kind != SY_TAG_FREE || !tag_fits(arena, request, tag, value))) {
        arena->probes += tag->kind != SY_TAG_FREE;
        tag = tag->next;
    }
    return tag;
}

/* The part of the request that lies after the rotor; false: it has no such part. */
static bool beyond_rotor(const sy_vmem *arena, const sy_request *request, sy_request *beyond) {
    if (request->fit != SY_VMEM_NEXT || !arena->rotor_set || arena->rotor == UINTPTR_MAX)
        return false;
    *beyond = *request;
    if (beyond->min <= arena->rotor) beyond->min = arena->rotor + 1;
    return true;
}

/* The lowest value that serves, in any free segment. */
static sy_boundary *lowest_of_all(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    sy_boundary *lowest = NULL;
    unsigned list = sy_list_filled(arena, sy_list_of(request->size >> arena->quantum_shift));
    for (; list < SY_LISTS; list = sy_list_filled(arena, list + 1))
        for (sy_boundary *tag = arena->list[list]; tag; tag = tag->kin) {
            uintptr_t at;
            if ((lowest && tag->start > lowest->start) || !tag_fits(arena, request, tag, &at))
                continue;
            lowest = tag;
            *value = at;
        }
    return lowest;
}

/*
 * Next fit: the lowest value after the rotor or, if there is none, the lowest of all. There are two
 * ways to find it: to walk the tags from the rotor on, or to look at all free segments. With f free
 * segments among n allocated ones the walk takes about n / f steps and the look f steps. The lesser
 * of the two is never more than the root of n.
 */
static sy_boundary *find_next(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    sy_request beyond;
    sy_boundary *found = NULL, *from = arena->rotor_tag ? arena->rotor_tag : arena->first;
    bool goes_on = beyond_rotor(arena, request, &beyond);
    if (arena->free_segments < arena->allocated_segments / (arena->free_segments + 1)) {
        if (goes_on) found = lowest_of_all(arena, &beyond, value);
        return found ? found : lowest_of_all(arena, request, value);
    }
    if (goes_on) found = find_from(arena, &beyond, from, value);
    return found ? found : find_from(arena, request, arena->first, value);
}

bool sy_fit_in(sy_vmem *arena, const sy_request *request, const sy_boundary *tag,
               uintptr_t *value) {
    sy_request beyond;
    if (beyond_rotor(arena, request, &beyond) && tag_fits(arena, &beyond, tag, value)) return true;
    return tag_fits(arena, request, tag, value);
}

sy_boundary *sy_fit_find(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    if (request->fit == SY_VMEM_NEXT) return find_next(arena, request, value);
    if (request->fit == SY_VMEM_BEST) return find_in_lists(arena, request, value);
    return find_instant(arena, request, value);
}
