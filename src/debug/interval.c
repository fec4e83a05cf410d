/*
 * interval.c: see interval.h.
 */
#include "debug/interval.h"

#include <slabyard/base.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "base/random.h"
#include "os/os.h"

static SY_TLS uint64_t chance; /* state of random.h; 0: not seeded */

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

/* Returns a random number, exponentially distributed with the mean 1: the logarithm of 64 random
 * bits, with an error of at most a hundredth. */
static double next_exponential(void) {
    if (!chance) chance = take_seed() | 1;
    uint64_t bits = sy_random_next(&chance);
    unsigned high = sy_highest_bit(bits);
    double fraction = (double)(bits << (63 - high)) / 0x1p63 - 1;
    double log2 = high + fraction * (1.3465 - 0.3465 * fraction);
    return (64 - log2) * 0.6931472;
}

int64_t sy_interval_next(uint32_t every) {
    return every == 1 ? 1 : 1 + (int64_t)(next_exponential() * (every - 0.5));
}
