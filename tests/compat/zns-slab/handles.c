#include "compat/compat.h"

#include <slab_alloc.h>
#include <stddef.h>

#include <slabyard/fail.h>

_Static_assert(sizeof(SlabHandle) == 8, "64 bits, as the document says");
_Static_assert(sizeof(PerfCounters) == 8 * sizeof(uint64_t), "eight counters, in this order:");
_Static_assert(offsetof(PerfCounters, new_slab_count) == 8 &&
                   offsetof(PerfCounters, list_move_partial_to_full) == 16 &&
                   offsetof(PerfCounters, list_move_full_to_partial) == 24 &&
                   offsetof(PerfCounters, current_partial_null) == 32 &&
                   offsetof(PerfCounters, current_partial_full) == 40 &&
                   offsetof(PerfCounters, empty_slab_recycled) == 48 &&
                   offsetof(PerfCounters, empty_slab_overflowed) == 56,
               "as the document lists them");

/* ---- as the document shows ---- */

static void by_handle(void) {
    SlabAllocator *alloc = slab_allocator_create();
    SlabHandle h;
    void *p = alloc_obj(alloc, 128, &h);
    EXPECT(p);
    memset(p, 1, 128);
    EXPECT(free_obj(alloc, h));
    slab_allocator_free(alloc);
    slab_allocator_free(NULL);
}

static void by_pointer(void) {
    SlabAllocator *alloc = slab_allocator_create();
    void *p = slab_malloc(alloc, 128);
    EXPECT(p);
    memset(p, 1, 128);
    slab_free(alloc, p);
    slab_free(alloc, NULL);
    slab_allocator_free(alloc);
}

static void in_storage_of_the_callers(void) {
    SlabAllocator alloc;
    SlabHandle h;
    allocator_init(&alloc);
    EXPECT(alloc_obj(&alloc, 64, &h));
    allocator_destroy(&alloc);
    /* All calls are refused from now on. */
    EXPECT(!free_obj(&alloc, h) && !alloc_obj(&alloc, 64, &h) && errno == ENOMEM);
    allocator_destroy(&alloc);
}

static void sizes_up_to_the_limits(void) {
    SlabAllocator *alloc = slab_allocator_create();
    SlabHandle h = 77;
    for (uint32_t size = 0; size <= 512; size++) {
        void *p = alloc_obj(alloc, size, &h);
        EXPECT(p && (uintptr_t)p % 64 == 0);
        memset(p, 3, size);
        EXPECT(free_obj(alloc, h));
    }
    h = 77;
    errno = 0;
    EXPECT(!alloc_obj(alloc, 513, &h) && h == 77 && errno == EINVAL);
    EXPECT(!alloc_obj(alloc, UINT32_MAX, &h) && h == 77);
    slab_free(alloc, alloc_obj(alloc, 64, NULL)); /* an object without a handle */
    for (size_t size = 1; size <= 504; size++) {
        void *p = slab_malloc(alloc, size);
        EXPECT(p && (uintptr_t)p % 64 == 0);
        memset(p, 3, size);
        slab_free(alloc, p);
    }
    errno = 0;
    EXPECT(!slab_malloc(alloc, 505) && errno == EINVAL && !slab_malloc(alloc, SIZE_MAX));
    for (unsigned i = 0; i < SY_ZNS_CLASSES; i++) EXPECT(sy_cache_in_use(alloc->classes[i]) == 0);
    slab_allocator_free(alloc);
}

enum { MANY = 100000 };
static SlabHandle handles[MANY];
static void *objects[MANY];

/* Returns the counters of class 2, whose objects have 256 bytes. */
static PerfCounters counted(SlabAllocator *alloc) {
    PerfCounters now;
    get_perf_counters(alloc, 2, &now);
    return now;
}

/* sy_thread_flush returns free objects to their slabs. A trim returns all empty slabs to the
 * chunks. */
static void counters_count(void) {
    SlabAllocator *alloc = slab_allocator_create();
    sy_cache_stats stats;
    PerfCounters now, before, none = {0};
    now = counted(alloc);
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    EXPECT(alloc_obj(alloc, 256, &handles[0]));
    EXPECT(sy_cache_get_stats(alloc->classes[2], &stats) == 0);
    unsigned slots = (unsigned)stats.slots_per_slab, count = 3 * slots;
    for (unsigned i = 1; i < count; i++) EXPECT(alloc_obj(alloc, 256, &handles[i]));
    sy_thread_flush();
    now = counted(alloc);
    EXPECT(now.slow_path_hits > 0 && now.slow_path_hits < count);
    EXPECT(now.new_slab_count == 3 && now.current_partial_null == 3);
    EXPECT(now.list_move_partial_to_full >= 3);
    EXPECT(now.current_partial_full == now.list_move_partial_to_full);
    EXPECT(now.list_move_partial_to_full - now.list_move_full_to_partial == 3);
    EXPECT(now.empty_slab_recycled == 0 && now.empty_slab_overflowed == 0);

    for (unsigned i = 0; i < count; i++) EXPECT(free_obj(alloc, handles[i]));
    sy_thread_flush();
    sy_cache_trim(alloc->classes[2]);
    before = counted(alloc);
    EXPECT(before.list_move_partial_to_full == before.list_move_full_to_partial);
    EXPECT(before.empty_slab_overflowed == 3 && before.new_slab_count == 3);

    EXPECT(alloc_obj(alloc, 256, &handles[0]) && free_obj(alloc, handles[0]));
    sy_thread_flush(); /* the cache keeps one empty slab, */
    EXPECT(counted(alloc).empty_slab_recycled == before.empty_slab_recycled);
    EXPECT(alloc_obj(alloc, 256, &handles[0])); /* and uses it again */
    now = counted(alloc);
    EXPECT(now.new_slab_count == 4);
    EXPECT(now.empty_slab_recycled == before.empty_slab_recycled + 1);
    EXPECT(now.empty_slab_overflowed == 3);

    get_perf_counters(alloc, 1, &now);
    EXPECT(now.new_slab_count == 0);
    get_perf_counters(alloc, 4, &now);
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    slab_allocator_free(alloc);
}

static void utilities_measure(void) {
    EXPECT(SLAB_PAGE_SIZE == 4096 && slab_object_count(128) == 32 && slab_object_count(100) == 40);
    EXPECT(slab_object_count(4096) == 1 && slab_object_count(4097) == 0);
    EXPECT(slab_object_count(0) == 0 && slab_object_count(UINT32_MAX) == 0);
    uint64_t before = now_ns(), resident = read_rss_bytes_linux();
    EXPECT(now_ns() >= before && now_ns() != 0);
    EXPECT(resident > 0 && resident % (uint64_t)sysconf(_SC_PAGESIZE) == 0);
}

static void no_memory_is_null(void) {
    EXPECT(sy_set_failures("zns-128:3") == 0);
    SlabAllocator *alloc = slab_allocator_create();
    SlabHandle h = 77;
    EXPECT(alloc_obj(alloc, 128, &h) && slab_malloc(alloc, 128));
    h = 77;
    errno = 0;
    EXPECT(!alloc_obj(alloc, 128, &h) && h == 77 && errno == ENOMEM);
    EXPECT(alloc_obj(alloc, 128, &h) && sy_set_failures(NULL) == 0);
    slab_allocator_free(alloc);
}

/* ---- mistakes that the audit found ---- */

static void a_stale_handle_stays_stale(void) {
    SlabAllocator *alloc = slab_allocator_create();
    SlabHandle stale, live;
    void *first = alloc_obj(alloc, 64, &stale), *second = NULL;
    EXPECT(free_obj(alloc, stale) && !free_obj(alloc, stale));
    for (unsigned i = 0; i < 100000 && second != first; i++) {
        second = alloc_obj(alloc, 64, &live);
        EXPECT(second && live != stale && !free_obj(alloc, stale));
        if (second != first) EXPECT(free_obj(alloc, live));
    }
    EXPECT(second == first && !free_obj(alloc, stale) && free_obj(alloc, live));
    slab_allocator_free(alloc);
}

static void what_is_no_handle_is_refused(void) {
    SlabAllocator *one = slab_allocator_create(), *other = slab_allocator_create();
    SlabHandle h;
    int on_stack;
    void *p = alloc_obj(one, 100, &h);
    EXPECT(!free_obj(other, h) && !free_obj(one, 0) && !free_obj(one, ~UINT64_C(0)));
    for (unsigned bit = 0; bit < 64; bit++) EXPECT(!free_obj(one, h ^ UINT64_C(1) << bit));
    for (uint64_t i = 1; i < 100000; i++) {
        SlabHandle forged = i * UINT64_C(0x9e3779b97f4a7c15);
        EXPECT(forged == h || !free_obj(one, forged));
    }
    EXPECT(!free_obj(one, (uintptr_t)p) && !free_obj(one, (uintptr_t)&on_stack));
    slab_free(other, p);
    slab_free(one, (char *)p + 8);
    slab_free(one, &on_stack);
    slab_free(one, (void *)0x10);
    slab_free(one, p);
    slab_free(one, p);
    EXPECT(!free_obj(one, h));
    slab_allocator_free(one);
    slab_allocator_free(other);
}

/* In this loop, ZNS-Slab gave one slot to two owners within a second. */
static void *twenty_and_twenty(void *arg) {
    SlabAllocator *alloc = arg;
    SlabHandle mine[20];
    void *held[20];
    for (uint64_t round = 0; round < 10000; round++) {
        uint32_t size = (uint32_t)64 << round % 4;
        for (unsigned i = 0; i < 20; i++) {
            EXPECT((held[i] = alloc_obj(alloc, size, &mine[i])) != NULL);
            own(held[i], size, mine[i]);
        }
        for (unsigned i = 0; i < 20; i++) {
            EXPECT(is_own(held[i], size, mine[i]));
            EXPECT(free_obj(alloc, mine[i]) && !free_obj(alloc, mine[i]));
        }
    }
    return NULL;
}

/* The same, without handles. */
static void *twenty_by_pointer(void *arg) {
    SlabAllocator *alloc = arg;
    void *mine[20];
    for (uint64_t round = 0; round < 10000; round++) {
        size_t size = ((size_t)64 << round % 4) - 8;
        for (unsigned i = 0; i < 20; i++) {
            EXPECT((mine[i] = slab_malloc(alloc, size)) != NULL);
            own(mine[i], size, (uintptr_t)&mine[i]);
        }
        for (unsigned i = 0; i < 20; i++) {
            EXPECT(is_own(mine[i], size, (uintptr_t)&mine[i]));
            slab_free(alloc, mine[i]);
        }
    }
    return NULL;
}

static void no_object_has_two_owners(void) {
    SlabAllocator *alloc = slab_allocator_create();
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, twenty_by_pointer, alloc) == 0);
    in_threads(THREADS_MAX, twenty_and_twenty, alloc);
    EXPECT(pthread_join(other, NULL) == 0);
    for (unsigned i = 0; i < SY_ZNS_CLASSES; i++) EXPECT(sy_cache_in_use(alloc->classes[i]) == 0);
    slab_allocator_free(alloc);
}

static void allocators_do_not_mix(void) {
    SlabAllocator *one = slab_allocator_create(), *other = slab_allocator_create();
    void *p = slab_malloc(one, 64);
    slab_free(one, p);
    for (unsigned i = 0; i < 1000; i++) EXPECT(slab_malloc(other, 64) != p);
    slab_allocator_free(one);
    slab_allocator_free(other);
}

static void memory_goes_back(void) {
    SlabAllocator *alloc = slab_allocator_create();
    sy_trim();
    size_t before = mapped_now();
    for (unsigned i = 0; i < MANY; i++) EXPECT((objects[i] = slab_malloc(alloc, 128)) != NULL);
    size_t peak = mapped_now() - before;
    for (unsigned i = 0; i < MANY; i++) slab_free(alloc, objects[i]);
    sy_trim();
    size_t kept = mapped_now() > before ? mapped_now() - before : 0;
    EXPECT(peak >= (size_t)MANY * 128 && kept <= peak / 20);

    /* slab_allocator_free returns all memory at once, that of live objects too. */
    for (unsigned i = 0; i < MANY; i++) EXPECT((objects[i] = slab_malloc(alloc, 128)) != NULL);
    slab_allocator_free(alloc);
    EXPECT(mapped_now() <= before + peak / 20);
}

/* ZNS-Slab made a mapping for each 31 objects of 128 bytes. */
static void many_objects_share_a_slab(void) {
    SlabAllocator *alloc = slab_allocator_create();
    sy_stats before, now;
    PerfCounters counters;
    sy_trim();
    sy_get_stats(&before);
    for (unsigned i = 0; i < MANY; i++) EXPECT(slab_malloc(alloc, 128));
    sy_get_stats(&now);
    get_perf_counters(alloc, 1, &counters);
    EXPECT(counters.new_slab_count > 0 && counters.new_slab_count < MANY / 400);
    EXPECT(now.chunks - before.chunks <= (size_t)MANY * 128 / (4 << 20) + 1);
    slab_allocator_free(alloc);
}

/* A thousand cycles replace a quarter of the objects each. After the first ten, memory does not
 * grow. */
static void churn_needs_no_more_memory(void) {
    enum { LIVE = 4000 };
    SlabAllocator *alloc = slab_allocator_create();
    size_t warm = 0;
    uint64_t random = 9;
    memset(handles, 0, sizeof handles);
    for (unsigned cycle = 0; cycle < 1000; cycle++) {
        for (unsigned i = 0; i < LIVE; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            if (handles[i] && random >> 62) continue;
            if (handles[i]) EXPECT(free_obj(alloc, handles[i]));
            EXPECT(alloc_obj(alloc, 64u << i % 4, &handles[i]));
        }
        if (cycle == 10) warm = mapped_now();
    }
    EXPECT(mapped_now() <= warm);
    slab_allocator_free(alloc);
}

int main(void) {
    by_handle();
    by_pointer();
    in_storage_of_the_callers();
    sizes_up_to_the_limits();
    counters_count();
    utilities_measure();
    no_memory_is_null();
    a_stale_handle_stays_stale();
    what_is_no_handle_is_refused();
    no_object_has_two_owners();
    allocators_do_not_mix();
    memory_goes_back();
    many_objects_share_a_slab();
    churn_needs_no_more_memory();
    return 0;
}
