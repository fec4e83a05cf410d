/*
 * test_memory.c: engine instances over memory of the program: a region of shared memory, a region
 * that cannot be discarded, as of huge pages, and an arena that imports.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "chunk/map.h"
#include "os/fake.h"
#include "support/child.h"
#include "support/page_size.h"

static const size_t MIB = 1 << 20;

/* Shared memory that does not hold zeros. */
static char *map_region(size_t bytes) {
    int file = memfd_create("region", MFD_CLOEXEC);
    must(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    char *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(region != MAP_FAILED);
    close(file);
    memset(region, 0xa5, bytes);
    return region;
}

static bool within(const void *object, const char *region, size_t bytes) {
    return (const char *)object >= region && (const char *)object < region + bytes;
}

static void refused(sy_memory_config config) {
    errno = 0;
    assert_null(sy_memory_create(&config));
    assert_int_equal(errno, EINVAL);
}

static void create_refuses_what_it_documents(void **state) {
    (void)state;
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.name = "of ids"});
    errno = 0;
    assert_null(sy_memory_create(NULL));
    assert_int_equal(errno, EINVAL);
    char *somewhere = (char *)(uintptr_t)(64 * MIB);
    refused((sy_memory_config){0});
    refused((sy_memory_config){.start = somewhere});
    refused((sy_memory_config){.bytes = 8 * MIB});
    refused((sy_memory_config){.start = somewhere, .bytes = 4 * MIB - 1});
    refused((sy_memory_config){.start = somewhere + 1, .bytes = 8 * MIB - 2});
    refused((sy_memory_config){.start = somewhere, .bytes = SIZE_MAX});
    if (UINTPTR_MAX > UINT32_MAX) /* beyond all addresses */
        refused((sy_memory_config){.start = (char *)(UINTPTR_MAX - 8 * MIB), .bytes = 8 * MIB});
    refused((sy_memory_config){.start = somewhere, .bytes = 8 * MIB, .arena = arena});
    refused((sy_memory_config){.start = somewhere, .bytes = 8 * MIB, .reserved = {0, 0, 0, 1}});
    assert_int_equal(sy_vmem_destroy(arena), 0);
    assert_int_equal(sy_memory_destroy(NULL), 0);
}

static void objects_lie_in_the_region(void **state) {
    (void)state;
    enum { BYTES = 32 << 20 };
    char *region = map_region(BYTES);
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.name = "shared", .start = region, .bytes = BYTES});
    assert_non_null(memory);
    static void *objects[200000];
    size_t count = 0;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 96, .memory = memory});
    sy_cache *other = sy_cache_create(&(sy_cache_config){.size = 96});
    void *outside = sy_cache_alloc(other);
    assert_false(within(outside, region, BYTES));
    for (; count < 200000; count++) {
        objects[count] = sy_cache_zalloc(cache);
        if (!objects[count]) break;
        assert_true(within(objects[count], region, BYTES));
        for (size_t i = 0; i < 96; i++) assert_int_equal(((char *)objects[count])[i], 0);
        memset(objects[count], 1, 96);
    }
    assert_int_equal(count, 200000); /* 18 MiB */
    sy_memory_stats stats;
    assert_int_equal(sy_memory_get_stats(memory, &stats), 0);
    assert_int_equal(stats.mapped, stats.used + stats.free + stats.headers);
    assert_true(stats.used >= count * 96);
    errno = 0;
    assert_int_equal(sy_memory_destroy(memory), -1);
    assert_int_equal(errno, EBUSY);
    for (size_t i = 0; i < count; i++) sy_cache_free(cache, objects[i]);
    assert_false(sy_cache_try_free(cache, outside));
    assert_false(sy_cache_try_free(other, objects[0]));
    assert_int_equal(sy_cache_verify(cache), 0);
    sy_trim();
    sy_memory_get_stats(memory, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.clean, 0); /* the region cannot be discarded */
    assert_int_equal(sy_cache_destroy(cache), 0);
    sy_cache_free(other, outside);
    assert_int_equal(sy_cache_destroy(other), 0);
    assert_int_equal(sy_chunk_verify(memory), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    assert_null(sy_slab_at((uintptr_t)objects[0]));
    munmap(region, BYTES);
}

static void a_full_region_is_no_memory(void **state) {
    (void)state;
    enum { BYTES = 12 << 20 };
    char *region = map_region(BYTES);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 4096, .memory = memory});
    static void *objects[BYTES / 4096];
    size_t count = 0;
    errno = 0;
    while ((objects[count] = sy_cache_alloc(cache)) != NULL) count++;
    assert_int_equal(errno, ENOMEM);
    /* Each chunk of 4 MiB has 63 units for slabs, with 16 objects each. */
    size_t chunks = (uintptr_t)region % (4 * MIB) ? 2 : 3;
    assert_int_equal(count, chunks * 63 * 16);
    sy_cache_free(cache, objects[--count]);
    assert_non_null(objects[count++] = sy_cache_alloc(cache));
    while (count > 0) sy_cache_free(cache, objects[--count]);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);

    /* An object that does not fit in a chunk is a large span. */
    memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    cache = sy_cache_create(&(sy_cache_config){.size = 7 * MIB, .memory = memory});
    char *large = sy_cache_alloc(cache);
    assert_true(within(large, region, BYTES));
    memset(large, 7, 7 * MIB);
    assert_null(sy_cache_alloc(cache));
    sy_cache_free(cache, large);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, BYTES);
}

static size_t discarded;

static int discard(void *arg, void *start, size_t bytes) {
    assert_true(within(start, arg, 32 * MIB) && bytes % 4096 == 0);
    discarded += bytes;
    return madvise(start, bytes, MADV_REMOVE);
}

static void trims_discard_where_they_may(void **state) {
    (void)state;
    needs_small_pages();
    enum { BYTES = 32 << 20, COUNT = 4000 };
    char *region = map_region(BYTES);
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.start = region, .bytes = BYTES, .discard = discard, .arg = region});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 4096, .memory = memory});
    static char *objects[COUNT];
    for (size_t i = 0; i < COUNT; i++) memset(objects[i] = sy_cache_alloc(cache), (int)i, 4096);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 4) sy_cache_free(cache, objects[i]);
    discarded = 0;
    size_t bytes = sy_cache_trim(cache);
    assert_true(bytes >= (COUNT / 2) * 4096 && discarded > 0);
    for (size_t i = 0; i < COUNT; i += 4)
        for (size_t at = 0; at < 4096; at += 1000) assert_int_equal(objects[i][at], (char)i);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 4) memset(objects[i] = sy_cache_alloc(cache), (int)i, 4096);
    assert_int_equal(sy_cache_verify(cache), 0);
    sy_cache_destroy_all(cache);
    sy_memory_stats stats;
    sy_memory_get_stats(memory, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, BYTES);
}

/* ---- an arena that imports what the program maps ---- */

typedef struct supply {
    int left, out;
} supply;

static int map_more(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    supply *from = arg;
    (void)source;
    if (from->left == 0) return -1;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED);
    from->left--;
    from->out++;
    *start = (uintptr_t)memory;
    *got = size;
    return 0;
}

static void unmap(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    (void)source;
    ((supply *)arg)->out--;
    must(munmap((void *)start, size) == 0);
}

static void an_arena_of_addresses_serves_and_is_given_back(void **state) {
    (void)state;
    supply from = {.left = 2};
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.name = "huge pages",
                                                      .quantum = 4096,
                                                      .import = map_more,
                                                      .release = unmap,
                                                      .arg = &from,
                                                      .import_min = 16 * MIB});
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.arena = arena});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 1000, .memory = memory});
    static void *objects[100000];
    size_t count = 0;
    while ((objects[count] = sy_cache_alloc(cache)) != NULL) memset(objects[count++], 1, 1000);
    assert_int_equal(from.left, 0);
    assert_true(count >= 20000 && count < 100000);
    while (count > 0) sy_cache_free(cache, objects[--count]);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_true(sy_vmem_size(arena, SY_VMEM_ALLOCATED) > 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
    assert_int_equal(from.out, 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

/* Spans that are kept for reuse are released before another size finds no room. */
static void freed_large_objects_make_room_for_small_ones(void **state) {
    (void)state;
    enum { BYTES = 20 << 20 };
    char *region = map_region(BYTES);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    sy_cache *large = sy_cache_create(&(sy_cache_config){.size = 5 * MIB, .memory = memory});
    void *first = sy_cache_alloc(large), *second = sy_cache_alloc(large);
    assert_true(first && second && !sy_cache_alloc(large));
    sy_cache_free(large, first);
    sy_cache_free(large, second);
    assert_int_equal(sy_cache_destroy(large), 0);
    sy_cache *small = sy_cache_create(&(sy_cache_config){.size = 64, .memory = memory});
    void *object = sy_cache_alloc(small);
    assert_non_null(object);
    sy_cache_free(small, object);
    assert_int_equal(sy_cache_destroy(small), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, BYTES);
}

/* ---- no room while a trim runs a function of the program ---- */

static sem_t inside, go_on;
static atomic_bool waits;

/* Waits in the first call after `waits` was set. */
static void wait_inside(void) {
    if (!atomic_exchange(&waits, false)) return;
    sem_post(&inside);
    while (sem_wait(&go_on) != 0) continue;
}

static int discard_slowly(void *arg, void *start, size_t bytes) {
    (void)arg, (void)start, (void)bytes;
    wait_inside();
    return 0;
}

static int construct(void *object, void *arg) {
    (void)object, (void)arg;
    return 0;
}

static void destruct_slowly(void *object, void *arg) {
    (void)object, (void)arg;
    wait_inside();
}

static void *trim_in_thread(void *cache) {
    sy_cache_trim(cache);
    return NULL;
}

/* One chunk, whose memory is discarded by discard_slowly. */
static sy_memory *make_chunk(char **region) {
    *region = map_region(8 * MIB);
    char *start = (char *)(((uintptr_t)*region + 4 * MIB - 1) & ~(uintptr_t)(4 * MIB - 1));
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.start = start, .bytes = 4 * MIB, .discard = discard_slowly});
    assert_non_null(memory);
    return memory;
}

static void remove_chunk(sy_memory *memory, char *region) {
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, 8 * MIB);
}

enum { IN_CHUNK = 63 * 16 }; /* objects of 4096 bytes */

static sy_cache *make_full(sy_memory *memory, const sy_cache_config *like, void **objects) {
    sy_cache_config config = *like;
    size_t count = 0;
    config.memory = memory;
    sy_cache *cache = sy_cache_create(&config);
    assert_non_null(cache);
    while (count < IN_CHUNK && (objects[count] = sy_cache_alloc(cache)) != NULL) count++;
    assert_int_equal(count, IN_CHUNK);
    assert_null(sy_cache_alloc(cache));
    return cache;
}

static pthread_t trim_until_inside(sy_cache *cache) {
    pthread_t trimmer;
    atomic_store(&waits, true);
    assert_int_equal(pthread_create(&trimmer, NULL, trim_in_thread, cache), 0);
    while (sem_wait(&inside) != 0) continue;
    return trimmer;
}

static void let_go_on(pthread_t trimmer) {
    sem_post(&go_on);
    pthread_join(trimmer, NULL);
}

/* A trim sets aside little of a program's memory at a time. Other free memory serves the
 * allocation. */
static void an_allocation_is_served_beside_a_trim(void **state) {
    (void)state;
    needs_small_pages();
    for (int live = 0; live <= 1; live++) {
        static void *objects[IN_CHUNK];
        char *region;
        sy_memory *memory = make_chunk(&region);
        sy_cache *cache = make_full(memory, &(sy_cache_config){.size = 4096}, objects);
        /* All slabs are empty, or each slab keeps one object. The trim sets them aside one by
         * one. */
        for (size_t i = 0; i < IN_CHUNK; i++)
            if (!live || i % 16) sy_cache_free(cache, objects[i]);
        sy_thread_flush();
        pthread_t trimmer = trim_until_inside(cache);
        assert_non_null(sy_cache_alloc(cache));
        let_go_on(trimmer);
        sy_cache_destroy_all(cache);
        remove_chunk(memory, region);
    }
}

/* The function of the program may be waiting for the thread that allocates. */
static void an_allocation_does_not_wait_for_what_a_trim_calls(void **state) {
    (void)state;
    needs_small_pages();
    const sy_cache_config configs[] = {
        {.size = 4096},                                                     /* in discard */
        {.size = 4096, .construct = construct, .destruct = destruct_slowly} /* in a destructor */
    };
    for (size_t i = 0; i < 2; i++) {
        static void *objects[IN_CHUNK];
        char *region;
        sy_memory *memory = make_chunk(&region);
        sy_cache *cache = make_full(memory, &configs[i], objects);
        sy_cache *other = sy_cache_create(&(sy_cache_config){.size = 8192, .memory = memory});
        sy_cache_free(cache, objects[0]);
        sy_thread_flush();
        pthread_t trimmer = trim_until_inside(cache);
        errno = 0;
        assert_null(sy_cache_alloc(other));
        assert_int_equal(errno, ENOMEM);
        let_go_on(trimmer);
        sy_cache_destroy_all(cache);
        assert_int_equal(sy_cache_destroy(other), 0);
        remove_chunk(memory, region);
    }
}

static sy_cache *wanted; /* discard allocates from it */

static int discard_and_allocate(void *arg, void *start, size_t bytes) {
    (void)arg, (void)start, (void)bytes;
    if (atomic_exchange(&waits, false)) assert_null(sy_cache_alloc(wanted));
    return 0;
}

/* An allocation in `discard` itself does not wait either. */
static void discard_may_allocate(void **state) {
    (void)state;
    needs_small_pages();
    static char *objects[IN_CHUNK];
    char *region = map_region(8 * MIB);
    char *start = (char *)(((uintptr_t)region + 4 * MIB - 1) & ~(uintptr_t)(4 * MIB - 1));
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.start = start, .bytes = 4 * MIB, .discard = discard_and_allocate});
    assert_non_null(memory);
    sy_cache *cache = make_full(memory, &(sy_cache_config){.size = 4096}, (void **)objects);
    wanted = sy_cache_create(&(sy_cache_config){.size = 8192, .memory = memory});
    sy_cache_free(cache, objects[0]);
    atomic_store(&waits, true);
    sy_cache_trim(cache);
    assert_false(atomic_load(&waits));
    sy_cache_destroy_all(cache);
    assert_int_equal(sy_cache_destroy(wanted), 0);
    remove_chunk(memory, region);
}

static void what_is_slabyards_own_is_refused(void **state) {
    (void)state;
    char *own = sy_aligned_alloc(4 * MIB, 16 * MIB);
    refused((sy_memory_config){.start = own, .bytes = 16 * MIB});
    sy_free(own);
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.quantum = 8 * MIB});
    refused((sy_memory_config){.arena = arena});
    assert_int_equal(sy_vmem_destroy(arena), 0);
    /* Values that are no addresses: the memory can be made, but it gives no object. */
    arena = sy_vmem_create(&(sy_vmem_config){.size = 4 * MIB, .quantum = MIB});
    if (SY_ADDRESS_BITS == 32) skip(); /* each value is an address */
    sy_vmem_add(arena, UINTPTR_MAX / 16 + 1, 64 * MIB);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.arena = arena});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 100, .memory = memory});
    errno = 0;
    assert_null(sy_cache_alloc(cache));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

/* ---- threads and fork ---- */

static void *churn(void *arg) {
    sy_cache *cache = arg;
    enum { LIVE = 300 };
    unsigned char *live[LIVE] = {0};
    uint64_t random = (uintptr_t)live;
    for (int step = 0; step < 100000; step++) {
        size_t i = next_random(&random) % LIVE;
        if (live[i]) {
            for (size_t at = 0; at < 64; at++) must(live[i][at] == (unsigned char)i);
            sy_cache_free(cache, live[i]);
            live[i] = NULL;
        } else {
            live[i] = sy_cache_alloc(cache);
            if (live[i]) memset(live[i], (int)i, 64);
        }
        if (step % 20000 == 0) sy_cache_trim(cache);
    }
    for (size_t i = 0; i < LIVE; i++) sy_cache_free(cache, live[i]);
    return NULL;
}

static void threads_share_a_region(void **state) {
    (void)state;
    enum { BYTES = 16 << 20, THREADS = 4 };
    char *region = map_region(BYTES);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 64, .memory = memory});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, cache), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(sy_cache_in_use(cache), 0);
    assert_int_equal(sy_cache_verify(cache), 0);
    assert_int_equal(sy_chunk_verify(memory), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, BYTES);
}

typedef struct shared {
    sy_cache *cache;
    char *object;
} shared;

static void read_and_write(void *arg) {
    shared *with = arg;
    must(strcmp(with->object, "from the parent") == 0);
    strcpy(with->object, "from the child");
}

static void another_process_reads_and_writes_objects(void **state) {
    (void)state;
    enum { BYTES = 8 << 20 };
    char *region = map_region(BYTES);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = BYTES});
    shared with = {.cache = sy_cache_create(&(sy_cache_config){.size = 64, .memory = memory})};
    with.object = sy_cache_alloc(with.cache);
    strcpy(with.object, "from the parent");
    assert_int_equal(in_child(read_and_write, &with), 0);
    assert_string_equal(with.object, "from the child");
    sy_cache_free(with.cache, with.object);
    assert_int_equal(sy_cache_destroy(with.cache), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(region, BYTES);
}

static void the_systems_memory_is_counted_too(void **state) {
    (void)state;
    sy_memory_stats stats;
    void *object = sy_malloc(100);
    assert_int_equal(sy_memory_get_stats(NULL, &stats), 0);
    assert_true(stats.chunks > 0 && stats.used > 0);
    errno = 0;
    assert_int_equal(sy_memory_get_stats(NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    sy_free(object);
}

/* The map has no entries for addresses beyond user space. */
static void a_span_beyond_all_addresses_is_refused(void **state) {
    (void)state;
    if (SY_ADDRESS_BITS == 32) skip(); /* a span of numbers ends there, too */
    const uintptr_t end = SY_ADDRESS_MAX + 1;
    sy_vmem *arena = sy_vmem_create(
        &(sy_vmem_config){.base = end - 8 * MIB, .size = 32 * MIB, .quantum = 4 * MIB});
    sy_memory *memory = sy_memory_create(&(sy_memory_config){.arena = arena});
    bool clean;
    assert_true(arena && memory);
    errno = 0;
    assert_null(sy_run_take(memory, 12 * MIB, SY_UNIT_BYTES, 0, &clean));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sy_vmem_size(arena, SY_VMEM_ALLOCATED), 0);
    assert_int_equal(sy_memory_destroy(memory), 0);
    assert_int_equal(sy_vmem_destroy(arena), 0);
}

static void count_memory(sy_memory *memory, void *count) {
    (void)memory;
    ++*(int *)count;
}

/* A memory may end before memories that were made later. */
static void memories_end_in_any_order(void **state) {
    (void)state;
    int before = 0;
    sy_memory_each(count_memory, &before);
    enum { MEMORIES = 4 };
    char *regions[MEMORIES];
    sy_memory *memories[MEMORIES];
    static const int order[MEMORIES] = {1, 3, 0, 2};
    for (int i = 0; i < MEMORIES; i++) {
        regions[i] = map_region(12 * MIB);
        memories[i] = sy_memory_create(&(sy_memory_config){.start = regions[i], .bytes = 12 * MIB});
        assert_non_null(memories[i]);
    }
    for (int i = 0; i < MEMORIES; i++) {
        assert_int_equal(sy_memory_destroy(memories[order[i]]), 0);
        munmap(regions[order[i]], 12 * MIB);
        int count = 0;
        sy_memory_each(count_memory, &count);
        assert_int_equal(count, before + MEMORIES - 1 - i);
    }
}

#if UINTPTR_MAX > UINT32_MAX

/* A span cannot grow into 64 GiB for which the map gets no leaf. */
static void a_span_that_cannot_be_entered_does_not_grow(void **state) {
    (void)state;
    const size_t leaf = SY_LEAF_UNITS * (size_t)SY_UNIT_BYTES, room = 4 * leaf;
    char *space = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(space != MAP_FAILED);
    uintptr_t boundary = ((uintptr_t)space + leaf + leaf - 1) & ~(leaf - 1);
    if (sy_window_offset(boundary) < leaf) boundary += leaf; /* not in the window */
    sy_memory *memory = sy_memory_create(
        &(sy_memory_config){.start = (void *)(boundary - 16 * MIB), .bytes = 32 * MIB});
    bool clean;
    sy_slab *span = sy_run_take(memory, 16 * MIB, SY_UNIT_BYTES, 0, &clean);
    assert_non_null(span);
    assert_int_equal(span->start, boundary - 16 * MIB);
    if (atomic_load(&sy_the_map.leaf_at[boundary / leaf])) skip();
    sy_fake_fail_from(SY_FAKE_RESERVE, 1);
    assert_false(sy_run_resize(span, 24 * MIB));
    sy_fake_reset();
    assert_int_equal(span->bytes, 16 * MIB);
    assert_int_equal(sy_vmem_size(memory->arena, SY_VMEM_ALLOCATED), 16 * MIB);
    sy_run_give(span);
    assert_int_equal(sy_memory_destroy(memory), 0);
    munmap(space, room);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_refuses_what_it_documents),
        cmocka_unit_test(objects_lie_in_the_region),
        cmocka_unit_test(a_full_region_is_no_memory),
        cmocka_unit_test(trims_discard_where_they_may),
        cmocka_unit_test(an_arena_of_addresses_serves_and_is_given_back),
        cmocka_unit_test(freed_large_objects_make_room_for_small_ones),
        cmocka_unit_test(an_allocation_is_served_beside_a_trim),
        cmocka_unit_test(an_allocation_does_not_wait_for_what_a_trim_calls),
        cmocka_unit_test(discard_may_allocate),
        cmocka_unit_test(what_is_slabyards_own_is_refused),
        cmocka_unit_test(threads_share_a_region),
        cmocka_unit_test(another_process_reads_and_writes_objects),
        cmocka_unit_test(the_systems_memory_is_counted_too),
        cmocka_unit_test(a_span_beyond_all_addresses_is_refused),
        cmocka_unit_test(memories_end_in_any_order),
#if UINTPTR_MAX > UINT32_MAX
        cmocka_unit_test(a_span_that_cannot_be_entered_does_not_grow),
#endif
    };
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
