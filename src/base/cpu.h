/*
 * cpu.h: processor instructions for hints, frame pointers and Valgrind.
 *
 * Lowest layer: includes no other header of the project.
 */
#ifndef SY_BASE_CPU_H
#define SY_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* To be called in a loop that waits for another processor. */
static inline void sy_cpu_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Prefetches the cache line of `address` for writing. The address may be invalid: a prefetch does
 * not fault. On x86 the instruction is written by name, because compilers for the baseline
 * processor use a prefetch for reading instead, which leaves the line shared. */
static inline void sy_prefetch_for_write(uintptr_t address) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch((const void *)address, 1, 3);
#endif
}

/* Whether a frame pointer points to two words: the caller's frame pointer and the return
 * address. */
static inline bool sy_cpu_has_frames(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* Whether the return address follows the frame pointer's word. The caller's frame pointer, before
 * it, may lead nowhere. */
static inline bool sy_cpu_return_follows_frame(void) {
#if defined(__i386__)
    return true;
#else
    return sy_cpu_has_frames();
#endif
}

/* A return address without the processor's signature, which is in the upper 16 bits on arm. */
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

/* Makes the compiler compute `value` as written. If it is a sum, the compiler does not regroup it
 * with numbers that are added later. */
static inline uintptr_t sy_cpu_in_register(uintptr_t value) {
    __asm__("" : "+r"(value));
    return value;
}

/* Makes a request to Valgrind: a number and five arguments. Returns Valgrind's answer, or
 * `unanswered` if the program does not run under Valgrind. Valgrind recognises this sequence of
 * instructions. Without Valgrind it does nothing: rotations by 128 bits in all, then a move of a
 * register to itself. */
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
