/*
 * emulated.h: whether the test runs under qemu's user mode (tests/install/aarch64.sh). The emulator
 * passes most system calls on, but answers some of them differently from a kernel. A test that
 * needs such a call is skipped there. A comment says what the emulator does differently.
 */
#ifndef SLABYARD_TESTS_EMULATED_H
#define SLABYARD_TESTS_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool is_emulated(void) { return getenv("SLABYARD_TEST_EMULATED") != NULL; }

#endif
