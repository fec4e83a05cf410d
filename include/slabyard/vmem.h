/**
 * slabyard/vmem.h: arenas, which allocate segments of any resource that is a set of integers:
 * addresses, process ids, ports, disk blocks, offsets in a region shared with a device.
 *
 * An arena has spans: ranges of integers that you added or that it imported. Each span is cut into
 * segments, which are allocated or free. The arena never writes into the resource: its records
 * (boundary tags) are in memory of their own.
 *
 *     span                                        span
 *     | allocated | free    | allocated | free |  | free                  |
 *
 *   - Free neighbours become one segment: segments that were freed one by one can be allocated
 *     together.
 *   - Allocating and freeing take the same short time for ten segments as for ten million: free
 *     segments are in lists by size, allocated ones in a table by value.
 *   - An arena may import spans from another arena, or by functions of yours. It returns each span
 *     once, when all of it is free.
 *   - Small sizes may be kept in quantum caches: magazines of the threads, as fast as those of an
 *     object cache.
 *
 * After Bonwick and Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and
 * Arbitrary Resources", USENIX 2001, section 4.
 *
 * 0 is a valid value. So functions write values through a pointer and return a status: 0, or -1
 * with errno and nothing changed. Sizes are in units of the resource and are rounded up to a
 * multiple of the arena's quantum. Every value is a multiple of the quantum.
 *
 * Threads: any thread may call every function at any time, except sy_vmem_destroy. Do not call
 * these functions in a signal handler. Functions of yours are called with no lock held.
 */
#ifndef SLABYARD_VMEM_H
#define SLABYARD_VMEM_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/** An arena. Its content is private. The code that created it owns it. */
typedef struct sy_vmem sy_vmem;

/** Sizes of arenas. */
enum {
    SY_VMEM_NAME_MAX = 31,    /* bytes of a name that are kept */
    SY_VMEM_CACHED_SIZES = 16 /* largest number of quantum caches: for 1, 2 ... 16 quanta */
};

/**
 * Imports a span of at least `size` units, a multiple of the arena's quantum. The function writes
 * the start of the span to *start and its size to *got (initially `size`), both multiples of the
 * quantum. It returns 0, or another value if it has no span. The span belongs to the arena until it
 * is released. Import and release may use other arenas, but not the arena that they serve, and may
 * not call sy_thread_idle or sy_thread_flush. They must return (base.h).
 */
typedef int (*sy_vmem_import)(sy_vmem *source, void *arg, size_t size, uintptr_t *start,
                              size_t *got);

/** Releases an imported span: all of it, once. It must not fail. */
typedef void (*sy_vmem_release)(sy_vmem *source, void *arg, uintptr_t start, size_t size);

/** The configuration of an arena. Every field may be zero: an arena with the quantum 1 and no
 * span. */
typedef struct sy_vmem_config {
    const char *name;  /* copied; NULL: "arena" */
    uintptr_t base;    /* the start of the first span, as in sy_vmem_add */
    size_t size;       /* the size of the first span; 0: no span */
    size_t quantum;    /* a power of two that divides every value and size; 0: 1 */
    size_t cached_max; /* the largest size, after rounding up, that is kept in quantum caches: at
                          most 16 quanta; 0: none. Free segments of these sizes then wait in
                          magazines until the same size is allocated: up to 127 in a magazine,
                          two magazines a thread, and 4,096 segments or more for each processor.
                          Leave it 0 for scarce resources, and if every free must be checked at
                          once */

    /* Where spans come from when the arena has no room. (With instant fit and a source that can
     * supply a span, the arena also imports if none of the first 64 candidates fits.) Set both
     * functions or neither. Without functions, a source serves by sy_vmem_alloc and sy_vmem_free;
     * its quantum must divide the quantum of this arena. */
    sy_vmem_import import;
    sy_vmem_release release;
    sy_vmem *source;   /* passed to the functions, which may ignore it; must outlive the arena */
    void *arg;         /* passed to the functions */
    size_t import_min; /* smallest import in units; 0: as needed */
    uintptr_t reserved[4]; /* zero */
} sy_vmem_config;

/**
 * Creates an arena. The caller owns it until sy_vmem_destroy.
 *
 * Returns the arena, or NULL with errno.
 *
 * Errors:
 *     EINVAL    no config; quantum not a power of two; base or size not a multiple of it, or past
 *               the end of the integers; cached_max over 16 quanta; one of import and release
 *               without the other; import_min without either or a source; a source whose quantum is
 *               larger; a reserved field that is not zero
 *     ENOMEM    no memory
 *     ENOSPC    no client number for a quantum cache (16,384 for all caches together)
 */
SY_API sy_vmem *sy_vmem_create(const sy_vmem_config *config);

/**
 * Destroys an arena: releases its imported spans and all its memory. NULL is allowed and does
 * nothing.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     a segment is allocated, or the arena's import or release function is running
 *
 * Threads: any thread, but no other thread may be using the arena.
 */
SY_API int sy_vmem_destroy(sy_vmem *arena);

/**
 * Adds the span [start, start + size), which stays until the arena is destroyed.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    size 0; start or size not a multiple of the quantum; past the end of the integers
 *     EEXIST    some of it is in the arena already
 *     ENOMEM    no memory for a tag, or the arena would have more than SIZE_MAX units
 *
 * Ports from two ranges:
 *
 *     sy_vmem *ports = sy_vmem_create(
 *         &(sy_vmem_config){.name = "port", .base = 10000, .size = 5000});
 *     if (!ports || sy_vmem_add(ports, 20000, 5000) != 0) perror("ports");
 */
SY_API int sy_vmem_add(sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/** Which of the free segments that are large enough is allocated. */
typedef enum sy_vmem_fit {
    SY_VMEM_INSTANT, /* the first segment of a list in which every segment fits: constant time
                        while there is such a list. Otherwise a segment that fits, from the one
                        list in which only some segments may fit */
    SY_VMEM_BEST,    /* the smallest: searches one list, which may be long */
    SY_VMEM_NEXT,    /* the first one behind the last allocation of this kind, in order of value,
                        starting again at the lowest: no value is used again before all others were
                        used. For ids. An arena has one position for this fit, so use this fit for
                        one range and one kind of request. It looks at about the square root of the
                        number of segments at most, unless most of the free ones are too small */
} sy_vmem_fit;

/**
 * Allocates `size` units and writes their first value to *value. With SY_VMEM_INSTANT, sizes that
 * have a quantum cache come from it.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    size 0, or so large that rounding it to the quantum overflows; unknown fit
 *     ENOMEM    no free segment is large enough, and nothing can be imported; no memory for a tag
 */
SY_API int sy_vmem_alloc(sy_vmem *arena, size_t size, sy_vmem_fit fit, uintptr_t *value)
    SY_NONNULL(1, 4);

/** Conditions for a segment. Every field may be zero: no condition. */
typedef struct sy_vmem_constraints {
    size_t align;   /* a power of two; 0: the quantum. value is `phase` above a multiple of it */
    size_t phase;   /* less than align, a multiple of the quantum */
    size_t nocross; /* a power of two; 0: none. No multiple of it is in (value, value + size) */
    uintptr_t min;  /* value is not less */
    uintptr_t max;  /* value + size is not more; 0: the end of the integers */
} sy_vmem_constraints;

/**
 * Allocates `size` units under constraints, never from a quantum cache. NULL: no constraints.
 *
 * align, phase, nocross and a bound that most free segments satisfy cost no more than
 * sy_vmem_alloc. If few or none of the free segments that are large enough lie between min and max,
 * the function looks at all of them before it takes one or fails: the time is proportional to their
 * number.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    as sy_vmem_alloc; align or nocross not a power of two, or less than the quantum;
 *               phase not below align or not a multiple of the quantum; constraints that no value
 *               can satisfy (nocross or max - min less than size, max not above min, an align and
 *               phase that cross everywhere)
 *     ENOMEM    as sy_vmem_alloc. At most one span is imported for the request, and it is released
 *               at once if min and max exclude it
 */
SY_API int sy_vmem_xalloc(sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                          sy_vmem_fit fit, uintptr_t *value) SY_NONNULL(1, 5);

/**
 * Frees a segment of sy_vmem_alloc; pass the size that was asked for. If the value is not
 * allocated, or was allocated with another size, a fault is reported with the arena's name
 * (fault.h).
 *
 * A size that has a quantum cache goes to the cache. Then only the value that this thread freed
 * last is checked at once. Any other wrong value is found later, when the cache returns it to the
 * arena; sy_vmem_free has then returned 0 already.
 *
 * Returns 0; it cannot fail for an allocated segment. -1 with errno and nothing changed after a
 * fault.
 *
 * Errors:
 *     EINVAL    there was a fault, and the fault handler returned
 */
SY_API int sy_vmem_free(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/**
 * Frees a segment of sy_vmem_xalloc, as sy_vmem_free. It bypasses the quantum caches and is checked
 * at once. Each of the two functions may free segments of either allocation function.
 *
 * Returns 0, or -1 with errno and nothing changed after a fault.
 *
 * Errors:
 *     EINVAL    there was a fault, and the fault handler returned
 */
SY_API int sy_vmem_xfree(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/**
 * Changes the size of an allocated segment from `size` to `new_size`; the start stays. Growing
 * takes units from the free segment behind it (a segment in a quantum cache is not free); shrinking
 * adds units to that segment.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    new_size as in sy_vmem_alloc; value or size as in sy_vmem_free, after the report
 *     ENOMEM    the segment behind it is not free or too small, or the span ends; no memory for a
 *               tag
 */
SY_API int sy_vmem_resize(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size)
    SY_NONNULL(1);

/** Takes free segments out of the quantum caches: those of this thread, of the depot, and of idle
 * and ended threads. Other running threads return theirs when they next exchange a magazine. If an
 * allocation finds no room, it does this automatically before it fails. */
SY_API void sy_vmem_drain(sy_vmem *arena) SY_NONNULL(1);

/* ---- sizes, visits and statistics ---- */

/** Parts of an arena that sy_vmem_size counts and sy_vmem_each visits. Combine them with |. */
enum {
    SY_VMEM_ALLOCATED = 1, /* segments, including those in quantum caches */
    SY_VMEM_FREE = 2,      /* segments */
    SY_VMEM_SPANS = 4,
};

/**
 * Tells whether all of [start, start + size) lies in spans of the arena. Neighbouring spans count
 * as one.
 *
 * Returns 1 if it does; else 0.
 *
 *     if (!sy_vmem_contains(ports, port, 1)) fprintf(stderr, "port %d is not ours\n", (int)port);
 */
SY_API int sy_vmem_contains(const sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/**
 * Counts units. SY_VMEM_FREE: the free ones. SY_VMEM_ALLOCATED: the allocated ones without those in
 * quantum caches (exact while no thread uses these caches). Both together: all units of the arena.
 *
 * Returns the number of units.
 */
SY_API size_t sy_vmem_size(const sy_vmem *arena, unsigned what) SY_NONNULL(1);

/** Called for each span or segment; `what` is one of the three constants. A return value other than
 * 0 ends the iteration. */
typedef int (*sy_vmem_visit)(void *arg, unsigned what, uintptr_t start, size_t size);

/**
 * Calls `visit` for every span and segment in `what`, in rising order of value, a span before its
 * segments. They are visited as they were at one moment. First, free segments are taken out of the
 * quantum caches, as by sy_vmem_drain; those that running threads hold count as allocated. `visit`
 * may use the arena, but not destroy it.
 *
 * Returns 0, or the value with which `visit` ended the iteration, or -1 with errno.
 *
 * Errors:
 *     EINVAL    `what` is 0 or unknown
 *     ENOMEM    no memory for the snapshot
 */
SY_API int sy_vmem_each(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg)
    SY_NONNULL(1, 3);

/** The units, the segments and the events of an arena. */
typedef struct sy_vmem_stats {
    char name[SY_VMEM_NAME_MAX + 1];
    size_t quantum;

    /* Units: total == allocated + cached + free. */
    size_t total;
    size_t allocated; /* held by callers */
    size_t cached;    /* free, in quantum caches */
    size_t free;
    size_t imported;     /* of total */
    size_t largest_free; /* of the largest free segment, or of one at most an eighth smaller */

    /* Counts. */
    size_t spans, imported_spans;
    size_t segments_allocated; /* including those in quantum caches */
    size_t segments_free;
    size_t buckets; /* of the table of allocated segments */

    /* Events since creation. Quantum caches allocate and free a magazine at a time, so operations
     * on them are not counted. */
    uint64_t allocs, frees;     /* successful ones */
    uint64_t failures;          /* allocations without room and without an import */
    uint64_t imports, releases; /* of spans that were used */
    uint64_t probes;            /* segments looked at by allocations */
    uint64_t steps;             /* segments that frees and resizing looked at to find the one */

    size_t bytes; /* of memory mapped for tags and the table */
} sy_vmem_stats;

/* sy_vmem_get_stats for a struct of `size` bytes (base.h). */
SY_API int sy_vmem_get_stats_sized(const sy_vmem *arena, sy_vmem_stats *stats, size_t size);

/**
 * Fills `stats`.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    an argument is NULL
 */
static inline int sy_vmem_get_stats(const sy_vmem *arena, sy_vmem_stats *stats) {
    return sy_vmem_get_stats_sized(arena, stats, sizeof *stats);
}

/**
 * Examines every structure of the arena. It is for tests, and holds the arena's lock for the whole
 * time.
 *
 * Returns the number of broken invariants: 0 if all is well.
 *
 *     assert(sy_vmem_verify(ports) == 0);
 */
SY_API size_t sy_vmem_verify(const sy_vmem *arena) SY_NONNULL(1);

SY_END_DECLS

#endif
