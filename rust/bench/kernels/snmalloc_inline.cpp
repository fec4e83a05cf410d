/*
 * snmalloc compiled into the loops, with the size as a constant: its best case.
 *
 * The source is the one that the snmalloc crate carries. The namespace is renamed, because the
 * library built by that crate is linked into the same program.
 */
#define snmalloc snmalloc_inline
#include <snmalloc/snmalloc.h>
#undef snmalloc

#include "kernels.hpp"

namespace {

template <size_t Size> struct Inline {
    static Inline open(void *) { return {}; }
    __attribute__((always_inline)) void *alloc() const { return snmalloc_inline::alloc<Size>(); }
    __attribute__((always_inline)) void free(void *object) const {
        snmalloc_inline::dealloc<Size>(object);
    }
    size_t object_size() const { return Size; }
};

} // namespace

#define BENCH_PASTE(a, b)           a##b
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_allocator *BENCH_NAMED(bench_snmalloc_, BENCH_LAYOUT)(size_t size) {
    return table_of_constant<Inline>("snmalloc-inline", size);
}
