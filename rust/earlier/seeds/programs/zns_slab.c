/*
 * The tables of ZNS-Slab's document, objects of 128 bytes by handle: how long the first 1,000,000
 * allocations and their frees take, each timed alone; and what 100,000 objects take before and
 * after 1,000 cycles, in each of which 10,000 of them are freed and allocated anew. See seeds.h.
 */
#include "seeds.h"

#include <slab_alloc.h>

enum {
    BYTES = 128,
    TIMED = 1000000,
    LIVE = 100000,
    CYCLES = 1000,
    CYCLE = 10000, /* objects freed, then allocated */
    STEP = 31,     /* objects from the first one of a cycle to that of the next: a slab's number */
};

/* The handle of an object; with malloc, its address. */
SEEDS_INLINE SlabHandle take(enum seeds_who who, SlabAllocator *slabs) {
    SlabHandle handle = 0;
    char *object = who == SEEDS_SYSTEM ? alloc_obj(slabs, BYTES, &handle) : malloc(BYTES);
    *(volatile char *)seeds_got(object) = 1;
    return who == SEEDS_SYSTEM ? handle : (SlabHandle)(uintptr_t)object;
}

SEEDS_INLINE void give(enum seeds_who who, SlabAllocator *slabs, SlabHandle handle) {
    if (who != SEEDS_SYSTEM)
        free((void *)(uintptr_t)handle);
    else if (!free_obj(slabs, handle))
        seeds_fail("a live handle is refused");
}

/* ---- latency ---- */

struct timed {
    SlabAllocator *slabs;
    SlabHandle *handles;
    double *allocs, *frees;
};

/* Each figure includes both readings of the clock, as in the document's program. It also
 * includes the first write to the object, because with Slabyard that is often the first touch of
 * its page. */
SEEDS_INLINE void timed_loop(enum seeds_who who, struct timed *timed) {
    for (size_t i = 0; i < TIMED; i++) {
        uint64_t start = seeds_now();
        timed->handles[i] = take(who, timed->slabs);
        timed->allocs[i] = (double)(seeds_now() - start);
    }
    for (size_t i = 0; i < TIMED; i++) {
        uint64_t start = seeds_now();
        give(who, timed->slabs, timed->handles[i]);
        timed->frees[i] = (double)(seeds_now() - start);
    }
}

static void print_times(const struct seeds_task *task, const char *what, double *values) {
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};
    char metric[32];
    double sum = 0;
    for (size_t i = 0; i < TIMED; i++) sum += values[i];
    (void)snprintf(metric, sizeof metric, "%s average", what);
    seeds_print(task, metric, sum / TIMED);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        (void)snprintf(metric, sizeof metric, "%s %s", what, quantiles[i].name);
        seeds_print(task, metric, seeds_quantile(values, TIMED, quantiles[i].share));
    }
}

static void measure_latency(const struct seeds_task *task) {
    struct timed timed = {.slabs = seeds_got(slab_allocator_create()),
                          .handles = seeds_map(TIMED * sizeof(SlabHandle)),
                          .allocs = seeds_map(TIMED * sizeof(double)),
                          .frees = seeds_map(TIMED * sizeof(double))};
    SEEDS_FOR(task->who, timed_loop, &timed);
    print_times(task, "alloc", timed.allocs);
    print_times(task, "free", timed.frees);
}

/* ---- churn ---- */

struct churned {
    SlabAllocator *slabs;
    SlabHandle *handles;
};

SEEDS_INLINE void fill_loop(enum seeds_who who, struct churned *churned) {
    for (size_t i = 0; i < LIVE; i++) churned->handles[i] = take(who, churned->slabs);
}

SEEDS_INLINE void churn_loop(enum seeds_who who, struct churned *churned) {
    for (size_t cycle = 0; cycle < CYCLES; cycle++) {
        size_t first = cycle * STEP;
        for (size_t i = 0; i < CYCLE; i++)
            give(who, churned->slabs, churned->handles[(first + i) % LIVE]);
        for (size_t i = 0; i < CYCLE; i++)
            churned->handles[(first + i) % LIVE] = take(who, churned->slabs);
    }
}

static void measure_churn(const struct seeds_task *task) {
    struct churned churned = {.slabs = seeds_got(slab_allocator_create()),
                              .handles = seeds_map(LIVE * sizeof(SlabHandle))};
    SEEDS_FOR(task->who, fill_loop, &churned);
    double before = seeds_resident_mib();
    SEEDS_FOR(task->who, churn_loop, &churned);
    double after = seeds_resident_mib();
    seeds_print(task, "before", before);
    seeds_print(task, "after", after);
    seeds_print(task, "after / before", after / before);
}

static const struct seeds_row rows[] = {
    {"latency", measure_latency, 0},
    {"churn", measure_churn, 0},
};

SEEDS_MAIN(rows)
