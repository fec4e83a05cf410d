#include "compat/compat.h"

#include <slab_alloc.h>

/* ---- what the document shows ---- */

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
    EXPECT(!alloc_obj(alloc, 513, &h) && h == 77);
    EXPECT(!alloc_obj(alloc, 64, NULL));
    EXPECT(slab_malloc(alloc, 504) && !slab_malloc(alloc, 505));
    slab_allocator_free(alloc);
}

static void counters_count(void) {
    enum { MANY = 5000 };
    static SlabHandle handles[MANY];
    SlabAllocator *alloc = slab_allocator_create();
    PerfCounters now, none = {0};
    for (unsigned i = 0; i < MANY; i++) EXPECT(alloc_obj(alloc, 256, &handles[i]));
    get_perf_counters(alloc, 2, &now);
    EXPECT(now.new_slab_count > 0 && now.slow_path_hits > 0 && now.list_move_partial_to_full > 0);
    for (unsigned i = 0; i < MANY; i++) EXPECT(free_obj(alloc, handles[i]));
    sy_thread_flush();
    get_perf_counters(alloc, 2, &now);
    EXPECT(now.list_move_full_to_partial > 0);
    get_perf_counters(alloc, 1, &now);
    EXPECT(now.new_slab_count == 0);
    get_perf_counters(alloc, 4, &now);
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    slab_allocator_free(alloc);
}

/* ---- what was found ---- */

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

/* The loop that gave one slot to two owners within a second. */
static void *twenty_and_twenty(void *arg) {
    SlabAllocator *alloc = arg;
    SlabHandle handles[20];
    void *objects[20];
    for (uint64_t round = 0; round < 10000; round++) {
        uint32_t size = (uint32_t)64 << round % 4;
        for (unsigned i = 0; i < 20; i++) {
            EXPECT((objects[i] = alloc_obj(alloc, size, &handles[i])) != NULL);
            own(objects[i], size, handles[i]);
        }
        for (unsigned i = 0; i < 20; i++) {
            EXPECT(is_own(objects[i], size, handles[i]));
            EXPECT(free_obj(alloc, handles[i]) && !free_obj(alloc, handles[i]));
        }
    }
    return NULL;
}

static void no_object_has_two_owners(void) {
    SlabAllocator *alloc = slab_allocator_create();
    in_threads(4, twenty_and_twenty, alloc);
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
    enum { MANY = 100000 };
    static void *objects[MANY];
    SlabAllocator *alloc = slab_allocator_create();
    sy_trim();
    size_t before = mapped_now();
    for (unsigned i = 0; i < MANY; i++) EXPECT((objects[i] = slab_malloc(alloc, 128)) != NULL);
    size_t peak = mapped_now() - before;
    for (unsigned i = 0; i < MANY; i++) slab_free(alloc, objects[i]);
    sy_trim();
    size_t kept = mapped_now() > before ? mapped_now() - before : 0;
    EXPECT(peak >= (size_t)MANY * 128 && kept <= peak / 20);
    slab_allocator_free(alloc);
}

int main(void) {
    by_handle();
    by_pointer();
    in_storage_of_the_callers();
    sizes_up_to_the_limits();
    counters_count();
    a_stale_handle_stays_stale();
    what_is_no_handle_is_refused();
    no_object_has_two_owners();
    allocators_do_not_mix();
    memory_goes_back();
    return 0;
}
