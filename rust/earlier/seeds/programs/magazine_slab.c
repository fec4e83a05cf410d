/*
 * The tables of magazine-slab's document: objects of 64 bytes replaced one after the other, 500,000
 * allocated and freed with magazines and without, and rounds of 64 by 1 to 8 threads. See seeds.h.
 */
#include "seeds.h"

#include <slab.h>

enum {
    BYTES = 64,
    LIVE = 1000, /* live objects while objects are replaced */
    OPERATIONS = 500000,
    WARMED = 10000, /* objects that were allocated and freed before the bulk */
    ROUND = 64,     /* objects that a thread allocates, then frees */
    ROUNDS = 50000, /* rounds of all threads together */
};

struct cache {
    enum seeds_who who;
    struct slab_cache *slabs;
    size_t threads;
    void **objects;
};

SEEDS_INLINE void *take(enum seeds_who who, struct cache *cache) {
    void *object = who == SEEDS_SYSTEM ? slab_alloc(cache->slabs) : malloc(BYTES);
    return seeds_hide(seeds_got(object));
}

SEEDS_INLINE void give(enum seeds_who who, struct cache *cache, void *object) {
    if (who == SEEDS_SYSTEM)
        slab_free(cache->slabs, object);
    else
        free(object);
}

SEEDS_INLINE void replace_loop(enum seeds_who who, struct cache *cache) {
    void **objects = cache->objects;
    for (size_t pass = 0; pass < OPERATIONS / LIVE; pass++) {
        for (size_t i = 0; i < LIVE; i++) {
            give(who, cache, objects[i]);
            objects[i] = take(who, cache);
        }
    }
}

struct part {
    struct cache *cache;
    size_t count;
};

/* Each object is written to: with Slabyard that is often the first touch of its page. */
SEEDS_INLINE void take_loop(enum seeds_who who, struct part *part) {
    for (size_t i = 0; i < part->count; i++) {
        void *object = take(who, part->cache);
        *(volatile char *)object = 1;
        part->cache->objects[i] = object;
    }
}

SEEDS_INLINE void give_loop(enum seeds_who who, struct part *part) {
    for (size_t i = 0; i < part->count; i++) give(who, part->cache, part->cache->objects[i]);
}

SEEDS_INLINE void round_loop(enum seeds_who who, struct cache *cache) {
    void *objects[ROUND];
    for (size_t round = 0; round < ROUNDS / cache->threads; round++) {
        for (size_t i = 0; i < ROUND; i++) objects[i] = take(who, cache);
        for (size_t i = 0; i < ROUND; i++) give(who, cache, objects[i]);
    }
}

static double replace_ns(void *argument) {
    struct cache *cache = argument;
    uint64_t start = seeds_now();
    SEEDS_FOR(cache->who, replace_loop, cache);
    return (double)(seeds_now() - start) / OPERATIONS;
}

static void round_work(void *argument) {
    struct cache *cache = argument;
    SEEDS_FOR(cache->who, round_loop, cache);
}

/* The wall-clock time of an allocation or a free; threads that run in parallel share it. */
static double round_ns(void *argument) {
    struct cache *cache = argument;
    double rounds = (double)(ROUNDS / cache->threads * cache->threads);
    return seeds_team_ns(cache->threads, round_work, cache) / (rounds * 2 * ROUND);
}

static struct cache cache_of(const struct seeds_task *task, uint32_t flags, size_t objects) {
    struct cache cache = {.who = task->who, .threads = task->number};
    cache.slabs = seeds_got(slab_cache_create("seeds", BYTES, 0, flags, NULL, NULL));
    cache.objects = seeds_map(objects * sizeof *cache.objects);
    return cache;
}

static void measure_steady(const struct seeds_task *task) {
    struct cache cache = cache_of(task, 0, LIVE);
    struct part all = {&cache, LIVE};
    SEEDS_FOR(task->who, take_loop, &all);
    seeds_print(task, "ns", seeds_median(task, replace_ns, &cache));
}

/* Runs once in a process, because taking new memory is part of the figure. */
static void measure_bulk(const struct seeds_task *task) {
    struct cache cache = cache_of(task, (uint32_t)task->number, OPERATIONS);
    struct part warm = {&cache, WARMED}, all = {&cache, OPERATIONS};
    SEEDS_FOR(task->who, take_loop, &warm);
    SEEDS_FOR(task->who, give_loop, &warm);
    uint64_t start = seeds_now();
    SEEDS_FOR(task->who, take_loop, &all);
    uint64_t middle = seeds_now();
    SEEDS_FOR(task->who, give_loop, &all);
    uint64_t end = seeds_now();
    seeds_print(task, "alloc", (double)(middle - start) / OPERATIONS);
    seeds_print(task, "free", (double)(end - middle) / OPERATIONS);
}

static void measure_threads(const struct seeds_task *task) {
    struct cache cache = cache_of(task, 0, 1);
    seeds_print(task, "ns", seeds_median(task, round_ns, &cache));
}

static const struct seeds_row rows[] = {
    {"steady", measure_steady, 0},
    {"bulk", measure_bulk, 0},
    {"bulk-no-magazines", measure_bulk, SLAB_NO_MAGAZINES},
    {"threads-1", measure_threads, 1},
    {"threads-2", measure_threads, 2},
    {"threads-4", measure_threads, 4},
    {"threads-8", measure_threads, SEEDS_THREADS_MOST},
};

SEEDS_MAIN(rows)
