/*
 * services.h: tests of what a platform may lack (os/platform.h).
 *
 * A test of cmocka begins with needs(SY_OS_...), and is skipped without that service. Any other
 * program calls must_have: it ends with 77, which ctest counts as skipped.
 */
#ifndef SY_TESTS_SERVICES_H
#define SY_TESTS_SERVICES_H

#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"

static inline bool has_all(unsigned services) { return (SY_OS_SERVICES & services) == services; }

#define needs(services)                 \
    do {                                \
        if (!has_all(services)) skip(); \
    } while (0)

static inline void must_have(unsigned services, const char *what) {
    if (has_all(services)) return;
    printf("skipped: this platform lacks %s\n", what);
    exit(77);
}

#endif
