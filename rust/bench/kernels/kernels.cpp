/* One layout's table of the allocators that do not need the size as a constant. */
#include "policies.hpp"

namespace {

void nothing_to_do(void *) {}

void *sized_open(size_t size, size_t) { return new Sized{size}; }

void sized_close(void *state) { delete static_cast<Sized *>(state); }

template <class Library> constexpr bench_allocator general(const char *name) {
    bench_allocator table = kernels_of<General<Library>>();
    table.name = name;
    table.traits = BENCH_SHARED | BENCH_GROWS;
    table.open = sized_open;
    table.close = sized_close;
    table.thread_end = nothing_to_do;
    return table;
}

/*
 * An object file of the library switches on its caches by processor. A static link leaves this file
 * out unless a function in it is called.
 */
extern "C" void TCMalloc_Internal_ForceCpuCacheActivation(void);

constexpr bench_allocator tcmalloc_table() {
    bench_allocator table = general<Tcmalloc>("tcmalloc");
    table.open = [](size_t size, size_t capacity) {
        TCMalloc_Internal_ForceCpuCacheActivation();
        return sized_open(size, capacity);
    };
    return table;
}

template <class Policy>
constexpr bench_allocator special(const char *name, uint64_t traits, void *(*open)(size_t, size_t),
                                  void (*close)(void *)) {
    bench_allocator table = kernels_of<Policy>();
    table.name = name;
    table.traits = traits;
    table.open = open;
    table.close = close;
    table.thread_end = nothing_to_do;
    return table;
}

void *pool_open(size_t size, size_t capacity) {
    sy_pool_config config{};
    config.size = size;
    config.capacity = capacity;
    return sy_pool_create(&config);
}

constexpr bench_allocator pool_table(const char *name, void *(*open)(size_t, size_t)) {
    return special<Pool>(name, BENCH_GROWS, open,
                         [](void *state) { sy_pool_destroy(static_cast<sy_pool *>(state)); });
}

template <unsigned Flags> void *cache_open(size_t size, size_t) {
    sy_cache_config config{};
    config.name = "bench";
    config.size = size;
    config.flags = Flags;
    return sy_cache_create(&config);
}

template <class Policy, unsigned Flags> constexpr bench_allocator cache_table(const char *name) {
    return special<Policy>(name, BENCH_SHARED | BENCH_GROWS, cache_open<Flags>, [](void *state) {
        sy_cache_destroy_all(static_cast<sy_cache *>(state));
    });
}

constexpr bench_allocator handles_table() {
    bench_allocator table = cache_table<Handles, SY_HANDLES>("handles");
    table.pin = pin<Handles>;
    return table;
}

constexpr bench_allocator magazine_table() {
    bench_allocator table = special<Magazine>(
        "limit-magazine", BENCH_SHARED | BENCH_GROWS,
        [](size_t size, size_t) -> void * { return magazine_open(size); },
        [](void *state) { magazine_close(static_cast<MagazineState *>(state)); });
    table.thread_end = [](void *state) {
        magazine_thread_end(static_cast<MagazineState *>(state));
    };
    return table;
}

constexpr bench_allocator freelist_table() {
    return special<Freelist>(
        "limit-freelist", 0,
        [](size_t size, size_t capacity) -> void * { return freelist_open(size, capacity); },
        [](void *state) { freelist_close(static_cast<FreelistState *>(state)); });
}

constexpr bench_allocator nothing_table() {
    return special<Nothing>(
        "loop", 0, [](size_t size, size_t) -> void * { return std::malloc(size); },
        [](void *state) { std::free(state); });
}

/* An uncontended compare-exchange on a cached word, which always succeeds and writes 0. */
BENCH_KERNEL void compare_exchange(void *state, uint64_t count) {
    BENCH_ENTER();
    auto *word = static_cast<std::atomic<uint64_t> *>(state);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t expected = 0;
        word->compare_exchange_strong(expected, 0, std::memory_order_acq_rel,
                                      std::memory_order_relaxed);
        asm volatile("" : : : "memory");
    }
}

constexpr bench_allocator cas_table() {
    bench_allocator table = nothing_table();
    table.name = "cas";
    table.open = [](size_t, size_t) -> void * { return new std::atomic<uint64_t>{}; };
    table.close = [](void *state) { delete static_cast<std::atomic<uint64_t> *>(state); };
    table.pair = compare_exchange;
    return table;
}

const bench_allocator table[] = {
    pool_table("pool", [](size_t size, size_t) { return pool_open(size, 0); }),
    pool_table("pool-bounded", pool_open),
    cache_table<Cache, 0>("cache"),
    handles_table(),
    general<Heap>("heap"),
    general<Mimalloc>("mimalloc"),
    general<Snmalloc>("snmalloc"),
    general<Jemalloc>("jemalloc"),
    tcmalloc_table(),
    general<Rpmalloc>("rpmalloc"),
    general<Glibc>("glibc"),
    freelist_table(),
    magazine_table(),
    nothing_table(),
    cas_table(),
};

} // namespace

#define BENCH_PASTE(a, b)           a##b
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_allocator *BENCH_NAMED(bench_table_, BENCH_LAYOUT)(size_t *count) {
    *count = sizeof table / sizeof table[0];
    return table;
}

extern "C" const bench_allocator *BENCH_NAMED(bench_heap_, BENCH_LAYOUT)(size_t size) {
    return table_of_constant<HeapConstant>("heap-constant", size);
}

#if BENCH_LAYOUT == 0
#    include <algorithm>
#    include <vector>

extern "C" size_t bench_ring_bytes(void) { return sizeof(ObjectRing); }

extern "C" size_t bench_queue_bytes(void) { return sizeof(BatchQueue); }

extern "C" uint64_t bench_timer_floor(void) {
    std::vector<uint64_t> ticks(100001);
    for (uint64_t &tick : ticks) {
        uint64_t start = ticks_before();
        tick = ticks_after() - start;
    }
    std::nth_element(ticks.begin(), ticks.begin() + 50000, ticks.end());
    return ticks[50000];
}
#endif
