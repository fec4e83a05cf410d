/*
 * sums.h: the figures of all caches and of the rest of the memory, for the statistics that programs
 * ask of glibc and of jemalloc.
 */
#ifndef SY_SHIM_SUMS_H
#define SY_SHIM_SUMS_H

#include <stddef.h>

#include <slabyard/stats.h>

#include "heap/classes.h"

typedef struct sy_shim_sums {
    sy_stats memory;
    size_t used;       /* bytes of objects in caches, each with its whole slot */
    size_t free_slots; /* number of free slots in slabs */
    size_t untouched;  /* bytes of slabs without memory */
    struct {
        size_t live, slabs; /* number of objects and of slabs of the size class */
    } classes[SY_CLASSES];
} sy_shim_sums;

/* Adds everything up. Other threads change the figures meanwhile. */
void sy_shim_add_up(sy_shim_sums *sums);

static inline size_t sy_shim_difference(size_t from, size_t bytes) {
    return from > bytes ? from - bytes : 0;
}

#endif
