/*
 * slabyard.h: all the doors at once.
 *
 *     pool.h    objects of one kind, one thread at a time
 *     cache.h   objects of one kind, any thread
 *     handle.h  objects by 64-bit names that are stale for ever once they are freed
 *     heap.h    any size: the malloc family
 *     heaps.h   heaps of the program's own, limited and given up as a whole
 *     limit.h   limits in bytes, and why an allocation was refused
 *     memory.h  caches over memory of the program's own
 *     vmem.h    arenas: ids, offsets, addresses: any resource that is integers
 *     stats.h   what the caches hold and where the memory is
 *     checks.h  flags that look for mistakes
 *     fault.h   what happens when corruption is found
 *     audit.h   who has what: tags, the last operations of a cache, leaks
 *     fail.h    allocations that are made to fail, for tests
 *     options.h what can be set without compiling again
 *
 * Each header stands alone; this one adds nothing.
 */
#ifndef SLABYARD_SLABYARD_H
#define SLABYARD_SLABYARD_H

#include <slabyard/audit.h>
#include <slabyard/cache.h>
#include <slabyard/checks.h>
#include <slabyard/epoch.h>
#include <slabyard/fail.h>
#include <slabyard/fault.h>
#include <slabyard/handle.h>
#include <slabyard/heap.h>
#include <slabyard/heaps.h>
#include <slabyard/limit.h>
#include <slabyard/memory.h>
#include <slabyard/options.h>
#include <slabyard/pool.h>
#include <slabyard/reclaim.h>
#include <slabyard/stats.h>
#include <slabyard/vmem.h>

#endif
