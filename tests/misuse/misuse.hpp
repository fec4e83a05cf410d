/* misuse.hpp: functions that the C++ programs in this folder share (see misuse.h). */
#ifndef SLABYARD_TESTS_MISUSE_HPP
#define SLABYARD_TESTS_MISUSE_HPP

#include <cstdio>

#include <slabyard/slabyard.hpp>

struct order {
    long words[8];
};

/* Prints the address that will be misused, and returns it as a pointer about which the compiler
 * knows nothing. */
template <class T> T *told(T *object) {
    std::printf("%p\n", static_cast<void *>(object));
    std::fflush(stdout);
    __asm__ volatile("" : "+r"(object));
    return object;
}

#endif
