/*
 * One layout's loops over a quantum cache and over an object cache, both called as functions.
 *
 * The arena's values are addresses of real memory, because the loops write to what they get. The
 * arena knows nothing of that.
 */
#define SY_NO_INLINE
#include "kernels.hpp"
#include "vmem.h"

#include <cstdio>
#include <cstdlib>
#include <slabyard/cache.h>
#include <slabyard/vmem.h>

namespace {

/* Objects that can be live in addition to those of the caller: two magazines of 128 objects for
 * each thread. At most 8 threads are measured; the factor 4 is a reserve. */
constexpr size_t WAITING = 4 * 2 * 128 * 8;

struct Region {
    sy_vmem *arena;
    void *memory;
    size_t size;
};

struct CalledCache {
    sy_cache *cache;

    static CalledCache open(void *state) { return {static_cast<sy_cache *>(state)}; }
    void *alloc() const { return sy_cache_alloc(cache); }
    void free(void *object) const { sy_cache_free(cache, object); }
    size_t object_size() const { return sy_cache_slot_size(cache); }
};

struct Arena {
    sy_vmem *arena;
    size_t size;

    static Arena open(void *state) {
        auto *region = static_cast<Region *>(state);
        return {region->arena, region->size};
    }
    void *alloc() const {
        uintptr_t value;
        int status = sy_vmem_alloc(arena, size, SY_VMEM_INSTANT, &value);
        return status == 0 ? reinterpret_cast<void *>(value) : nullptr;
    }
    void free(void *object) const {
        sy_vmem_free(arena, reinterpret_cast<uintptr_t>(object), size);
    }
    size_t object_size() const { return size; }
};

struct UncachedArena : Arena {
    static UncachedArena open(void *state) { return {Arena::open(state)}; }
    void *alloc() const {
        uintptr_t value;
        int status = sy_vmem_xalloc(arena, size, nullptr, SY_VMEM_INSTANT, &value);
        return status == 0 ? reinterpret_cast<void *>(value) : nullptr;
    }
    void free(void *object) const {
        sy_vmem_xfree(arena, reinterpret_cast<uintptr_t>(object), size);
    }
};

void *region_open(size_t size, size_t capacity) {
    size_t bytes = (capacity + WAITING) * size;
    void *memory = std::aligned_alloc(size, bytes);
    sy_vmem_config config{};
    config.name = "bench";
    config.base = reinterpret_cast<uintptr_t>(memory);
    config.size = bytes;
    config.quantum = size;
    config.cached_max = size;
    sy_vmem *arena = memory == nullptr ? nullptr : sy_vmem_create(&config);
    if (arena == nullptr) {
        std::free(memory);
        return nullptr;
    }
    return new Region{arena, memory, size};
}

void region_close(void *state) {
    auto *region = static_cast<Region *>(state);
    if (sy_vmem_destroy(region->arena) != 0) {
        std::perror("bench: an arena cannot be destroyed");
        std::abort();
    }
    std::free(region->memory);
    delete region;
}

template <class Policy>
constexpr bench_allocator called(const char *name, void *(*open)(size_t, size_t),
                                 void (*close)(void *)) {
    bench_allocator table = kernels_of<Policy>();
    table.name = name;
    table.traits = BENCH_SHARED | BENCH_GROWS;
    table.open = open;
    table.close = close;
    table.thread_end = [](void *) {};
    return table;
}

constexpr bench_allocator called_cache() {
    return called<CalledCache>(
        "cache-called",
        [](size_t size, size_t) -> void * {
            sy_cache_config config{};
            config.name = "bench";
            config.size = size;
            return sy_cache_create(&config);
        },
        [](void *state) { sy_cache_destroy_all(static_cast<sy_cache *>(state)); });
}

const bench_allocator table[] = {
    called_cache(),
    called<Arena>("arena", region_open, region_close),
    called<UncachedArena>("arena-uncached", region_open, region_close),
};

} // namespace

#define BENCH_PASTE(a, b)           a##b
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_allocator *BENCH_NAMED(bench_vmem_table_, BENCH_LAYOUT)(size_t *count) {
    *count = sizeof table / sizeof table[0];
    return table;
}
