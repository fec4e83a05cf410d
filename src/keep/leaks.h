/*
 * leaks.h: live objects of caches with SY_AUDIT, in groups: those of one cache that were allocated
 * by the same stack. slabyard/audit.h has the doors.
 *
 *     leaks.c   the groups, what is told of them
 *     reach.c   which objects something points to; in a copy of the process
 *
 * Above: heap/, when one is destroyed. Below: all layers up to cache/.
 */
#ifndef SY_KEEP_LEAKS_H
#define SY_KEEP_LEAKS_H

#include <slabyard/audit.h>
#include <slabyard/cache.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/start.h"

/* What is live in a cache that is to be destroyed is told, if the option `leaks` says so. No lock
 * is held; errno is kept. */
void sy_leaks_at_destroy(sy_cache *cache);

/* Has leaks told at the end of the process, if the option says so. */
extern SY_HIDDEN const sy_part sy_leaks_part;

/*
 * For a copy of the process that nobody works in but the caller, and that does nothing but look for
 * leaks: every live object that something points to is made a free one. `stack`: of the calling
 * thread what lies below this address says nothing. False: it could not be found out.
 */
bool sy_reach_all(uintptr_t stack);

#endif
