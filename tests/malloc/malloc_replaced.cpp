/*
 * malloc_replaced.cpp: a program that replaces the basic forms of operators new and delete, and
 * puts a header before each object. The other forms have to call these two.
 */
#include <cstddef>
#include <new>

#include "malloc/malloc.h"

namespace {

constexpr std::size_t header = 64;
constexpr unsigned long long mark = 0x510b'7a6d;
long live;

} // namespace

void *operator new(std::size_t size) {
    auto *block = static_cast<unsigned char *>(std::malloc(size + header));
    if (!block) throw std::bad_alloc();
    *reinterpret_cast<unsigned long long *>(block) = mark;
    live++;
    return block + header;
}

void operator delete(void *object) noexcept {
    if (!object) return;
    auto *block = static_cast<unsigned char *>(object) - header;
    must(*reinterpret_cast<unsigned long long *>(block) == mark);
    live--;
    std::free(block);
}

int main() {
    must_be_slabyard();
    ::operator delete(::operator new(100));
    ::operator delete (::operator new(100), std::size_t{100});
    ::operator delete(::operator new(100, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](100));
    ::operator delete[](::operator new[](100), std::size_t{100});
    ::operator delete[](::operator new[](100, std::nothrow), std::nothrow);
    must(live == 0);
    void *object = ::operator new[](100, std::nothrow);
    must(live == 1);
    ::operator delete[](object);
    must(live == 0);
    /* Forms with an alignment call other basic forms, which the program has not replaced. */
    ::operator delete (::operator new (100, std::align_val_t{64}), std::align_val_t{64});
    must(live == 0);
    return 0;
}
