/*
 * cpu.h: what a processor is told besides loads and stores.
 *
 * Lowest layer: includes nothing of the project. The only place with a condition on the processor.
 */
#ifndef SY_BASE_CPU_H
#define SY_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* In a loop that waits for another processor. */
static inline void sy_cpu_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Asks for the line of `address` for writing; any value will do, it is not followed. On x86 by
 * name, since compilers for its baseline fall back to a prefetch for reading, which leaves the line
 * shared. */
static inline void sy_prefetch_for_write(uintptr_t address) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch((const void *)address, 1, 3);
#endif
}

/* Whether a frame pointer leads to two words: the caller's frame pointer and the return address. */
static inline bool sy_cpu_has_frames(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* A return address without what the processor signs it with: the upper 16 bits, on arm. */
static inline uintptr_t sy_cpu_return_address(uintptr_t stored) {
#if defined(__aarch64__)
    return stored & ((UINT64_C(1) << 48) - 1);
#else
    return stored;
#endif
}

#endif
