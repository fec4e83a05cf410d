/*
 * The measured functions over arenas (slabyard/vmem.h), as the Rust harness sees them.
 *
 * Above: src/vmem/kernels.rs, which mirrors these structs field by field, and decides which
 * function runs and how its work is counted. Below: arenas, and as the control a list that is
 * searched from its front.
 *
 * There are two tables: objects from a quantum cache, in the loops of kernels.h; and segments of a
 * range of integers, which are no memory.
 */
#ifndef BENCH_VMEM_H
#define BENCH_VMEM_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Objects of `size` bytes, a power of two, out of real memory, so that the loops can write to them:
 * "cache-called", an object cache behind its functions; "arena", a quantum cache; and
 * "arena-uncached", the same arena past its quantum caches.
 */
const bench_allocator *bench_vmem_table_0(size_t *count);
const bench_allocator *bench_vmem_table_1(size_t *count);
const bench_allocator *bench_vmem_table_2(size_t *count);
const bench_allocator *bench_vmem_table_3(size_t *count);

/* The value of a segment that was refused: there is none. */
#define BENCH_REFUSED UINTPTR_MAX

typedef struct bench_segment {
    uintptr_t value;
    size_t size;
} bench_segment;

typedef struct bench_counts {
    uint64_t allocs, frees; /* that succeeded */
    uint64_t probes;        /* segments looked at by allocations */
    uint64_t steps;         /* segments looked at by frees */
    size_t segments;        /* allocated and free, as far as it keeps either */
    size_t buckets;         /* words of a table beside them */
} bench_counts;

/* The free segments. */
typedef struct bench_gaps {
    size_t units, segments;
    size_t largest; /* units of the largest segment */
} bench_gaps;

/*
 * Segments with random lifetimes. A refused segment has a size and a lifetime like the others, so
 * the requests do not depend on refusals. A population without segments is all zero but
 * `segments`, `room` and `random`.
 */
typedef struct bench_population {
    bench_segment *segments;
    size_t live, room;
    size_t volume; /* units of all live segments, with the refused ones */
    uint64_t random;
    uint64_t asked, refused; /* allocations */
} bench_population;

/* One way to give out the range [0, units) in segments. */
typedef struct bench_fit {
    const char *name;

    void *(*open)(size_t units);
    /* Nothing may be allocated any more; otherwise a message and an abort. */
    void (*close)(void *state);

    /* Allocate segments of the given sizes and set their values; free all but refused ones. */
    void (*alloc)(void *state, bench_segment *segments, size_t count);
    void (*free)(void *state, const bench_segment *segments, size_t count);

    /*
     * Repeats until `units` were asked for: segments are born until `volume` units live, then one
     * segment dies. Each may die with the same chance, so lifetimes are exponential. Sizes are 1 to
     * BENCH_SIZES; each octave is equally frequent.
     */
    void (*age)(void *state, bench_population *population, size_t volume, uint64_t units);

    void (*count)(void *state, bench_counts *counts);
    void (*gaps)(void *state, bench_gaps *gaps);
} bench_fit;

enum { BENCH_SIZES = 1023 };

/* "instant", "best" and "next", fits of an arena, and "first-fit list"; `count` gets the length. */
const bench_fit *bench_fits(size_t *count);

/* Moves `tail` random segments of `live` to the end, in random order. */
void bench_choose(bench_segment *segments, size_t live, size_t tail, uint64_t *random);

/* Sets each size to 1 to `most` units, all equally frequent. */
void bench_resize(bench_segment *segments, size_t count, size_t most, uint64_t *random);

/*
 * A walk through `count` nodes of 64 bytes in random order. Each node points to the next.
 * bench_chase_open links the nodes. bench_chase takes `steps` steps and returns the node where it
 * arrives.
 */
typedef struct bench_node {
    struct bench_node *next;
    uint64_t rest[7];
} bench_node;

void bench_chase_open(bench_node *nodes, size_t count, uint64_t random);
const bench_node *bench_chase(const bench_node *from, uint64_t steps);

#ifdef __cplusplus
}
#endif
#endif
