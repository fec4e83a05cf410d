/*
 * random.h: random bits for platforms on which the system gives none at the moment.
 *
 * Above: the files of all platforms.
 */
#ifndef SY_OS_RANDOM_H
#define SY_OS_RANDOM_H

#include <stdint.h>

/* 64 bits that differ between calls and between processes. They are harder to predict than a count,
 * and easier than those of the system. */
uint64_t sy_os_weak_random(void);

#endif
