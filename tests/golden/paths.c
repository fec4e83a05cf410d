/*
 * paths.c: the fast paths whose instructions are counted, and a free list by hand, which is the
 * floor of their cost. The table is at the end. This file is compiled at -O2, as a user's
 * program.
 *
 * To add a path, write a function that only calls the function to be counted, and a prepare
 * function that allocates a few objects and frees them. Add a row to the table, and run
 * `tests/golden/check.sh --update`.
 */
#include <slabyard/cache.h>
#include <slabyard/handle.h>
#include <slabyard/heap.h>
#include <slabyard/pool.h>
#include <slabyard/vmem.h>

#include <stdlib.h>

#include "golden.h"

/* Objects that a prepare function allocates and frees, so that the next allocation does not need
 * the slow path. */
enum { WARM_OBJECTS = 8 };

/* Writes to the object. The compiler has to assume that its content is used and changed. */
static inline void touch(void *object, size_t value) {
    *(size_t *)object = value;
    __asm__ volatile("" : : "r"(object) : "memory");
}

/* ---- the floor: a free list by hand ---- */

typedef struct freelist {
    void *free;
} freelist;

static void *prepare_freelist(void) {
    static void *slots[WARM_OBJECTS][8];
    static freelist list;
    list.free = NULL;
    for (size_t i = 0; i < WARM_OBJECTS; i++) {
        slots[i][0] = list.free;
        list.free = slots[i];
    }
    return &list;
}

static void *freelist_alloc(void *where) {
    freelist *list = where;
    void *object = list->free;
    if (SY_UNLIKELY(object == NULL)) return golden_miss(list);
    list->free = *(void **)object;
    return object;
}

static void freelist_release(void *where, void *object) {
    freelist *list = where;
    *(void **)object = list->free;
    list->free = object;
}

static void freelist_pair(void *where, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *object = freelist_alloc(where);
        touch(object, i);
        freelist_release(where, object);
    }
}

/* ---- pool ---- */

static sy_pool *make_pool(size_t capacity) {
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 64, .capacity = capacity});
    if (pool == NULL) abort();
    return pool;
}

static void *prepare_pool(void) {
    sy_pool *pool = make_pool(0);
    void *objects[WARM_OBJECTS];
    for (size_t i = 0; i < WARM_OBJECTS; i++) objects[i] = sy_pool_alloc(pool);
    for (size_t i = 0; i < WARM_OBJECTS; i++) sy_pool_free(pool, objects[i]);
    return pool;
}

static void *prepare_bounded_pool(void) {
    sy_pool *pool = make_pool(WARM_OBJECTS);
    void *object = sy_pool_alloc(pool);
    sy_pool_free(pool, object);
    return pool;
}

static void *prepare_fresh_pool(void) { return make_pool(0); }

static void *pool_alloc(void *where) { return sy_pool_alloc(where); }

static void pool_release(void *where, void *object) { sy_pool_free(where, object); }

static void pool_pair(void *where, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *object = sy_pool_alloc(where);
        touch(object, i);
        sy_pool_free(where, object);
    }
}

/* ---- cache ---- */

static void *cache_alloc(void *where) { return sy_cache_alloc(where); }

static void cache_release(void *where, void *object) { sy_cache_free(where, object); }

static void *prepare_cache(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "golden", .size = 64});
    if (cache == NULL) abort();
    void *objects[WARM_OBJECTS];
    for (size_t i = 0; i < WARM_OBJECTS; i++) objects[i] = sy_cache_alloc(cache);
    for (size_t i = 0; i < WARM_OBJECTS; i++) sy_cache_free(cache, objects[i]);
    return cache;
}

static void cache_pair(void *where, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *object = sy_cache_alloc(where);
        touch(object, i);
        sy_cache_free(where, object);
    }
}

/* ---- handles ---- */

static sy_handle some_handle;

static void *prepare_handles(void) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "golden", .size = 64, .flags = SY_HANDLES});
    if (cache == NULL) abort();
    sy_handle handles[WARM_OBJECTS];
    for (size_t i = 0; i < WARM_OBJECTS; i++) sy_handle_alloc(cache, &handles[i]);
    for (size_t i = 1; i < WARM_OBJECTS; i++) sy_handle_free(cache, handles[i]);
    some_handle = handles[0];
    return cache;
}

static void handle_pair(void *where, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sy_handle handle;
        touch(sy_handle_alloc(where, &handle), i);
        sy_handle_free(where, handle);
    }
}

static void handle_get(void *where, size_t count) {
    sy_handle handle = some_handle;
    for (size_t i = 0; i < count; i++) {
        __asm__ volatile("" : "+r"(handle));
        touch(sy_handle_get(where, handle), i);
    }
}

/* ---- arena ---- */

static void *prepare_arena(void) {
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.size = 1 << 20, .cached_max = 8});
    uintptr_t values[WARM_OBJECTS];
    if (arena == NULL) abort();
    for (size_t i = 0; i < WARM_OBJECTS; i++) sy_vmem_alloc(arena, 4, SY_VMEM_INSTANT, &values[i]);
    for (size_t i = 0; i < WARM_OBJECTS; i++) sy_vmem_free(arena, values[i], 4);
    return arena;
}

static void arena_pair(void *where, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uintptr_t value;
        sy_vmem_alloc(where, 4, SY_VMEM_INSTANT, &value);
        __asm__ volatile("" : "+r"(value));
        sy_vmem_free(where, value, 4);
    }
}

/* ---- heap ---- */

enum { SMALL = 64, MIDDLE = 5000 };

static void *prepare_heap(void) {
    static const size_t sizes[] = {SMALL, MIDDLE};
    void *objects[WARM_OBJECTS];
    for (size_t size = 0; size < 2; size++) {
        for (size_t i = 0; i < WARM_OBJECTS; i++) objects[i] = sy_malloc(sizes[size]);
        for (size_t i = 0; i < WARM_OBJECTS; i++) sy_free(objects[i]);
    }
    return (void *)sizes;
}

/* The names in parentheses call the exported functions, as for sizes that are not constant. */

static void *heap_malloc(void *where) {
    (void)where;
    return (sy_malloc)(SMALL);
}

static void *heap_malloc_middle(void *where) {
    (void)where;
    return (sy_malloc)(MIDDLE);
}

static void *heap_malloc_constant(void *where) {
    (void)where;
    return sy_malloc(SMALL);
}

static void heap_release(void *where, void *object) {
    (void)where;
    sy_free(object);
}

static void heap_release_sized(void *where, void *object) {
    (void)where;
    (sy_free_sized)(object, SMALL);
}

static void heap_release_constant(void *where, void *object) {
    (void)where;
    sy_free_sized(object, SMALL);
}

static void heap_pair(void *where, size_t count) {
    (void)where;
    for (size_t i = 0; i < count; i++) {
        void *object = (sy_malloc)(SMALL);
        touch(object, i);
        sy_free(object);
    }
}

static void heap_pair_constant(void *where, size_t count) {
    (void)where;
    for (size_t i = 0; i < count; i++) {
        void *object = sy_malloc(SMALL);
        touch(object, i);
        sy_free_sized(object, SMALL);
    }
}

/* ---- the table ---- */

const golden_path golden_paths[] = {
    {.name = "freelist_alloc", .prepare = prepare_freelist, .alloc = freelist_alloc},
    {.name = "freelist_release",
     .prepare = prepare_freelist,
     .object = freelist_alloc,
     .release = freelist_release},
    {.name = "freelist_pair", .prepare = prepare_freelist, .loop = freelist_pair},
    {.name = "pool_alloc", .prepare = prepare_pool, .alloc = pool_alloc},
    {.name = "pool_alloc_bounded", .prepare = prepare_bounded_pool, .alloc = pool_alloc},
    {.name = "pool_alloc_fresh", .prepare = prepare_fresh_pool, .alloc = pool_alloc},
    {.name = "pool_free", .prepare = prepare_pool, .object = pool_alloc, .release = pool_release},
    {.name = "pool_free_unchecked",
     .prepare = prepare_pool,
     .object = pool_alloc,
     .release = golden_pool_release},
    {.name = "pool_pair", .prepare = prepare_pool, .loop = pool_pair},
    {.name = "pool_pair_bounded", .prepare = prepare_bounded_pool, .loop = pool_pair},
    {.name = "cache_alloc", .prepare = prepare_cache, .alloc = cache_alloc},
    {.name = "cache_free",
     .prepare = prepare_cache,
     .object = cache_alloc,
     .release = cache_release},
    {.name = "cache_free_unchecked",
     .prepare = prepare_cache,
     .object = cache_alloc,
     .release = golden_cache_release},
    {.name = "cache_pair", .prepare = prepare_cache, .loop = cache_pair},
    {.name = "handle_pair", .prepare = prepare_handles, .loop = handle_pair},
    {.name = "handle_get", .prepare = prepare_handles, .loop = handle_get},
    {.name = "arena_pair", .prepare = prepare_arena, .loop = arena_pair},
    {.name = "malloc", .prepare = prepare_heap, .alloc = heap_malloc},
    {.name = "malloc_middle", .prepare = prepare_heap, .alloc = heap_malloc_middle},
    {.name = "free", .prepare = prepare_heap, .object = heap_malloc, .release = heap_release},
    {.name = "free_sized",
     .prepare = prepare_heap,
     .object = heap_malloc,
     .release = heap_release_sized},
    {.name = "malloc_pair", .prepare = prepare_heap, .loop = heap_pair},
    {.name = "malloc_constant", .prepare = prepare_heap, .alloc = heap_malloc_constant},
    {.name = "free_constant",
     .prepare = prepare_heap,
     .object = heap_malloc,
     .release = heap_release_constant},
    {.name = "malloc_pair_constant", .prepare = prepare_heap, .loop = heap_pair_constant},
};

const size_t golden_path_count = sizeof golden_paths / sizeof golden_paths[0];
