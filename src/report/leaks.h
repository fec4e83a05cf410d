/*
 * leaks.h: lists live objects of caches with SY_AUDIT in groups. A group is the objects of one
 * cache that were allocated from the same stack. slabyard/audit.h has the public functions.
 *
 *     leaks.c   makes the groups and reports them
 *     reach.c   finds the objects that something points to, in a copy of the process
 *
 * Above: teller.c. Below: all layers up to cache/.
 */
#ifndef SY_REPORT_LEAKS_H
#define SY_REPORT_LEAKS_H

#include <slabyard/audit.h>
#include <slabyard/cache.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/start.h"

/* Reports the live objects of a cache that is to be destroyed, or of all caches of the separate
 * heap that it belongs to, if the option `leaks` asks for it. No lock is held; errno is kept. */
void sy_leaks_at_destroy(sy_cache *cache);

/* Writes where the recorded objects of sy_malloc's family that survive a scope were allocated, by
 * stack, if there are any. `scope`: as in their records (debug/watch.h). No lock is held; errno is
 * kept. */
void sy_survivors_write(uint32_t scope);

/* Reports leaks at the end of the process, if the option asks for it. */
extern SY_HIDDEN const sy_part sy_leaks_part;

/*
 * Called in a copy of the process in which only the calling thread runs, and only looks for leaks.
 * Marks each live object that something points to as free. `stack`: the calling thread's stack
 * below this address is not searched. False: the search failed.
 */
bool sy_reach_all(uintptr_t stack);

#endif
