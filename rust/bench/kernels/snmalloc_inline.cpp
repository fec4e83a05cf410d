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

template <size_t Size> const bench_allocator *table_of() {
    static const bench_allocator table = [] {
        static char state;
        bench_allocator made = kernels_of<Inline<Size>>();
        made.name = "snmalloc-inline";
        made.traits = BENCH_SHARED | BENCH_GROWS;
        made.open = [](size_t, size_t) -> void * { return &state; };
        made.close = [](void *) {};
        made.thread_end = made.close;
        return made;
    }();
    return &table;
}

} // namespace

#define BENCH_PASTE(a, b)           a##b
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_allocator *BENCH_NAMED(bench_snmalloc_, BENCH_LAYOUT)(size_t size) {
    switch (size) {
    case 8: return table_of<8>();
    case 16: return table_of<16>();
    case 64: return table_of<64>();
    case 256: return table_of<256>();
    case 1024: return table_of<1024>();
    case 4096: return table_of<4096>();
    default: return nullptr;
    }
}
