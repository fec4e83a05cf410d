/*
 * Programs that show whether the predictions of `slabyard compare` are true. Each program does real
 * work on input that it generates, the same in every run, and returns a number that depends on the
 * work. If the number differs with another allocator, that allocator damaged the program's data.
 *
 * `size` is the amount of work. Time grows with it; for some programs, memory does too.
 */
#ifndef BENCH_TRUTH_PROGRAMS_HPP
#define BENCH_TRUTH_PROGRAMS_HPP

#include <cstddef>
#include <cstdint>

namespace truth {

/* A deterministic generator of numbers that look random. */
class Random {
  public:
    explicit Random(uint64_t seed) : state(seed * 2654435761u + 1) {}

    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>(state >> 33);
    }

    /* At least 0, and less than `end`. */
    uint32_t below(uint32_t end) {
        return static_cast<uint32_t>(static_cast<uint64_t>(next()) * end >> 31);
    }

    /* A size as in programs: mostly small, rarely large. */
    size_t object_size() {
        uint32_t kind = below(100);
        if (kind < 60) return 8 + below(120);
        if (kind < 90) return 128 + below(896);
        return kind < 99 ? 1024 + below(7168) : 8192 + below(57344);
    }

  private:
    uint64_t state;
};

/* A sum that depends on the order of its parts. */
class Checksum {
  public:
    void add(uint64_t value) { sum = (sum ^ value) * 1099511628211u; }
    uint64_t value() const { return sum; }

  private:
    uint64_t sum = 1469598103934665603u;
};

/* texts.cpp */
uint64_t json(size_t size);
uint64_t strings(size_t size);
/* containers.cpp */
uint64_t map_replace(size_t size);
uint64_t hash_server(size_t size);
uint64_t graph(size_t size);
/* sizes.cpp */
uint64_t survivors(size_t size);
uint64_t small_churn(size_t size);
uint64_t short_run(size_t size);
/* buffers.cpp */
uint64_t vectors(size_t size);
uint64_t zeroed(size_t size);
uint64_t aligned(size_t size);
uint64_t images(size_t size);
uint64_t sparse(size_t size);
/* threads.cpp */
uint64_t messages(size_t size);
uint64_t thread_churn(size_t size);
uint64_t pool(size_t size);
/* processes.cpp */
uint64_t workers(size_t size);

} // namespace truth

#endif
