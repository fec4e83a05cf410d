/*
 * The control for arenas: the free segments of a range in a doubly linked list in order of value.
 * An allocation takes the start of the first that is large enough; a free looks for its place from
 * the front and joins what touches. Both look at more segments the more there are.
 *
 * Included by vmem_segments.cpp alone. One thread at a time.
 */
#ifndef BENCH_FIRST_FIT_HPP
#define BENCH_FIRST_FIT_HPP

#include <cstddef>
#include <cstdint>
#include <deque>

namespace {

class FirstFit {
  public:
    uint64_t allocs = 0, frees = 0; /* that succeeded */
    uint64_t probes = 0;            /* segments looked at by allocations */
    uint64_t steps = 0;             /* segments looked at by frees */

    explicit FirstFit(size_t units) { link(node(0, units), &ends); }

    bool alloc(size_t size, uintptr_t *value) {
        Gap *gap = ends.after;
        for (; gap != &ends && gap->size < size; gap = gap->after) {
            probes++;
        }
        if (gap == &ends) {
            return false;
        }
        probes++;
        allocs++;
        *value = gap->start;
        gap->start += size;
        gap->size -= size;
        if (gap->size == 0) {
            unlink(gap);
        }
        return true;
    }

    void free(uintptr_t value, size_t size) {
        frees++;
        Gap *behind = ends.after;
        for (; behind != &ends && behind->start < value; behind = behind->after) {
            steps++;
        }
        Gap *before = behind->before;
        if (before == &ends || before->start + before->size != value) {
            before = node(value, 0);
            link(before, behind);
        }
        before->size += size;
        if (behind != &ends && before->start + before->size == behind->start) {
            before->size += behind->size;
            unlink(behind);
        }
    }

    /* Calls `visit` with the size of each free segment. */
    template <class Visit> void each_gap(Visit visit) const {
        for (const Gap *gap = ends.after; gap != &ends; gap = gap->after) {
            visit(gap->size);
        }
    }

  private:
    struct Gap {
        Gap *before, *after;
        uintptr_t start;
        size_t size;
    };

    Gap ends{&ends, &ends, 0, 0}; /* before the first and after the last */
    Gap *unused = nullptr;        /* linked by `after` */
    std::deque<Gap> nodes;

    Gap *node(uintptr_t start, size_t size) {
        Gap *gap = unused;
        if (gap != nullptr) {
            unused = gap->after;
        } else {
            gap = &nodes.emplace_back();
        }
        gap->start = start;
        gap->size = size;
        return gap;
    }

    static void link(Gap *gap, Gap *behind) {
        gap->after = behind;
        gap->before = behind->before;
        behind->before->after = gap;
        behind->before = gap;
    }

    void unlink(Gap *gap) {
        gap->before->after = gap->after;
        gap->after->before = gap->before;
        gap->after = unused;
        unused = gap;
    }
};

} // namespace

#endif
