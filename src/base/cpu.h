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

/* Makes the compiler give the calling function a frame pointer, so that a tool that walks the stack
 * by frame pointers sees its caller. For slow paths. */
static inline __attribute__((always_inline)) void sy_cpu_keep_frame(void) {
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
}

/* The value, computed as it stands: the compiler does not regroup the sum that it is with what is
 * added to it after. */
static inline uintptr_t sy_cpu_in_register(uintptr_t value) {
    __asm__("" : "+r"(value));
    return value;
}

/* Asks Valgrind, where the program runs under it: a number and five arguments, and its answer; else
 * `unanswered`. Anywhere else these instructions do nothing: rotations by 128 bits in all, then a
 * move of a register to itself, by which Valgrind knows them. */
static inline uintptr_t sy_valgrind_ask(const uintptr_t request[6], uintptr_t unanswered) {
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ volatile(
        "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
        : "+d"(unanswered)
        : "a"(request)
        : "cc", "memory");
#elif defined(__aarch64__)
    register uintptr_t answer __asm__("x3") = unanswered;
    register const uintptr_t *asked __asm__("x4") = request;
    __asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61;"
                     "orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(asked)
                     : "cc", "memory");
    unanswered = answer;
#else
    (void)request;
#endif
    return unanswered;
}

#endif
