/*
 * caches.h: for tests that make caches: each step succeeds, and at its end a cache is whole.
 */
#ifndef SLABYARD_TESTS_CACHES_H
#define SLABYARD_TESTS_CACHES_H

#include <slabyard/cache.h>
#include <slabyard/checks.h>

#include "chunk/chunk.h"
#include "magazine/store.h"
#include "support/child.h"

/* The cache, all chunks and all magazines are as they must be. */
static inline void sound(sy_cache *cache) {
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
}

static inline sy_cache *make(sy_cache_config config) {
    sy_cache *cache = sy_cache_create(&config);
    must(cache != NULL);
    must(sy_cache_in_use(cache) == 0);
    return cache;
}

static inline void end(sy_cache *cache) {
    sound(cache);
    must(sy_cache_destroy(cache) == 0);
}

static inline void *get(sy_cache *cache) {
    void *object = sy_cache_alloc(cache);
    must(object != NULL);
    return object;
}

/* Each flag alone, and all flags together. */
enum { FLAGS_COUNT = 4 };
static const unsigned FLAGS[FLAGS_COUNT]
    __attribute__((unused)) = {0, SY_CHECKED, SY_COLOUR, SY_CHECKED | SY_COLOUR};

#endif
