/*
 * traps.h: for tests that stop a thread at one of its instructions: while the processor's trap flag
 * is set, a signal follows each instruction. Only on Linux, x86-64, and not under a sanitizer.
 */
#ifndef SLABYARD_TESTS_TRAPS_H
#define SLABYARD_TESTS_TRAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/sanitized.h"

#if defined(__x86_64__) && defined(__linux__)
#    include <signal.h>
#    include <ucontext.h>

static const bool CAN_STEP = !SANITIZED;

static void (*at_trap)(void *context);

static inline void trap(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    at_trap(context);
}

static inline bool call_at_traps(void (*function)(void *context)) {
    const struct sigaction action = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO};
    at_trap = function;
    return sigaction(SIGTRAP, &action, NULL) == 0;
}

/* From the next instruction on. */
static inline void set_trap_flag(void) {
    __asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}

/* The thread goes on without traps. */
static inline void clear_trap_flag(void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100LL;
}

/* The address of the next instruction. */
static inline uintptr_t trapped_at(void *context) {
    return (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

/* Whether it is not in the C library, nor in the kernel's clock_gettime, which never ends at this
 * speed. */
static inline bool is_of_program(uintptr_t place) {
    extern const char __executable_start[], etext[];
    return place >= (uintptr_t)__executable_start && place < (uintptr_t)etext;
}

#else

static const bool CAN_STEP = false;

static inline bool call_at_traps(void (*function)(void *context)) { return (void)function, true; }

static inline void set_trap_flag(void) {}

static inline void clear_trap_flag(void *context) { (void)context; }

static inline uintptr_t trapped_at(void *context) { return (void)context, 0; }

static inline bool is_of_program(uintptr_t place) { return (void)place, true; }

#endif

#endif
