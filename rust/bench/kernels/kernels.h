/*
 * The measured loops as the Rust harness sees them: one table of functions an allocator and layout.
 *
 * Above: src/kernels.rs, which mirrors these structs field by field; the harness decides which
 * kernel runs when. Below: the allocators. A kernel is only its loop. The harness measures the
 * time around it, except for the tail kernels, which read the clock around each operation.
 *
 * What always holds: before an object is freed, its first eight bytes are written, and its name
 * escapes. This is so in every kernel and for every allocator. An object's name is the argument of
 * its free, 64 bits in place of a pointer in `objects`: its address, or a handle if the allocator
 * gives handles.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Traits of an allocator. */
enum {
    BENCH_SHARED = 1u << 0, /* any thread may allocate, and free what another allocated */
    BENCH_GROWS = 1u << 1,  /* opening does not touch the memory of all objects */
};

/*
 * A histogram of clock ticks: exact below BENCH_EXACT_TICKS, then BENCH_STEPS buckets an octave,
 * so no bucket is wider than 1/64 of its ticks.
 */
enum { BENCH_EXACT_TICKS = 2048, BENCH_STEPS = 64, BENCH_OCTAVES = 53 };
enum { BENCH_BUCKETS = BENCH_EXACT_TICKS + BENCH_STEPS * BENCH_OCTAVES };

typedef struct bench_histogram {
    uint64_t buckets[BENCH_BUCKETS];
} bench_histogram;

/* The queues between two threads; the harness gives zeroed memory, aligned to 128. */
enum { BENCH_RING_SLOTS = 1024, BENCH_BATCH = 120, BENCH_BATCHES = 16 };
size_t bench_ring_bytes(void);
size_t bench_queue_bytes(void);

typedef struct bench_allocator {
    const char *name;
    uint64_t traits;

    /* Makes a state for objects of `size` bytes, of which at most `capacity` are live; NULL on
     * failure. */
    void *(*open)(size_t size, size_t capacity);
    void (*close)(void *state);
    /* Called last by every thread that used the state. */
    void (*thread_end)(void *state);

    void (*fill)(void *state, void **objects, size_t count);
    void (*drain)(void *state, void **objects, size_t count);

    void (*pair)(void *state, uint64_t count);
    void (*batch_lifo)(void *state, void **objects, size_t size, uint64_t rounds);
    void (*batch_fifo)(void *state, void **objects, size_t size, uint64_t rounds);
    void (*batch_random)(void *state, void **objects, const uint32_t *order, size_t size,
                         uint64_t rounds);
    /* Replaces a random one of `live` objects, `count` times. */
    void (*steady)(void *state, void **objects, size_t live, uint64_t count, uint64_t seed);
    void (*churn)(void *state, uint64_t rounds);
    /* Looks up each of `live` objects by its name, in the order of `objects`. */
    void (*get)(void *state, void **objects, size_t live, uint64_t rounds);
    /* Pins and unpins each object in the same order; NULL if objects cannot be pinned. */
    void (*pin)(void *state, void **objects, size_t live, uint64_t rounds);

    void (*ring_put)(void *state, void *ring, uint64_t count);
    void (*ring_take)(void *state, void *ring, uint64_t count);
    void (*ring_read)(void *state, void *ring, uint64_t count); /* takes, and reads the object */
    void (*queue_put)(void *state, void *queue, uint64_t batches);
    void (*queue_take)(void *state, void *queue, uint64_t batches);
    void (*exchange)(void *state, void **slots, size_t slots_count, uint64_t count, uint64_t seed);

    /* As steady, each operation timed on its own. */
    void (*tail_steady)(void *state, void **objects, size_t live, uint64_t count, uint64_t seed,
                        bench_histogram *allocs, bench_histogram *frees);
    /* As fill, each allocation timed; with `write`, the first write is timed with it. */
    void (*tail_grow)(void *state, void **objects, size_t count, int write,
                      bench_histogram *allocs);
    /* As drain, each free timed. */
    void (*tail_drain)(void *state, void **objects, size_t count, bench_histogram *frees);
} bench_allocator;

/*
 * The same source is compiled BENCH_LAYOUTS times with different code placement, and once more,
 * as layout BENCH_VERIFY, with every object filled with a pattern, entered in a ledger while it
 * lives and checked when it is freed.
 */
enum { BENCH_LAYOUTS = 3, BENCH_VERIFY = 3 };

/* The table of one layout; `count` receives its length. */
const bench_allocator *bench_table_0(size_t *count);
const bench_allocator *bench_table_1(size_t *count);
const bench_allocator *bench_table_2(size_t *count);
const bench_allocator *bench_table_3(size_t *count);

/* Slabyard's heap, inlined for a constant size; NULL for sizes that were not compiled. */
const bench_allocator *bench_heap_0(size_t size);
const bench_allocator *bench_heap_1(size_t size);
const bench_allocator *bench_heap_2(size_t size);
const bench_allocator *bench_heap_3(size_t size);

/* snmalloc compiled into the loop with a constant size; NULL for sizes that were not compiled. */
const bench_allocator *bench_snmalloc_0(size_t size);
const bench_allocator *bench_snmalloc_1(size_t size);
const bench_allocator *bench_snmalloc_2(size_t size);
const bench_allocator *bench_snmalloc_3(size_t size);

/* The ledger of BENCH_VERIFY (verify.cpp); it reports a broken object and aborts. */
void bench_verify_born(void *object, size_t size, void *name);
void bench_verify_seen(void *object, void *name);
void bench_verify_died(void *object, size_t size, void *name);
size_t bench_verify_live(void);

/* Ticks of a timed operation that does nothing: the median of many. */
uint64_t bench_timer_floor(void);

#ifdef __cplusplus
}
#endif
#endif
