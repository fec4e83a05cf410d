/*
 * stress.h: what stress programs share. A program is `stress_x [SECONDS [SEED]]`; the seed decides
 * what each thread does, the machine decides when. Whatever must never be so ends the process at
 * once, in the thread that saw it.
 */
#ifndef SLABYARD_TESTS_STRESS_H
#define SLABYARD_TESTS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <slabyard/checks.h>

#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "magazine/store.h"

typedef struct stress_run {
    double seconds;
    uint64_t seed;
} stress_run;

static inline stress_run stress_arguments(int argc, char **argv) {
    stress_run run = {3, 1};
    if (argc > 1) run.seconds = strtod(argv[1], NULL);
    if (argc > 2) run.seed = strtoull(argv[2], NULL, 10);
    return run;
}

static inline void stress_expect(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "stress: not so: %s\n", what);
    abort();
}

static inline double stress_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline uint64_t stress_random(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* 0 to below - 1. */
static inline size_t stress_below(uint64_t *state, size_t below) {
    return (size_t)(stress_random(state) % below);
}

/* ---- patterns: what an owner writes over the whole of its object ---- */

static inline uint64_t stress_word(uint64_t stamp, size_t index) {
    return stamp ^ index * UINT64_C(0x9e3779b97f4a7c15);
}

/* Bytes from one written word to the next: all of them, up to the sizes whose every byte is of
 * interest; of large spans a word a cache line. */
static inline size_t stress_stride(size_t size) { return size <= 8192 ? 1 : 8; }

static inline void stress_fill(void *object, size_t size, uint64_t stamp) {
    unsigned char *bytes = object;
    size_t words = size / 8, rest = size % 8;
    for (size_t i = 0; i < words; i += stress_stride(size)) {
        uint64_t word = stress_word(stamp, i);
        memcpy(bytes + i * 8, &word, 8);
    }
    uint64_t last = stress_word(stamp, words);
    memcpy(bytes + words * 8, &last, rest);
}

static inline bool stress_is_filled(const void *object, size_t size, uint64_t stamp) {
    const unsigned char *bytes = object;
    size_t words = size / 8, rest = size % 8;
    for (size_t i = 0; i < words; i += stress_stride(size)) {
        uint64_t word = stress_word(stamp, i);
        if (memcmp(bytes + i * 8, &word, 8) != 0) return false;
    }
    uint64_t last = stress_word(stamp, words);
    return memcmp(bytes + words * 8, &last, rest) == 0;
}

static inline void stress_check(const void *object, size_t size, uint64_t stamp) {
    if (stress_is_filled(object, size, stamp)) return;
    fprintf(stderr, "stress: object %p of %zu bytes, stamp %llx, was written by another owner:\n",
            object, size, (unsigned long long)stamp);
    for (size_t i = 0; i < size / 8; i += stress_stride(size)) {
        uint64_t word;
        memcpy(&word, (const char *)object + i * 8, 8);
        if (word == stress_word(stamp, i)) continue;
        fprintf(stderr, "stress: word %zu is %llx, as of stamp %llx\n", i, (unsigned long long)word,
                (unsigned long long)stress_word(word, i));
        break;
    }
    abort();
}

/* ---- invariants of the whole library, at any moment ---- */

/* Every cache, the heap's classes included; returns how many there are. */
static inline size_t stress_verify_caches(void) {
    size_t caches = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) stress_expect(sy_cache_verify(cache) == 0, "a cache is sound");
        caches += cache != NULL;
        sy_client_unpin(client);
    }
    stress_expect(sy_mixed_verify() == 0, "mixed units are sound");
    return caches;
}

static inline void stress_verify(void) { stress_expect(sy_verify() == 0, "all is sound"); }

/* Objects of the heap's classes in use. */
static inline size_t stress_heap_in_use(void) {
    size_t objects = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        const sy_cache *cache = sy_cache_of_client(client);
        if (cache && cache->class_number) objects += sy_cache_in_use(cache);
        sy_client_unpin(client);
    }
    return objects - sy_mixed_waiting();
}

/* Only while no thread is using the cache. */
static inline void stress_verify_stats(const sy_cache *cache) {
    sy_cache_stats stats;
    stress_expect(sy_cache_get_stats(cache, &stats) == 0, "a cache has statistics");
    stress_expect(stats.slots + stats.guarded == stats.in_use + stats.in_depot + stats.in_loaded +
                                                     stats.in_quarantine + stats.free,
                  "every slot is somewhere");
    stress_expect(stats.slabs == stats.full + stats.partial + stats.empty, "every slab is counted");
    stress_expect(stats.mapped == stats.slots * stats.slot_size + stats.tail, "every byte counted");
    stress_expect(stats.slabs_made - stats.slabs_released == stats.slabs, "slabs made and gone");
    stress_expect(stats.in_use == sy_cache_in_use(cache), "in_use is one figure");
}

#endif
