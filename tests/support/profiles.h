/*
 * profiles.h: for tests of profiles: sums over the profile, and estimates.
 */
#ifndef SLABYARD_TESTS_PROFILES_H
#define SLABYARD_TESTS_PROFILES_H

#include "debug/profile.h"
#include "support/child.h"
#include "support/services.h"

/* Defines the test `name`, which runs name_here in a child. */
#define RUN(name)                                         \
    static void name(void **state) {                      \
        needs(SY_OS_STACKS);                              \
        (void)state;                                      \
        assert_int_equal(in_child(name##_here, NULL), 0); \
    }

/* The sums over all sites. */
static inline sy_profile_site sums(void) {
    sy_profile_site sum = {.stack = 0}, site;
    for (uint32_t i = 0; sy_profile_get_site(i, &site); i++) {
        sum.allocated += site.allocated;
        sum.freed += site.freed;
        sum.allocated_bytes += site.allocated_bytes;
        sum.freed_bytes += site.freed_bytes;
    }
    return sum;
}

/* Whether the estimate is off by at most this part of the truth. */
static inline bool is_near(double estimate, double truth, double part) {
    double error = estimate - truth;
    return error <= truth * part && error >= -truth * part;
}

#endif
