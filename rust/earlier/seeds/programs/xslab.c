/*
 * The tables of xslab's document: slots of 32 bytes from a pool of one thread, allocated and freed
 * alone and in batches; and from a pool of all threads, by 1 to 8 of them. See seeds.h.
 */
#include "seeds.h"

#include <x/base/slab.h>

enum {
    BYTES = 32,
    PAIRS = 100000, /* pairs of a sample, and of each thread */
    BATCH_MOST = 4096,
};

struct pools {
    enum seeds_who who;
    xSlab *one;   /* the pool of one thread */
    xSlabMt *all; /* the pool of all threads */
    size_t count; /* objects of a batch, or threads */
    void **objects;
};

SEEDS_INLINE void *one_take(enum seeds_who who, struct pools *pools) {
    void *object = who == SEEDS_SYSTEM   ? xSlabAlloc(pools->one)
                   : who == SEEDS_MALLOC ? malloc(BYTES)
                                         : calloc(1, BYTES);
    return seeds_hide(seeds_got(object));
}

SEEDS_INLINE void one_give(enum seeds_who who, struct pools *pools, void *object) {
    if (who == SEEDS_SYSTEM)
        xSlabFree(pools->one, object);
    else
        free(object);
}

SEEDS_INLINE void pair_loop(enum seeds_who who, struct pools *pools) {
    for (size_t i = 0; i < PAIRS; i++) one_give(who, pools, one_take(who, pools));
}

/* Frees a batch in the order in which it was allocated. */
SEEDS_INLINE void batch_loop(enum seeds_who who, struct pools *pools) {
    size_t count = pools->count;
    void **objects = pools->objects;
    for (size_t batch = 0; batch < PAIRS / count; batch++) {
        for (size_t i = 0; i < count; i++) objects[i] = one_take(who, pools);
        for (size_t i = 0; i < count; i++) one_give(who, pools, objects[i]);
    }
}

SEEDS_INLINE void all_loop(enum seeds_who who, struct pools *pools) {
    for (size_t i = 0; i < PAIRS; i++) {
        void *object = who == SEEDS_SYSTEM ? xSlabMtAlloc(pools->all) : malloc(BYTES);
        object = seeds_hide(seeds_got(object));
        if (who == SEEDS_SYSTEM)
            xSlabMtFree(pools->all, object);
        else
            free(object);
    }
}

static double pair_ns(void *argument) {
    struct pools *pools = argument;
    uint64_t start = seeds_now();
    SEEDS_FOR(pools->who, pair_loop, pools);
    return (double)(seeds_now() - start) / PAIRS;
}

static double batch_ns(void *argument) {
    struct pools *pools = argument;
    uint64_t start = seeds_now();
    SEEDS_FOR(pools->who, batch_loop, pools);
    return (double)(seeds_now() - start) / (double)(PAIRS / pools->count);
}

static void all_work(void *argument) {
    struct pools *pools = argument;
    SEEDS_FOR(pools->who, all_loop, pools);
}

/* The time of a pair, as one thread sees it. */
static double all_ns(void *argument) {
    struct pools *pools = argument;
    return seeds_team_ns(pools->count, all_work, pools) / PAIRS;
}

static void measure_one(const struct seeds_task *task) {
    static void *objects[BATCH_MOST];
    struct pools pools = {.who = task->who, .count = task->number, .objects = objects};
    pools.one = seeds_got(xSlabCreate(BYTES, 16, 0));
    seeds_print(task, "ns", seeds_median(task, task->number > 1 ? batch_ns : pair_ns, &pools));
}

static void measure_all(const struct seeds_task *task) {
    struct pools pools = {.who = task->who, .count = task->number};
    pools.all = seeds_got(xSlabMtCreate(BYTES, 16, 0));
    seeds_print(task, "ns", seeds_median(task, all_ns, &pools));
}

static const struct seeds_row rows[] = {
    {"pair-calloc", measure_one, 1},
    {"pair", measure_one, 1},
    {"batch-16", measure_one, 16},
    {"batch-256", measure_one, 256},
    {"batch-4096", measure_one, BATCH_MOST},
    {"threads-1", measure_all, 1},
    {"threads-2", measure_all, 2},
    {"threads-4", measure_all, 4},
    {"threads-8", measure_all, SEEDS_THREADS_MOST},
};

SEEDS_MAIN(rows)
