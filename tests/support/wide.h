/*
 * wide.h: skips a test that needs gigabytes of addresses, where addresses have 32 bits. <cmocka.h>
 * comes before it.
 */
#ifndef SLABYARD_TESTS_WIDE_H
#define SLABYARD_TESTS_WIDE_H

#include <stdint.h>

static inline void needs_wide_addresses(void) {
    if (UINTPTR_MAX == UINT32_MAX) skip();
}

#endif
