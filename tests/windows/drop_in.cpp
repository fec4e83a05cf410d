/*
 * drop_in.cpp: a program whose malloc and operators are the library's, by linking shim/windows.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <direct.h>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <slabyard/slabyard.h>

namespace {

void must(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "drop_in: not so: %s\n", what);
    std::abort();
}

/* Volatile, as are results: compilers leave out allocations whose results they do not need. */
volatile std::size_t too_much = PTRDIFF_MAX;

bool is_ours(const void *object) { return sy_usable_size(object) != 0; }

void the_functions_are_the_librarys() {
    void *object = std::malloc(100), *zeroed = std::calloc(10, 10);
    must(is_ours(object) && is_ours(zeroed) && _msize(object) >= 100, "malloc is the library's");
    object = std::realloc(object, 100000);
    must(is_ours(object), "and realloc");
    object = _recalloc(object, 2, 100000);
    must(is_ours(object) && static_cast<char *>(object)[199999] == 0, "and _recalloc");
    std::free(object);
    std::free(zeroed);
    void *volatile refused = std::malloc(too_much);
    must(refused == nullptr, "malloc refuses too much");
}

int faults;

void count_fault(const sy_fault *) { faults++; }

/* What lies in the library's memory is not given to the C library, and grown memory is zero. */
void mistakes_are_the_librarys_to_report() {
    sy_fault_handler before = sy_set_fault_handler(count_fault);
    char *volatile large =
        static_cast<char *>(std::malloc(300000)); /* else both are optimised away */
    std::free(large + 64);
    must(faults == 1, "a pointer into a large object is a fault");
    std::free(large);
    sy_set_fault_handler(before);
    auto *grown = static_cast<unsigned char *>(std::malloc(200));
    std::memset(grown, 1, 200);
    std::free(grown);
    grown = static_cast<unsigned char *>(_recalloc(nullptr, 1, 180));
    grown = static_cast<unsigned char *>(_recalloc(grown, 1, 190));
    for (int i = 0; i < 190; i++) must(grown[i] == 0, "_recalloc zeroes");
    std::free(grown);
}

/* The C library allocates these, and the program frees them. */
void what_the_c_library_allocates_is_freed_there() {
    for (int i = 0; i < 1000; i++) {
        char *copy = _strdup("a text"), *folder = _getcwd(nullptr, 0);
        must(copy && folder && std::strcmp(copy, "a text") == 0, "the C library allocates");
        copy = static_cast<char *>(std::realloc(copy, 1000));
        must(copy && std::strcmp(copy, "a text") == 0, "and enlarges");
        std::free(copy);
        std::free(folder);
    }
}

struct alignas(256) wide {
    char bytes[300];
};

void the_operators_are_the_librarys() {
    auto text = std::make_unique<std::string>(1000, 'x');
    must(is_ours(text.get()) && is_ours(text->data()), "new is the library's");
    auto some = std::make_unique<wide[]>(3);
    must(is_ours(some.get()) && reinterpret_cast<std::uintptr_t>(some.get()) % 256 == 0, "aligned");
    void *volatile refused = ::operator new(too_much, std::nothrow);
    must(refused == nullptr, "new refuses too much");
    bool thrown = false;
    try {
        refused = ::operator new(too_much);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    must(thrown, "or thrown");
}

void work(unsigned seed) {
    std::map<unsigned, std::vector<unsigned>> all;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        auto &some = all[seed >> 20];
        some.push_back(seed >> 20);
        must(some.front() == seed >> 20, "each has its own");
        if (some.size() > 20) all.erase(seed >> 20);
    }
}

void threads_use_them() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) threads.emplace_back(work, i);
    for (auto &thread : threads) thread.join();
}

} // namespace

int main() {
    the_functions_are_the_librarys();
    mistakes_are_the_librarys_to_report();
    what_the_c_library_allocates_is_freed_there();
    the_operators_are_the_librarys();
    for (int i = 0; i < 5; i++) threads_use_them();
    must(sy_verify() == 0, "all is sound");
    return 0;
}
