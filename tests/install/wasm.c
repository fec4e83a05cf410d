/*
 * wasm.c: objects of a cache, of all sizes, and handles, in random order; each has a pattern, which
 * is checked when it is freed. For one thread.
 */
#include "slabyard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE = 3000, ROUNDS = 400000, SIZE_MAX_KIB = 300 };

typedef struct object {
    unsigned char *start;
    size_t size;
    sy_handle handle;
    unsigned char pattern;
} object;

static object live[LIVE];
static sy_cache *cache, *named;
static unsigned long long state = 7;

static unsigned below(unsigned limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % limit);
}

static void must(int fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "wasm: not so: %s\n", what);
    exit(1);
}

static void end(object *it, unsigned kind) {
    if (!it->start) return;
    for (size_t i = 0; i < it->size; i++)
        must(it->start[i] == it->pattern, "an object keeps its content");
    if (kind == 0) sy_cache_free(cache, it->start);
    if (kind == 1) sy_free(it->start);
    if (kind == 2) {
        must(sy_handle_get(named, it->handle) == it->start, "a handle leads to its object");
        must(sy_handle_free(named, it->handle), "a handle is freed once");
        must(!sy_handle_get(named, it->handle), "a handle is stale then");
    }
    it->start = NULL;
}

static void begin(object *it, unsigned kind) {
    it->pattern = (unsigned char)below(256);
    it->size = kind == 1 ? 1 + below(below(50) ? 3000 : SIZE_MAX_KIB << 10) : 64;
    if (kind == 0) it->start = sy_cache_alloc(cache);
    if (kind == 1) it->start = sy_malloc(it->size);
    if (kind == 2) it->start = sy_handle_alloc(named, &it->handle);
    must(it->start != NULL, "there is memory");
    memset(it->start, it->pattern, it->size);
}

int main(void) {
    cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    named = sy_cache_create(&(sy_cache_config){.name = "named", .size = 64, .flags = SY_HANDLES});
    must(cache && named, "caches are created");
    for (int round = 0; round < ROUNDS; round++) {
        unsigned i = below(LIVE), kind = i % 3;
        end(&live[i], kind);
        begin(&live[i], kind);
    }
    must(sy_verify() == 0, "the structures are sound");
    for (unsigned i = 0; i < LIVE; i++) end(&live[i], i % 3);
    must(sy_cache_destroy(cache) == 0 && sy_cache_destroy(named) == 0, "no object is left");
    must(sy_trim() > 0, "memory goes back");
    must(sy_verify() == 0, "the structures are sound at the end");
    must(sy_platform_has("free-addresses") == 0, "the platform says what it lacks");
    return 0;
}
