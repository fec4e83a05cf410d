/*
 * stress_lookup.c: any address may be looked up at any time, also while the memory there goes back
 * to the arena or the system and is used for something else.
 *
 * Movers have many small objects, then a few large ones, and trim in between. So the same address
 * space belongs to chunks, then to large spans, then to neither. Movers fill their objects with
 * ones, so that an object that is mistaken for a descriptor is noticed. Lookers look up former
 * addresses of objects, by every function that takes any pointer.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"
#include "support/sanitized.h"

enum {
    MOVERS = 2,
    LOOKERS = 2,
    SMALL = 300,
    SMALL_MAX = 100 << 10,
    LARGE = 6,
    LARGE_MIN = 5 << 20,
    LARGE_MAX = 30 << 20,
    SEEN = 1024, /* a power of two */
};

static _Atomic uintptr_t seen[SEEN];
static _Atomic size_t seen_count;
static _Atomic uint64_t found, looked;
static _Atomic bool over;
static sy_cache *lonely; /* it has no object */
static stress_run run;

static void note(uintptr_t address) {
    size_t index = atomic_fetch_add_explicit(&seen_count, 1, memory_order_relaxed) % SEEN;
    atomic_store_explicit(&seen[index], address, memory_order_relaxed);
}

/* Writes ones to each page of an object, where headers and descriptors may have been. */
static void fill(char *object, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4096)
        memset(object + at, 0xff, bytes - at < 256 ? bytes - at : 256);
    for (size_t at = 0; at < bytes; at += SY_UNIT_BYTES / 2) note((uintptr_t)object + at);
}

static void have(void **objects, size_t count, size_t least, size_t most, uint64_t *state) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes = least + stress_below(state, most - least);
        objects[i] = sy_malloc(bytes);
        stress_expect(objects[i] != NULL, "there is memory");
        fill(objects[i], bytes);
    }
    for (size_t i = 0; i < count; i++) sy_free(objects[i]);
    sy_trim();
}

static void *move(void *number) {
    uint64_t state = run.seed * 1000 + *(const uint64_t *)number;
    void *objects[SMALL];
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        have(objects, SMALL, 1000, SMALL_MAX, &state);
        have(objects, LARGE, LARGE_MIN, LARGE_MAX, &state);
    }
    return NULL;
}

/* A descriptor that other threads may be writing: each word belongs to a run, or is zero. */
__attribute__((no_sanitize("thread"))) static bool is_descriptor(const sy_slab *slab) {
    uintptr_t start = *(const volatile uintptr_t *)&slab->start;
    size_t bytes = *(const volatile size_t *)&slab->bytes;
    return start % SY_UNIT_BYTES == 0 && bytes % SY_UNIT_BYTES == 0 && bytes <= LARGE_MAX * 2;
}

static void look(uintptr_t address) {
    const sy_slab *slab = sy_slab_at(address);
    stress_expect(!slab || is_descriptor(slab), "what is found is a descriptor");
    atomic_fetch_add_explicit(slab ? &found : &looked, 1, memory_order_relaxed);
    if (SANITIZED) return; /* the rest races with writers, and detects this afterwards */
    sy_usable_size((void *)address);
    stress_expect(!sy_cache_try_free(lonely, (void *)address), "it is not an object of that cache");
}

static void *look_up(void *number) {
    uint64_t state = run.seed * 1000 + MOVERS + *(const uint64_t *)number;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        uintptr_t address =
            atomic_load_explicit(&seen[stress_below(&state, SEEN)], memory_order_relaxed);
        look(address);
        look(address & ~(uintptr_t)(SY_CHUNK_BYTES - 1)); /* where a header would be */
        look(address ^ stress_below(&state, SY_CHUNK_BYTES));
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOVERS + LOOKERS];
    uint64_t numbers[MOVERS + LOOKERS];
    run = stress_arguments(argc, argv);
    lonely = sy_cache_create(&(sy_cache_config){.name = "lonely", .size = 64});
    stress_expect(lonely != NULL, "there is a cache");
    for (unsigned i = 0; i < MOVERS + LOOKERS; i++) {
        numbers[i] = i;
        int error = pthread_create(&threads[i], NULL, i < MOVERS ? move : look_up, &numbers[i]);
        stress_expect(error == 0, "a thread is made");
    }
    for (double end = stress_now() + run.seconds; stress_now() < end;)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    atomic_store(&over, true);
    for (unsigned i = 0; i < MOVERS + LOOKERS; i++) pthread_join(threads[i], NULL);
    stress_expect(sy_cache_destroy(lonely) == 0 && sy_chunk_verify(&sy_memory_main) == 0, "whole");
    printf("%llu lookups found a run, %llu none\n", (unsigned long long)found,
           (unsigned long long)looked);
    return 0;
}
