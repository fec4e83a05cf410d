/*
 * stress_counts.c: sy_cache_in_use and similar functions are exact while no thread allocates or
 * frees, whatever trims and passes are at work.
 *
 * In each round a few threads allocate, free and end. Then one thread trims, flushes and works on
 * passes. Meanwhile another thread asks again and again how many objects are in use, how many units
 * of an arena are allocated, and tries to free an object for the second time. The answers have to
 * be the same each time.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"

enum {
    USERS = 3,
    MOST = 1500, /* objects that a user has at a time */
    LIVE = 16,   /* of these at the end of a round */
    SEGMENT = 4, /* units */
};

static sy_cache *cache, *other;
static sy_vmem *arena;
static void *live[USERS][LIVE], *freed;
static uintptr_t segments[USERS][LIVE];
static _Atomic bool trimming;

static void *use(void *argument) {
    uintptr_t user = (uintptr_t)argument;
    uint64_t random = user + 1;
    void *objects[MOST];
    uintptr_t values[MOST];
    size_t count = LIVE + stress_below(&random, MOST - LIVE);
    for (size_t i = 0; i < count; i++) {
        objects[i] = sy_cache_alloc(cache);
        stress_expect(objects[i] != NULL, "there is memory");
        stress_expect(sy_vmem_alloc(arena, SEGMENT, SY_VMEM_INSTANT, &values[i]) == 0, "units");
    }
    for (size_t i = LIVE; i < count; i++) {
        sy_cache_free(cache, objects[i]);
        stress_expect(sy_vmem_free(arena, values[i], SEGMENT) == 0, "a segment is freed");
    }
    for (size_t i = 0; i < LIVE; i++) live[user][i] = objects[i], segments[user][i] = values[i];
    return NULL;
}

/* The objects that it has freed stay free until the round ends. */
static void *use_last(void *unused) {
    (void)unused;
    void *objects[LIVE];
    for (size_t i = 0; i < LIVE; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < LIVE; i++) sy_cache_free(cache, objects[i]);
    freed = objects[0];
    return NULL;
}

/* Grows another cache, so that there are passes by growth too. */
static void work_elsewhere(void) {
    void *objects[256];
    for (size_t i = 0; i < 256; i++) objects[i] = sy_cache_alloc(other);
    for (size_t i = 0; i < 256; i++) sy_cache_free(other, objects[i]);
}

static void *trim(void *argument) {
    uint64_t random = (uintptr_t)argument;
    switch (stress_below(&random, 4)) {
    case 0: sy_trim(); break;
    case 1: sy_cache_trim(cache); break;
    case 2:
        while (sy_trim_some(1 << 20, 100000) > 0) {}
        break;
    case 3: break;
    }
    for (int i = 0; i < 20; i++) work_elsewhere();
    sy_thread_flush();
    sy_vmem_drain(arena);
    atomic_store(&trimming, false);
    return NULL;
}

static void look(void) {
    sy_cache_stats stats;
    do {
        stress_expect(sy_cache_in_use(cache) == USERS * LIVE, "objects in use");
        stress_expect(sy_cache_get_stats(cache, &stats) == 0 && stats.in_use == USERS * LIVE,
                      "objects in use, in the statistics");
        stress_expect(sy_vmem_size(arena, SY_VMEM_ALLOCATED) == USERS * LIVE * SEGMENT,
                      "units allocated");
        stress_expect(!sy_cache_try_free(cache, freed), "an object is freed once");
    } while (atomic_load(&trimming));
}

static void join(pthread_t thread) {
    stress_expect(pthread_join(thread, NULL) == 0, "a thread is joined");
}

static pthread_t start(void *(*run)(void *), uintptr_t argument) {
    pthread_t thread;
    stress_expect(pthread_create(&thread, NULL, run, (void *)argument) == 0, "a thread starts");
    return thread;
}

static void one_round(uint64_t *random) {
    pthread_t users[USERS];
    for (uintptr_t i = 0; i < USERS; i++) users[i] = start(use, i);
    for (size_t i = 0; i < USERS; i++) join(users[i]);
    join(start(use_last, 0));
    atomic_store(&trimming, true);
    pthread_t trimmer = start(trim, (uintptr_t)stress_random(random));
    look();
    join(trimmer);
    for (size_t i = 0; i < USERS; i++)
        for (size_t j = 0; j < LIVE; j++) {
            sy_cache_free(cache, live[i][j]);
            stress_expect(sy_vmem_free(arena, segments[i][j], SEGMENT) == 0, "a segment is freed");
        }
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    cache = sy_cache_create(&(sy_cache_config){.name = "counted", .size = 64});
    other = sy_cache_create(&(sy_cache_config){.name = "other", .size = 8192});
    arena = sy_vmem_create(&(sy_vmem_config){.name = "counted", .cached_max = 8});
    stress_expect(cache && other && arena, "there is memory");
    stress_expect(sy_vmem_add(arena, 1, 1 << 20) == 0, "there are units");
    unsigned rounds = 0;
    double end = stress_now() + run.seconds;
    do {
        one_round(&random);
        rounds++;
    } while (stress_now() < end);
    stress_expect(sy_cache_destroy(cache) == 0 && sy_cache_destroy(other) == 0, "all is free");
    stress_expect(sy_vmem_destroy(arena) == 0, "all units are free");
    printf("stress: %u rounds from seed %llu\n", rounds, (unsigned long long)run.seed);
    return 0;
}
