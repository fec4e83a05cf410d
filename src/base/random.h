/*
 * random.h: cheap random numbers, for random choices. They can be predicted, so they are not for
 * secrets.
 *
 * Lowest layer: includes no other header of the project. The caller keeps the state, which must not
 * be 0.
 */
#ifndef SY_BASE_RANDOM_H
#define SY_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t sy_random_next(uint64_t *state) { /* xorshift64 (Marsaglia, 2003) */
    uint64_t random = *state;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return *state = random;
}

/* Turns the numbers x, x + SY_RANDOM_STEP, x + 2 * SY_RANDOM_STEP and so on into random ones, for
 * any x (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). */
#define SY_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t sy_random_mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* From 0 to `bound` - 1; bound > 0. */
static inline uint32_t sy_random_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)((sy_random_next(state) >> 32) * bound >> 32);
}

#endif
