/*
 * malloc_operators.cpp: tests each form of C++'s operators new and delete under the drop-in malloc.
 */
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "malloc/malloc.h"

namespace {

constexpr std::size_t huge = PTRDIFF_MAX;

bool is_slabyards(void *block) {
    return malloc_usable_size(block) == 112 || malloc_usable_size(block) == 100;
}

std::size_t opaque_size(std::size_t size) {
    __asm__ volatile("" : "+r"(size));
    return size;
}

void every_form_of_one_alignment() {
    void *block = ::operator new(100);
    must(is_slabyards(block));
    ::operator delete(block);
    block = ::operator new(100);
    ::operator delete (block, std::size_t{100});
    block = ::operator new(100, std::nothrow);
    must(is_slabyards(block));
    ::operator delete(block, std::nothrow);
    block = ::operator new[](100);
    must(is_slabyards(block));
    ::operator delete[](block);
    block = ::operator new[](100);
    ::operator delete[](block, std::size_t{100});
    block = ::operator new[](100, std::nothrow);
    must(is_slabyards(block));
    ::operator delete[](block, std::nothrow);
    block = ::operator new(0);
    must(block != nullptr);
    ::operator delete (block, std::size_t{0});
    ::operator delete(nullptr);
    ::operator delete (nullptr, std::size_t{8});
    ::operator delete[](nullptr);
}

void every_form_of_alignments() {
    for (std::size_t value = 32; value <= std::size_t{1} << 22; value *= 2) {
        const std::align_val_t align{value};
        void *blocks[] = {::operator new(100, align), ::operator new(100, align, std::nothrow),
                          ::operator new[](100, align), ::operator new[](100, align, std::nothrow)};
        for (void *block : blocks)
            must(block && reinterpret_cast<std::uintptr_t>(block) % value == 0);
        ::operator delete(blocks[0], align);
        ::operator delete(blocks[1], align, std::nothrow);
        ::operator delete[](blocks[2], align);
        ::operator delete[](blocks[3], align, std::nothrow);
        ::operator delete (::operator new(100, align), std::size_t{100}, align);
        ::operator delete[](::operator new[](100, align), std::size_t{100}, align);
    }
}

/* Elements with a destructor: the allocation begins with their count, and the compiler passes the
 * size of all to operator delete[]. `Bytes` and `Align`: of an element. */
template <std::size_t Bytes, std::size_t Align> struct alignas(Align) element {
    char bytes[Bytes];
    element() { bytes[0] = 1; }
    ~element() { must(bytes[0] == 1); }
};

template <class Element> void arrays_of() {
    for (std::size_t count = 0; count < 300; count++) {
        delete[] static_cast<Element *>(opaque(new Element[count]));
        delete[] static_cast<Element(*)[3]>(opaque(new Element[count][3]));
    }
}

void arrays_are_freed_with_their_sizes() {
    arrays_of<char>();
    arrays_of<element<1, 1>>();
    arrays_of<element<8, 8>>();
    arrays_of<element<24, 8>>();
    arrays_of<element<16, 16>>();
    arrays_of<element<40, 64>>();
    arrays_of<element<3000, 4096>>();
}

int times_called;

void give_up_later() {
    if (++times_called == 3) std::set_new_handler(nullptr);
}

struct own_error {};

void give_up_by_throwing() { throw own_error(); }

[[maybe_unused]] void refuse() { throw std::bad_alloc(); }

template <typename Error, typename Body> bool throws(Body body) {
    try {
        body();
    } catch (const Error &) {
        return true;
    }
    return false;
}

void handlers_are_called() {
    auto take = [] { return opaque(::operator new(opaque_size(huge))); };
    auto take_aligned = [] {
        return opaque(::operator new (opaque_size(huge), std::align_val_t{64}));
    };
    must(throws<std::bad_alloc>(take) && throws<std::bad_alloc>(take_aligned));
    std::set_new_handler(give_up_later);
    must(throws<std::bad_alloc>(take) && times_called == 3);
    std::set_new_handler(give_up_by_throwing);
    must(throws<own_error>(take) && throws<own_error>(take_aligned));
#ifndef LINKED_STATICALLY
    std::set_new_handler(refuse);
    must(::operator new(opaque_size(huge), std::nothrow) == nullptr);
    must(::operator new[](opaque_size(huge), std::nothrow) == nullptr);
    must(::operator new (opaque_size(huge), std::align_val_t{64}, std::nothrow) == nullptr);
#endif
    times_called = 0;
    std::set_new_handler(give_up_later);
    must(::operator new(opaque_size(huge), std::nothrow) == nullptr &&times_called == 3);
    must(std::get_new_handler() == nullptr);
    must(::operator new(opaque_size(huge), std::nothrow) == nullptr);
}

struct alignas(256) wide {
    char bytes[256];
};

void containers_hold_what_was_put_in() {
    std::vector<std::unique_ptr<wide>> all;
    for (int i = 0; i < 1000; i++) {
        all.push_back(std::make_unique<wide>());
        fill(all.back().get(), sizeof(wide), static_cast<unsigned>(i));
    }
    for (int i = 0; i < 1000; i++)
        must_be_whole(all[static_cast<std::size_t>(i)].get(), sizeof(wide),
                      static_cast<unsigned>(i));
}

} // namespace

int main() {
    must_be_slabyard();
    every_form_of_one_alignment();
    every_form_of_alignments();
    arrays_are_freed_with_their_sizes();
    handlers_are_called();
    containers_hold_what_was_put_in();
    return 0;
}
