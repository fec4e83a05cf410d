/*
 * interval.h: how many allocations lie between two samples.
 *
 * The numbers are random, so that no program is in step with them. Below: base/, os/.
 */
#ifndef SY_DEBUG_INTERVAL_H
#define SY_DEBUG_INTERVAL_H

#include <stdint.h>

/* Returns a random number of allocations, at least 1, geometrically distributed with the mean
 * `every`. If `every` is 1, it is always 1. For any thread: each has random numbers of its own. */
int64_t sy_interval_next(uint32_t every);

#endif
