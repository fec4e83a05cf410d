/*
 * The loops, as templates over an allocator policy.
 *
 * A policy is a small value. The kernel copies it to a local variable, so its fields (a pointer to
 * a cache, a size) are in registers, as in a user's loop. It has
 *     static Policy open(void *state)        the value for a state
 *     void *alloc() const                    inlined into the loop where the library offers that
 *     void free(void *object) const
 *     size_t object_size() const
 *
 * The name of an object, the argument of `free`, is its address. A policy whose names are no
 * addresses overloads `named` and `found`; its names take the place of pointers in every loop.
 *
 * Included by each translation unit that makes a table. Everything is in an unnamed namespace: the
 * copies of the layouts must not be merged by the linker.
 */
#ifndef BENCH_KERNELS_HPP
#define BENCH_KERNELS_HPP

#include "kernels.h"

#include <atomic>
#include <cstring>
#include <sched.h>
#include <x86intrin.h>

#ifndef BENCH_LAYOUT
#    error "BENCH_LAYOUT says which copy this is"
#endif

namespace {

/*
 * Kernels start at a multiple of 64 (-falign-functions), and BENCH_PADDING bytes of no-operations
 * at their entry move the loops against cache lines and the predictor's sets.
 */
#define BENCH_KERNEL  __attribute__((noinline))
#define BENCH_ENTER() asm volatile(".skip %c0, 0x90" ::"i"(BENCH_PADDING))

/* Hides from the compiler where the object is and what memory contains. */
inline void *hide(void *object) {
    asm volatile("" : "+r"(object) : : "memory");
    return object;
}

/* A new object, and its name. */
template <class Policy> inline void *named(const Policy &policy, void **name) {
    return *name = policy.alloc();
}

/* The object of a name. */
template <class Policy> inline void *found(const Policy &, void *name) { return name; }

template <class Policy> inline void *born(const Policy &policy) {
    void *name;
    void *object = named(policy, &name);
#if BENCH_LAYOUT == 3
    bench_verify_born(object, policy.object_size(), name);
#else
    *static_cast<uint64_t *>(object) = reinterpret_cast<uint64_t>(object);
#endif
    return hide(name);
}

inline void seen([[maybe_unused]] void *object, [[maybe_unused]] void *name) {
#if BENCH_LAYOUT == 3
    bench_verify_seen(object, name);
#endif
    hide(object);
}

template <class Policy> inline void died(const Policy &policy, void *name) {
#if BENCH_LAYOUT == 3
    bench_verify_died(found(policy, name), policy.object_size(), name);
#endif
    policy.free(name);
    asm volatile("" : : : "memory");
}

/* Knuth's MMIX generator: one multiplication and one addition for each number. Its high bits are
 * good. */
struct Random {
    uint64_t state;

    inline size_t below(size_t bound) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<size_t>(((state >> 32) * bound) >> 32);
    }
};

/* Spins for a short time, then yields: there may be only one processor. */
struct Wait {
    unsigned spins = 0;

    inline void once() {
        if (++spins < 2000) {
            _mm_pause();
        } else {
            sched_yield();
        }
    }
};

template <class Policy> BENCH_KERNEL void fill(void *state, void **objects, size_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        objects[i] = born(policy);
    }
}

template <class Policy> BENCH_KERNEL void drain(void *state, void **objects, size_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        died(policy, objects[i]);
    }
}

template <class Policy> BENCH_KERNEL void pair(void *state, uint64_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t i = 0; i < count; i++) {
        died(policy, born(policy));
    }
}

template <class Policy>
BENCH_KERNEL void batch_lifo(void *state, void **objects, size_t size, uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < size; i++) {
            objects[i] = born(policy);
        }
        for (size_t i = size; i > 0; i--) {
            died(policy, objects[i - 1]);
        }
    }
}

template <class Policy>
BENCH_KERNEL void batch_fifo(void *state, void **objects, size_t size, uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < size; i++) {
            objects[i] = born(policy);
        }
        for (size_t i = 0; i < size; i++) {
            died(policy, objects[i]);
        }
    }
}

template <class Policy>
BENCH_KERNEL void batch_random(void *state, void **objects, const uint32_t *order, size_t size,
                               uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < size; i++) {
            objects[i] = born(policy);
        }
        for (size_t i = 0; i < size; i++) {
            died(policy, objects[order[i]]);
        }
    }
}

template <class Policy>
BENCH_KERNEL void steady(void *state, void **objects, size_t live, uint64_t count, uint64_t seed) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    Random random{seed};
    for (uint64_t i = 0; i < count; i++) {
        void **place = &objects[random.below(live)];
        died(policy, *place);
        *place = born(policy);
    }
}

/* Allocates 64 objects into a local array, then frees them in the same order. */
template <class Policy> BENCH_KERNEL void churn(void *state, uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    void *objects[64];
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < 64; i++) {
            objects[i] = born(policy);
        }
        for (size_t i = 0; i < 64; i++) {
            died(policy, objects[i]);
        }
    }
}

template <class Policy>
BENCH_KERNEL void get(void *state, void **objects, size_t live, uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < live; i++) {
            void *name = objects[i];
            seen(found(policy, name), name);
        }
    }
}

template <class Policy>
BENCH_KERNEL void pin(void *state, void **objects, size_t live, uint64_t rounds) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < live; i++) {
            void *name = objects[i];
            seen(policy.pin(name), name);
            policy.unpin(name);
        }
    }
}

/*
 * A ring of `Slots` entries for one writer and one reader. Each side keeps a copy of the other
 * side's index, and reads the real index only if the ring looks full or empty by the copy.
 */
template <class Entry, size_t Slots> struct Ring {
    alignas(128) std::atomic<uint64_t> written;
    uint64_t read_seen;
    alignas(128) std::atomic<uint64_t> read;
    uint64_t written_seen;
    alignas(128) Entry entries[Slots];

    inline Entry *writable() {
        uint64_t at = written.load(std::memory_order_relaxed);
        for (Wait wait; at - read_seen == Slots; wait.once()) {
            read_seen = read.load(std::memory_order_acquire);
        }
        return &entries[at % Slots];
    }

    inline void publish() {
        written.store(written.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    inline Entry *readable() {
        uint64_t at = read.load(std::memory_order_relaxed);
        for (Wait wait; at == written_seen; wait.once()) {
            written_seen = written.load(std::memory_order_acquire);
        }
        return &entries[at % Slots];
    }

    inline void consume() {
        read.store(read.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
};

struct Batch {
    void *objects[BENCH_BATCH];
};

using ObjectRing = Ring<void *, BENCH_RING_SLOTS>;
using BatchQueue = Ring<Batch, BENCH_BATCHES>;

template <class Policy> BENCH_KERNEL void ring_put(void *state, void *memory, uint64_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    auto *ring = static_cast<ObjectRing *>(memory);
    for (uint64_t i = 0; i < count; i++) {
        void *object = born(policy);
        *ring->writable() = object;
        ring->publish();
    }
}

template <class Policy> BENCH_KERNEL void ring_take(void *state, void *memory, uint64_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    auto *ring = static_cast<ObjectRing *>(memory);
    for (uint64_t i = 0; i < count; i++) {
        void *object = hide(*ring->readable());
        ring->consume();
        died(policy, object);
    }
}

template <class Policy> BENCH_KERNEL void ring_read(void *state, void *memory, uint64_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    auto *ring = static_cast<ObjectRing *>(memory);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        void *object = hide(*ring->readable());
        ring->consume();
        sum += *static_cast<uint64_t *>(found(policy, object));
        died(policy, object);
    }
    asm volatile("" ::"r"(sum));
}

template <class Policy> BENCH_KERNEL void queue_put(void *state, void *memory, uint64_t batches) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    auto *queue = static_cast<BatchQueue *>(memory);
    for (uint64_t round = 0; round < batches; round++) {
        Batch *batch = queue->writable();
        for (size_t i = 0; i < BENCH_BATCH; i++) {
            batch->objects[i] = born(policy);
        }
        queue->publish();
    }
}

template <class Policy> BENCH_KERNEL void queue_take(void *state, void *memory, uint64_t batches) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    auto *queue = static_cast<BatchQueue *>(memory);
    for (uint64_t round = 0; round < batches; round++) {
        Batch *batch = queue->readable();
        for (size_t i = 0; i < BENCH_BATCH; i++) {
            died(policy, hide(batch->objects[i]));
        }
        queue->consume();
    }
}

template <class Policy>
BENCH_KERNEL void exchange(void *state, void **memory, size_t slots_count, uint64_t count,
                           uint64_t seed) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    static_assert(sizeof(std::atomic<void *>) == sizeof(void *), "slots are plain pointers");
    auto *slots = reinterpret_cast<std::atomic<void *> *>(memory);
    Random random{seed};
    for (uint64_t i = 0; i < count; i++) {
        void *object = born(policy);
        object = slots[random.below(slots_count)].exchange(object, std::memory_order_acq_rel);
        if (object != nullptr) {
            died(policy, hide(object));
        }
    }
}

/* The fences keep instructions on their side of the reading of the clock. */
inline uint64_t ticks_before() {
    _mm_lfence();
    uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
}

inline uint64_t ticks_after() {
    unsigned processor;
    uint64_t ticks = __rdtscp(&processor);
    _mm_lfence();
    return ticks;
}

inline void count_ticks(bench_histogram *histogram, uint64_t ticks) {
    size_t bucket = ticks;
    if (ticks >= BENCH_EXACT_TICKS) {
        /* Octave 0 begins at 2048 = 2^11; the six bits below the leading one choose the bucket. */
        unsigned octave = 63u - static_cast<unsigned>(__builtin_clzll(ticks)) - 11u;
        bucket = BENCH_EXACT_TICKS + octave * BENCH_STEPS +
                 ((ticks >> (octave + 5)) & (BENCH_STEPS - 1));
    }
    histogram->buckets[bucket]++;
}

/* The ticks that freeing took. */
template <class Policy> inline uint64_t timed_death(const Policy &policy, void *name) {
#if BENCH_LAYOUT == 3
    bench_verify_died(found(policy, name), policy.object_size(), name);
#endif
    uint64_t start = ticks_before();
    policy.free(hide(name));
    return ticks_after() - start;
}

template <class Policy>
BENCH_KERNEL void tail_steady(void *state, void **objects, size_t live, uint64_t count,
                              uint64_t seed, bench_histogram *allocs, bench_histogram *frees) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    Random random{seed};
    for (uint64_t i = 0; i < count; i++) {
        void **place = &objects[random.below(live)];
        uint64_t freed = timed_death(policy, *place);
        void *name;
        uint64_t restart = ticks_before();
        void *fresh = hide(named(policy, &name));
        uint64_t end = ticks_after();
#if BENCH_LAYOUT == 3
        bench_verify_born(fresh, policy.object_size(), name);
#else
        *static_cast<uint64_t *>(fresh) = reinterpret_cast<uint64_t>(fresh);
#endif
        *place = hide(name);
        count_ticks(frees, freed);
        count_ticks(allocs, end - restart);
    }
}

template <class Policy>
BENCH_KERNEL void tail_grow(void *state, void **objects, size_t count, int write,
                            bench_histogram *allocs) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        void *name;
        uint64_t start = ticks_before();
        void *object = hide(named(policy, &name));
        if (write) {
            *static_cast<uint64_t *>(object) = reinterpret_cast<uint64_t>(object);
            object = hide(object);
        }
        uint64_t end = ticks_after();
        *static_cast<uint64_t *>(object) = reinterpret_cast<uint64_t>(object);
#if BENCH_LAYOUT == 3
        bench_verify_born(object, policy.object_size(), name);
#endif
        objects[i] = hide(name);
        count_ticks(allocs, end - start);
    }
}

template <class Policy>
BENCH_KERNEL void tail_drain(void *state, void **objects, size_t count, bench_histogram *frees) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        count_ticks(frees, timed_death(policy, objects[i]));
    }
}

/* The loops of a policy. The caller fills in the fields for states. */
template <class Policy> constexpr bench_allocator kernels_of() {
    bench_allocator table{};
    table.fill = fill<Policy>;
    table.drain = drain<Policy>;
    table.pair = pair<Policy>;
    table.batch_lifo = batch_lifo<Policy>;
    table.batch_fifo = batch_fifo<Policy>;
    table.batch_random = batch_random<Policy>;
    table.steady = steady<Policy>;
    table.churn = churn<Policy>;
    table.get = get<Policy>;
    table.ring_put = ring_put<Policy>;
    table.ring_take = ring_take<Policy>;
    table.ring_read = ring_read<Policy>;
    table.queue_put = queue_put<Policy>;
    table.queue_take = queue_take<Policy>;
    table.exchange = exchange<Policy>;
    table.tail_steady = tail_steady<Policy>;
    table.tail_grow = tail_grow<Policy>;
    table.tail_drain = tail_drain<Policy>;
    return table;
}

/* ---- allocators that get the size as a constant ---- */

template <template <size_t> class Policy, size_t Size>
const bench_allocator *table_of_size(const char *name) {
    static const bench_allocator table = [name] {
        static char state;
        bench_allocator made = kernels_of<Policy<Size>>();
        made.name = name;
        made.traits = BENCH_SHARED | BENCH_GROWS;
        made.open = [](size_t, size_t) -> void * { return &state; };
        made.close = [](void *) {};
        made.thread_end = made.close;
        return made;
    }();
    return &table;
}

/* NULL for sizes that are not compiled. */
template <template <size_t> class Policy>
const bench_allocator *table_of_constant(const char *name, size_t size) {
    switch (size) {
    case 8: return table_of_size<Policy, 8>(name);
    case 16: return table_of_size<Policy, 16>(name);
    case 64: return table_of_size<Policy, 64>(name);
    case 256: return table_of_size<Policy, 256>(name);
    case 1024: return table_of_size<Policy, 1024>(name);
    case 4096: return table_of_size<Policy, 4096>(name);
    default: return nullptr;
    }
}

} // namespace

#endif
