/*
 * Segments of a range of integers, from an arena without quantum caches by each of its fits, and
 * from the first-fit list; the loops over them; and the walk that measures a cache miss.
 */
#include "first_fit.hpp"
#include "kernels.hpp"
#include "vmem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <slabyard/vmem.h>

namespace {

/* As a policy of kernels.hpp, for segments:
 *     bool alloc(size_t size, uintptr_t *value) const
 *     void free(uintptr_t value, size_t size) const */
template <sy_vmem_fit how> struct ByArena {
    sy_vmem *arena;

    static ByArena open(void *state) { return {static_cast<sy_vmem *>(state)}; }
    bool alloc(size_t size, uintptr_t *value) const {
        return sy_vmem_alloc(arena, size, how, value) == 0;
    }
    void free(uintptr_t value, size_t size) const { sy_vmem_free(arena, value, size); }
};

struct ByList {
    FirstFit *list;

    static ByList open(void *state) { return {static_cast<FirstFit *>(state)}; }
    bool alloc(size_t size, uintptr_t *value) const { return list->alloc(size, value); }
    void free(uintptr_t value, size_t size) const { list->free(value, size); }
};

template <class Policy> void born_in(const Policy &policy, bench_segment *segment) {
    if (!policy.alloc(segment->size, &segment->value)) {
        segment->value = BENCH_REFUSED;
    }
}

template <class Policy> void died_in(const Policy &policy, const bench_segment *segment) {
    if (segment->value != BENCH_REFUSED) {
        policy.free(segment->value, segment->size);
    }
}

template <class Policy>
BENCH_KERNEL void alloc_all(void *state, bench_segment *segments, size_t count) {
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        born_in(policy, &segments[i]);
    }
}

template <class Policy>
BENCH_KERNEL void free_all(void *state, const bench_segment *segments, size_t count) {
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        died_in(policy, &segments[i]);
    }
}

/* 1 to BENCH_SIZES: the logarithm is spread evenly. */
size_t skewed_size(Random *random) {
    constexpr size_t FINE = 1 << 20;
    double share = static_cast<double>(random->below(FINE)) / FINE;
    return static_cast<size_t>(std::exp2(share * std::log2(BENCH_SIZES + 1.0)));
}

template <class Policy>
void birth(const Policy &policy, bench_population *all, Random *random, uint64_t *units) {
    if (all->live == all->room) {
        std::fputs("bench: more segments live than there is room for\n", stderr);
        std::abort();
    }
    bench_segment *fresh = &all->segments[all->live++];
    fresh->size = skewed_size(random);
    born_in(policy, fresh);
    all->volume += fresh->size;
    all->asked++;
    all->refused += fresh->value == BENCH_REFUSED;
    *units += fresh->size;
}

template <class Policy> void death(const Policy &policy, bench_population *all, Random *random) {
    bench_segment *one = &all->segments[random->below(all->live)];
    died_in(policy, one);
    all->volume -= one->size;
    *one = all->segments[--all->live];
}

template <class Policy>
void age(void *state, bench_population *all, size_t volume, uint64_t units) {
    const Policy policy = Policy::open(state);
    Random random{all->random};
    for (uint64_t asked = 0; asked < units;) {
        while (all->volume < volume) {
            birth(policy, all, &random, &asked);
        }
        death(policy, all, &random);
    }
    all->random = random.state;
}

void *arena_open(size_t units) {
    sy_vmem_config config{};
    config.name = "bench";
    config.size = units;
    return sy_vmem_create(&config);
}

void arena_close(void *state) {
    if (sy_vmem_destroy(static_cast<sy_vmem *>(state)) != 0) {
        std::perror("bench: an arena cannot be destroyed");
        std::abort();
    }
}

void arena_count(void *state, bench_counts *counts) {
    sy_vmem_stats stats;
    sy_vmem_get_stats(static_cast<sy_vmem *>(state), &stats);
    counts->allocs = stats.allocs;
    counts->frees = stats.frees;
    counts->probes = stats.probes;
    counts->steps = stats.steps;
    counts->segments = stats.segments_allocated + stats.segments_free;
    counts->buckets = stats.buckets;
}

void add_gap(bench_gaps *gaps, size_t size) {
    gaps->units += size;
    gaps->segments++;
    gaps->largest = std::max(gaps->largest, size);
}

void arena_gaps(void *state, bench_gaps *gaps) {
    *gaps = {};
    auto visit = [](void *found, unsigned, uintptr_t, size_t size) {
        add_gap(static_cast<bench_gaps *>(found), size);
        return 0;
    };
    if (sy_vmem_each(static_cast<sy_vmem *>(state), SY_VMEM_FREE, visit, gaps) != 0) {
        std::perror("bench: an arena cannot be walked");
        std::abort();
    }
}

template <class Policy> constexpr bench_fit fit_of(const char *name) {
    bench_fit table{};
    table.name = name;
    table.alloc = alloc_all<Policy>;
    table.free = free_all<Policy>;
    table.age = age<Policy>;
    return table;
}

template <sy_vmem_fit how> constexpr bench_fit arena(const char *name) {
    bench_fit table = fit_of<ByArena<how>>(name);
    table.open = arena_open;
    table.close = arena_close;
    table.count = arena_count;
    table.gaps = arena_gaps;
    return table;
}

constexpr bench_fit first_fit_list() {
    bench_fit table = fit_of<ByList>("first-fit list");
    table.open = [](size_t units) -> void * { return new FirstFit(units); };
    table.close = [](void *state) { delete static_cast<FirstFit *>(state); };
    table.count = [](void *state, bench_counts *counts) {
        const auto *list = static_cast<FirstFit *>(state);
        *counts = {};
        counts->allocs = list->allocs;
        counts->frees = list->frees;
        counts->probes = list->probes;
        counts->steps = list->steps;
    };
    table.gaps = [](void *state, bench_gaps *gaps) {
        *gaps = {};
        static_cast<FirstFit *>(state)->each_gap([=](size_t size) { add_gap(gaps, size); });
    };
    return table;
}

const bench_fit fits[] = {
    arena<SY_VMEM_INSTANT>("instant"),
    arena<SY_VMEM_BEST>("best"),
    arena<SY_VMEM_NEXT>("next"),
    first_fit_list(),
};

} // namespace

extern "C" const bench_fit *bench_fits(size_t *count) {
    *count = sizeof fits / sizeof fits[0];
    return fits;
}

extern "C" void bench_choose(bench_segment *segments, size_t live, size_t tail, uint64_t *state) {
    Random random{*state};
    for (size_t last = live; last > live - tail; last--) {
        std::swap(segments[last - 1], segments[random.below(last)]);
    }
    *state = random.state;
}

extern "C" void bench_resize(bench_segment *segments, size_t count, size_t most, uint64_t *state) {
    Random random{*state};
    for (size_t i = 0; i < count; i++) {
        segments[i].size = 1 + random.below(most);
    }
    *state = random.state;
}

/* One cycle through all nodes: exchanging each only with an earlier one makes no shorter cycle. */
extern "C" void bench_chase_open(bench_node *nodes, size_t count, uint64_t seed) {
    Random random{seed};
    for (size_t i = 0; i < count; i++) {
        nodes[i].next = &nodes[i];
    }
    for (size_t i = 1; i < count; i++) {
        std::swap(nodes[i].next, nodes[random.below(i)].next);
    }
}

extern "C" const bench_node *bench_chase(const bench_node *node, uint64_t steps) {
    for (uint64_t i = 0; i < steps; i++) {
        node = node->next;
    }
    return node;
}
