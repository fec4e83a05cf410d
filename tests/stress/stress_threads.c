/*
 * stress_threads.c: thousands of short threads leave no memory behind.
 *
 * Generations of threads start, allocate, free each other's objects and end. Some are idle, some
 * have full magazines, and some allocate in destructors of thread-specific data, after the library
 * has freed their records. The library's memory for threads and magazines is the same after a
 * thousand generations as after a few.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "magazine/thread.h"
#include "stress/stress.h"

enum {
    TOGETHER = 24, /* threads of a generation */
    SLOTS = 2048,  /* through which objects outlive their threads */
    OBJECTS = 600,
    WARM = 20, /* generations until what is held is at its level */
};

static sy_cache *cache;
static _Atomic(uint64_t *) slots[SLOTS];
static pthread_key_t late_key;
static pthread_barrier_t together;
static bool warm; /* written while no thread of a generation runs */

static void mark(uint64_t *object) { object[0] = (uintptr_t)object * 3, object[7] = ~object[0]; }

static void free_marked(uint64_t *object) {
    if (!object) return;
    stress_expect(object[0] == (uintptr_t)object * 3 && object[7] == ~object[0], "it is untouched");
    object[0] = object[7] = 0;
    sy_cache_free(cache, object);
}

static uint64_t *take_marked(void) {
    uint64_t *object = sy_cache_alloc(cache);
    stress_expect(object != NULL, "there is memory");
    mark(object);
    return object;
}

/* Runs in whatever order with the library's own hook, twice: so once at least after it. */
static void late(void *round) {
    uint64_t *objects[50];
    for (size_t i = 0; i < 50; i++) objects[i] = take_marked();
    void *small = sy_malloc(100);
    for (size_t i = 0; i < 50; i++) free_marked(objects[i]);
    sy_free(small);
    if (round == (void *)1) pthread_setspecific(late_key, (void *)2);
}

static void wait_for_all(void) { pthread_barrier_wait(&together); }

/* In the first generations all threads have the most objects that a thread ever has, at the same
 * time, and then free them before any thread ends. So the library's memory reaches its level there,
 * however the threads of later generations overlap. */
static void *live(void *argument) {
    uint64_t random = (uintptr_t)argument;
    wait_for_all(); /* so that all need a record at the same time */
    if (stress_below(&random, 4) == 0) pthread_setspecific(late_key, (void *)1);
    size_t count = warm ? stress_below(&random, OBJECTS) : OBJECTS;
    for (size_t i = 0; i < count; i++) {
        size_t at = stress_below(&random, SLOTS);
        free_marked(atomic_exchange(&slots[at], take_marked()));
    }
    if (!warm) wait_for_all();
    for (size_t i = 0; i < count; i++) {
        size_t at = stress_below(&random, SLOTS);
        free_marked(atomic_exchange(&slots[at], NULL));
    }
    if (!warm) wait_for_all();
    if (stress_below(&random, 8) == 0) sy_thread_flush();
    if (stress_below(&random, 4) == 0) sy_thread_idle();
    return NULL;
}

static void generation(uint64_t *random) {
    pthread_t threads[TOGETHER];
    for (unsigned i = 0; i < TOGETHER; i++)
        stress_expect(
            pthread_create(&threads[i], NULL, live, (void *)(uintptr_t)stress_random(random)) == 0,
            "a thread starts");
    for (unsigned i = 0; i < TOGETHER; i++) pthread_join(threads[i], NULL);
}

/* Slots that are full, when no thread runs. */
static size_t live_objects(void) {
    size_t count = 0;
    for (size_t i = 0; i < SLOTS; i++) count += slots[i] != NULL;
    return count;
}

/* Made in groups of 16 for TOGETHER threads and this one, with slots up to the cache's number. */
static size_t threads_bytes_most(void) {
    return (TOGETHER + 16) * (sizeof(sy_thread) + (SY_CLIENT_DEMANDED + 1) * sizeof(sy_slot));
}

static void look(size_t *store_level, size_t *slots_level) {
    sy_cache_stats stats;
    stress_expect(sy_cache_get_stats(cache, &stats) == 0, "a cache has statistics");
    stress_verify();
    stress_verify_stats(cache);
    stress_expect(stats.in_use == live_objects(), "in use is what the slots hold");
    stress_expect(stats.in_loaded == 0, "threads that have ended hold nothing");
    stress_expect(sy_thread_count() <= 1, "nor do they count");
    stress_expect(sy_threads_bytes() <= threads_bytes_most(), "records are reused");
    /* How many are out at the same time differs from one generation to the next. */
    stress_expect(!warm || sy_store_bytes() <= *store_level * 2, "magazines are reused");
    /* Anywhere between the most that is live and the most that a depot may keep beside it. */
    stress_expect(!warm || stats.slots <= *slots_level * 2, "slots are reused");
    if (warm) return;
    if (sy_store_bytes() > *store_level) *store_level = sy_store_bytes();
    if (stats.slots > *slots_level) *slots_level = stats.slots;
}

int main(int argc, char **argv) {
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed;
    size_t store_level = 0, slots_level = 0;
    unsigned generations = 0;
    double end = stress_now() + run.seconds;
    cache = sy_cache_create(&(sy_cache_config){.name = "short lives", .size = 64});
    pthread_key_create(&late_key, late);
    pthread_barrier_init(&together, NULL, TOGETHER);
    do {
        generation(&random);
        warm = ++generations > WARM;
        look(&store_level, &slots_level);
        if (generations % 50 == 0) sy_trim();
    } while (stress_now() < end);
    for (size_t i = 0; i < SLOTS; i++) free_marked(slots[i]);
    stress_expect(sy_cache_destroy(cache) == 0, "nothing is in use at the end");
    stress_expect(stress_heap_in_use() == 0, "nor in the heap");
    printf("stress: %u threads from seed %llu\n", generations * TOGETHER,
           (unsigned long long)run.seed);
    return 0;
}
