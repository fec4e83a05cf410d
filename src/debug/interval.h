/*
 * interval.h: how many allocations lie between two samples.
 *
 * The numbers are random, so that no program is in step with them. Below: base/, os/.
 */
#ifndef SY_DEBUG_INTERVAL_H
#define SY_DEBUG_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true by this chance, 0 to 1. */
bool sy_chance(double chance);

/* Returns the number of the first of several allocations that is chosen, if each is chosen by this
 * chance, above 0: geometrically distributed, with the mean 1 / chance. */
int64_t sy_interval_of_chance(double chance);

/* Returns a random number of allocations, at least 1, geometrically distributed with the mean
 * `every`. If `every` is 1, it is always 1. For any thread: each has random numbers of its own. */
int64_t sy_interval_next(uint32_t every);

/* For tests: from now on this thread has the random numbers of the seed, which is not 0. */
void sy_interval_seed(uint64_t seed);

#endif
