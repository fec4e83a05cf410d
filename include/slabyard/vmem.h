/*
 * slabyard/vmem.h: arenas: any resource that is a set of integers, given out in segments.
 * Addresses, process ids, ports, disk blocks, offsets in a region shared with a device.
 *
 * An arena has spans, ranges of integers that it was given or has imported; each span is cut into
 * segments, allocated or free. Nothing is ever written into the resource: what the arena knows of
 * it (boundary tags) lies in memory of its own.
 *
 *     span                                        span
 *     | allocated | free    | allocated | free |  | free                  |
 *
 *   - Free neighbours are one segment: what was freed together can be allocated together.
 *   - Allocating and freeing take the same short time for ten segments as for ten million: free
 *     segments lie in lists by size, allocated ones in a table by value.
 *   - An arena may import spans from another arena, or by functions of the caller's, and gives each
 *     back once, when all of it is free.
 *   - Small sizes may be kept in quantum caches: magazines of the threads', as fast as a cache's.
 *
 * After Bonwick and Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and
 * Arbitrary Resources", USENIX 2001, section 4.
 *
 * 0 is a value like any other, so values are given through a pointer, apart from the status: 0, or
 * -1 with errno and nothing changed. Sizes are in units of the resource and are rounded up to a
 * multiple of the arena's quantum; every value is a multiple of it.
 *
 * Thread rule: everything but destroying may be called by any thread at any time. No function is
 * async-signal-safe. The caller's functions are called with no lock held.
 */
#ifndef SLABYARD_VMEM_H
#define SLABYARD_VMEM_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/* An arena. Its owner is whoever created it. */
typedef struct sy_vmem sy_vmem;

enum {
    SY_VMEM_NAME_MAX = 31,    /* bytes of a name that are kept */
    SY_VMEM_CACHED_SIZES = 16 /* quantum caches at most: for 1, 2 ... 16 quanta */
};

/*
 * Gets at least `size` units for an arena, a multiple of its quantum: writes where they begin and
 * how many they are (initially `size`), both multiples of the quantum. 0, or anything else for
 * none. They belong to the arena until it releases them. Import and release may use other arenas,
 * but not the one that they serve, nor call sy_thread_idle or sy_thread_flush. They must return
 * (base.h).
 */
typedef int (*sy_vmem_import)(sy_vmem *source, void *arg, size_t size, uintptr_t *start,
                              size_t *got);

/* Takes back what an import gave, all of it, once. Must succeed. */
typedef void (*sy_vmem_release)(sy_vmem *source, void *arg, uintptr_t start, size_t size);

/* All zero is an arena with the quantum 1 and nothing in it. */
typedef struct sy_vmem_config {
    const char *name;  /* copied; NULL: "arena" */
    uintptr_t base;    /* the first span, as sy_vmem_add takes it; */
    size_t size;       /* 0: none */
    size_t quantum;    /* a power of two: every value and size is a multiple of it; 0: 1 */
    size_t cached_max; /* sizes that round up to no more than this are kept in quantum caches; at
                          most 16 quanta, 0: none.
                          Free segments of these sizes then wait for their like: in magazines of up
                          to 127, two a thread, and 4,096 or more for each processor. Not for what
                          is scarce, nor where every free is to be checked at once */

    /* Where spans come from when there is no room (with instant fit: none among the first 64 free
     * segments that may serve, if the source has some). Both functions or none. Without functions a
     * source serves by sy_vmem_alloc and sy_vmem_free; its quantum divides this one. */
    sy_vmem_import import;
    sy_vmem_release release;
    sy_vmem *source;   /* handed to the functions; must outlive the arena. NULL: none, or theirs */
    void *arg;         /* handed to the functions */
    size_t import_min; /* the least to import at a time; 0: what is needed */
    uintptr_t reserved[4]; /* zero */
} sy_vmem_config;

/*
 * A new arena. NULL and errno:
 *   EINVAL  no config; quantum not a power of two; base or size not a multiple of it, or past the
 *           end of the integers; cached_max over 16 quanta; one of import and release without the
 *           other; import_min without either or a source; a source whose quantum is larger; a
 *           reserved field that is not zero;
 *   ENOMEM  no memory, or no client number for a quantum cache (16,384 for all caches together).
 */
SY_API sy_vmem *sy_vmem_create(const sy_vmem_config *config);

/* Gives its imported spans back, and all memory. 0; -1 with EBUSY, and nothing changed, while
 * anything is allocated, or its import or release is being called. Nobody else may be using the
 * arena. NULL is a no-op. */
SY_API int sy_vmem_destroy(sy_vmem *arena);

/*
 * Adds the span [start, start + size), which stays until the arena is destroyed. -1 with errno:
 *   EINVAL  size 0; start or size not a multiple of the quantum; past the end of the integers;
 *   EEXIST  some of it is in the arena already;
 *   ENOMEM  no memory for a tag, or the arena would have more than SIZE_MAX units.
 */
SY_API int sy_vmem_add(sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/* How a free segment is chosen among those that are large enough. */
typedef enum sy_vmem_fit {
    SY_VMEM_INSTANT, /* the first of the list whose members surely are: constant time, as long as
                        there is one; then one that may be, of those in one list */
    SY_VMEM_BEST,    /* the smallest: looks through one list, which may be long */
    SY_VMEM_NEXT,    /* the first after the last one chosen so, in order of value, going around: no
                        value comes back before all others had their turn. For ids. The arena has
                        one place to go on from, so its use is for one range and kind of request.
                        Looks at segments on its way, at most about the root of all unless most
                        of the free ones are too small */
} sy_vmem_fit;

/*
 * `size` units. -1 with errno:
 *   EINVAL  size 0, or so large that rounding it to the quantum overflows; unknown fit;
 *   ENOMEM  no free segment is large enough, and nothing can be imported; no memory for a tag.
 * Sizes that have a quantum cache come from it with SY_VMEM_INSTANT.
 */
SY_API int sy_vmem_alloc(sy_vmem *arena, size_t size, sy_vmem_fit fit, uintptr_t *value)
    SY_NONNULL(1, 4);

/* What a segment has to satisfy; all zero is nothing. */
typedef struct sy_vmem_constraints {
    size_t align; /* value is `phase` more than a multiple of it: a power of two, 0: the quantum */
    size_t phase; /* less than align, a multiple of the quantum */
    size_t
        nocross; /* no multiple of it lies within (value, value + size): a power of two, 0: none */
    uintptr_t min; /* value is not less */
    uintptr_t max; /* value + size is not more; 0: the end of the integers */
} sy_vmem_constraints;

/*
 * `size` units under constraints, never from a quantum cache; NULL: none. align, phase, nocross and
 * a bound that most free segments satisfy cost no more than sy_vmem_alloc. If few or none of the
 * free segments that are large enough lie between min and max, it looks at all of these before it
 * takes one or gives up: the time is proportional to their number. -1 with errno:
 *   EINVAL  as sy_vmem_alloc; align or nocross not a power of two, or less than the quantum; phase
 *           not below align or not a multiple of the quantum; constraints that no value can
 *           satisfy (nocross or max - min less than size, max not above min, an align and phase
 *           that cross everywhere);
 *   ENOMEM  as sy_vmem_alloc. A span is imported for it once at most, and released at once if min
 *           and max lie elsewhere.
 */
SY_API int sy_vmem_xalloc(sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                          sy_vmem_fit fit, uintptr_t *value) SY_NONNULL(1, 5);

/*
 * Frees what sy_vmem_alloc gave, with the size it was asked for. A value that is not allocated, or
 * another size, is a fault (fault.h), reported with the arena's name; if the handler returns, -1
 * with EINVAL and nothing changed. A size that has a quantum cache goes to it. There a value that
 * this thread freed last is such a fault at once; any other value is looked at when the cache sends
 * it on: then the fault is raised there, and 0 was returned here. Otherwise cannot fail.
 */
SY_API int sy_vmem_free(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/* The same for what sy_vmem_xalloc gave: past the quantum caches, checked at once. What came from
 * one function may be freed by the other. */
SY_API int sy_vmem_xfree(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/*
 * Changes the size of an allocated segment where it is, from `size` to `new_size`; the start stays.
 * Growing takes from the free segment behind it (what waits in a quantum cache is not free);
 * shrinking adds to it. -1 with errno:
 *   EINVAL  new_size as in sy_vmem_alloc; value or size as in sy_vmem_free, after the report;
 *   ENOMEM  what lies behind is not free or too small, or the span ends; no memory for a tag.
 */
SY_API int sy_vmem_resize(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size)
    SY_NONNULL(1);

/* Gives the free segments in quantum caches back, as far as they can be reached: this thread's, the
 * depot's, those of idle and ended threads; running threads follow at their next exchange. Happens
 * by itself before an allocation fails for want of room. */
SY_API void sy_vmem_drain(sy_vmem *arena) SY_NONNULL(1);

/* ---- looking ---- */

/* What is counted and walked: any of these together. */
enum {
    SY_VMEM_ALLOCATED = 1, /* segments; what waits in a quantum cache among them */
    SY_VMEM_FREE = 2,      /* segments */
    SY_VMEM_SPANS = 4,
};

/* 1 if all of [start, start + size) lies in spans of the arena, neighbouring ones together; else 0.
 */
SY_API int sy_vmem_contains(const sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/* Units: SY_VMEM_FREE; SY_VMEM_ALLOCATED, less what waits in quantum caches (exact while nobody
 * uses those); both together: all that the arena has. */
SY_API size_t sy_vmem_size(const sy_vmem *arena, unsigned what) SY_NONNULL(1);

/* Called for each; nonzero ends the walk. `what` is one of the three. */
typedef int (*sy_vmem_visit)(void *arg, unsigned what, uintptr_t start, size_t size);

/*
 * Calls `visit` for everything in `what`, in rising order of value, a span before its segments, as
 * all was at one moment. Free segments in quantum caches are first given back as sy_vmem_drain
 * does; those that running threads hold count as allocated. `visit` may use the arena, destroying
 * excepted. 0; what visit returned if that ended it; -1 with errno: EINVAL (`what` is 0 or
 * unknown), ENOMEM (no memory for the snapshot).
 */
SY_API int sy_vmem_walk(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg)
    SY_NONNULL(1, 3);

typedef struct sy_vmem_stats {
    char name[SY_VMEM_NAME_MAX + 1];
    size_t quantum;

    /* Units: total == allocated + cached + free. */
    size_t total;
    size_t allocated; /* held by callers */
    size_t cached;    /* waiting in quantum caches */
    size_t free;
    size_t imported;     /* of total */
    size_t largest_free; /* size of the largest free segment, or of one at most an eighth smaller */

    /* Numbers of. */
    size_t spans, imported_spans;
    size_t segments_allocated; /* those in quantum caches among them */
    size_t segments_free;
    size_t buckets; /* of the table of allocated segments */

    /* Events since creation, quantum caches not counted: they come by the magazine-full. */
    uint64_t allocs, frees;     /* that succeeded */
    uint64_t failures;          /* allocations for which there was no room and no import */
    uint64_t imports, releases; /* of spans that were of use */
    uint64_t probes;            /* segments looked at by allocations */
    uint64_t steps;             /* segments looked at by frees and resizing, to find the one */

    size_t bytes; /* of memory for tags and table, mapped */
} sy_vmem_stats;

/* Fills `stats`. 0; -1 with EINVAL for NULL. */
SY_API int sy_vmem_get_stats(const sy_vmem *arena, sy_vmem_stats *stats);

/* Walks every structure of the arena and gives the number of broken invariants: 0. For tests; takes
 * the arena's lock for as long as that takes. */
SY_API size_t sy_vmem_verify(const sy_vmem *arena) SY_NONNULL(1);

SY_END_DECLS

#endif
