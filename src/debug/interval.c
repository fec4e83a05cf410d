/*
 * interval.c: see interval.h.
 */
#include "debug/interval.h"

#include <slabyard/base.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "base/random.h"
#include "os/os.h"

static SY_TLS uint64_t state; /* of random.h; 0: not seeded */

/* The seeds of threads come from successive numbers of one sequence: to ask the system for each
 * would cost every thread a system call. The time makes those of processes that were forked
 * different. */
static uint64_t take_seed(void) {
    static _Atomic uint64_t next; /* 0: not begun */
    uint64_t none = 0;
    if (atomic_load_explicit(&next, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong_explicit(&next, &none, sy_os_random() | 1,
                                                memory_order_relaxed, memory_order_relaxed);
    uint64_t taken = atomic_fetch_add_explicit(&next, SY_RANDOM_STEP, memory_order_relaxed);
    return sy_random_mix(taken ^ sy_os_now());
}

/* From this chance on each allocation is drawn by itself: the exponential distribution, rounded
 * down, has a mean that is too large by a twelfth of the chance. */
static const double OFTEN = 1.0 / 32;

static uint64_t next_bits(void) {
    if (!state) state = take_seed() | 1;
    return sy_random_next(&state);
}

/* The natural logarithm of a number from 1 to 2, with an error of about 1e-6: the series of the
 * inverse hyperbolic tangent. */
static double log_from_1_to_2(double number) {
    double t = (number - 1) / (number + 1), square = t * t;
    double sum = 1.0 / 7 + square / 9;
    sum = 1.0 / 5 + square * sum;
    sum = 1.0 / 3 + square * sum;
    return 2 * t * (1 + square * sum);
}

/* Returns a random number, exponentially distributed with the mean 1: the logarithm of 64 random
 * bits. Short intervals need a small error: a count that ends early uses only these (countdown.h).
 */
static double next_exponential(void) {
    static const double LOG_2 = 0.6931471805599453;
    uint64_t bits = next_bits();
    unsigned high = sy_highest_bit(bits);
    return (64 - high) * LOG_2 - log_from_1_to_2((double)(bits << (63 - high)) / 0x1p63);
}

bool sy_chance(double chance) { return (double)(next_bits() >> 11) < chance * 0x1p53; }

int64_t sy_interval_of_chance(double chance) {
    if (chance < OFTEN) return 1 + (int64_t)(next_exponential() * (1 / chance - 0.5));
    int64_t number = 1;
    while (!sy_chance(chance)) number++;
    return number;
}

int64_t sy_interval_next(uint32_t every) {
    return every == 1 ? 1 : 1 + (int64_t)(next_exponential() * (every - 0.5));
}

void sy_interval_seed(uint64_t seed) { state = seed; }
