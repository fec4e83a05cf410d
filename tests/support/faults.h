/*
 * faults.h: a fault handler that keeps the last fault, for tests that make faults and check them.
 */
#ifndef SLABYARD_TESTS_FAULTS_H
#define SLABYARD_TESTS_FAULTS_H

#include <string.h>

#include <slabyard/fault.h>

static sy_fault seen_fault;
static unsigned char seen_damage[64]; /* what it was when the handler was called */
static char seen_cache[64];
static unsigned faults_seen;

static inline void see_fault(const sy_fault *fault) {
    seen_fault = *fault;
    strncpy(seen_cache, fault->cache, sizeof seen_cache - 1);
    size_t bytes =
        fault->damage_bytes < sizeof seen_damage ? fault->damage_bytes : sizeof seen_damage;
    if (fault->damage) memcpy(seen_damage, fault->damage, bytes);
    faults_seen++;
}

/* For setup and teardown of cmocka. */
static inline int watch_faults(void **state) {
    (void)state;
    faults_seen = 0;
    sy_set_fault_handler(see_fault);
    return 0;
}

/* There was exactly one fault since the last check, of this kind and at this address. */
#define expect_seen(kind_, cache_, address_)            \
    do {                                                \
        assert_int_equal(faults_seen, 1);               \
        assert_int_equal(seen_fault.kind, kind_);       \
        assert_string_equal(seen_cache, cache_);        \
        assert_ptr_equal(seen_fault.address, address_); \
        faults_seen = 0;                                \
    } while (0)

#define expect_none() assert_int_equal(faults_seen, 0)

/* Writes to places at which the compiler would warn. */
static inline void scribble(void *start, ptrdiff_t offset, int byte, size_t bytes) {
    volatile unsigned char *at = (volatile unsigned char *)start + offset;
    while (bytes--) *at++ = (unsigned char)byte;
}

#endif
