/*
 * What is measured of arenas (slabyard/vmem.h), as the Rust harness sees it.
 *
 * Above: src/vmem/kernels.rs, which mirrors these structs field by field, and decides what runs
 * when and what it counts as. Below: arenas, and a list searched from its front as the control.
 *
 * Two tables: objects from a quantum cache, in the loops of kernels.h; and segments of a range of
 * integers, which nothing is ever written to.
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

/* What is free. */
typedef struct bench_gaps {
    size_t units, segments;
    size_t largest; /* units of the largest segment */
} bench_gaps;

/*
 * Segments with random lifetimes. One that was refused has its size and its life like the others,
 * so what is asked for, and when, does not depend on what is refused. All zero but `segments`,
 * `room` and `random` is none of them.
 */
typedef struct bench_population {
    bench_segment *segments;
    size_t live, room;
    size_t volume; /* units of all that live, refused ones among them */
    uint64_t random;
    uint64_t asked, refused; /* allocations */
} bench_population;

/* One way to give out the range [0, units) in segments. */
typedef struct bench_fit {
    const char *name;

    void *(*open)(size_t units);
    /* Nothing may be allocated any more; otherwise a message and an abort. */
    void (*close)(void *state);

    /* Gives each a value, by its size; takes back each that was not refused. */
    void (*alloc)(void *state, bench_segment *segments, size_t count);
    void (*free)(void *state, const bench_segment *segments, size_t count);

    /*
     * Again and again until `units` were asked for: births until `volume` units live, then one
     * dies, any of them with the same chance, so that lifetimes are exponential. Sizes are 1 to
     * BENCH_SIZES, each octave as frequent as any other.
     */
    void (*age)(void *state, bench_population *population, size_t volume, uint64_t units);

    void (*count)(void *state, bench_counts *counts);
    void (*gaps)(void *state, bench_gaps *gaps);
} bench_fit;

enum { BENCH_SIZES = 1023 };

/* "instant", "best" and "next", fits of an arena, and "first-fit list"; `count` gets the length. */
const bench_fit *bench_fits(size_t *count);

/* Moves `tail` random ones of `live` segments to the end; their order is random too. */
void bench_choose(bench_segment *segments, size_t live, size_t tail, uint64_t *random);

/* Gives each a size of 1 to `most` units, all equally frequent. */
void bench_resize(bench_segment *segments, size_t count, size_t most, uint64_t *random);

/*
 * A walk through all of `count` nodes of 64 bytes in random order, each found through the one
 * before: lays it out, and takes so many steps of it from a node, giving the node it arrives at.
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
