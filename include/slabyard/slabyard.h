/**
 * slabyard.h: all interfaces at once.
 *
 *     pool.h    objects of one size, one thread at a time
 *     cache.h   objects of one kind, any thread
 *     handle.h  objects by 64-bit handles that stay invalid once the object is freed
 *     heap.h    any size: the malloc family
 *     heaps.h   separate heaps, limited and released as a whole
 *     epoch.h   objects of one phase in slabs of their own
 *     scope.h   what a thread allocates from the heap, in memory of its own
 *     limit.h   limits in bytes, and why an allocation was refused
 *     reclaim.h return of free memory to the operating system
 *     memory.h  caches over memory of your own
 *     vmem.h    arenas: ids, offsets, addresses: any resource that is a set of integers
 *     stats.h   what the caches hold and where the memory is
 *     checks.h  flags that look for mistakes
 *     fault.h   reports and handlers for misuse that would corrupt memory
 *     audit.h   allocation tags, the last operations of a cache, leaks
 *     profile.h profiles of the heap, from samples
 *     count.h   what a thread allocates, for tests
 *     fail.h    allocation failures on request, for tests
 *     options.h options that are set without recompiling
 *
 * Each header can be included by itself; this one adds nothing. What any version may change is in
 * unstable.h, which is not among them.
 */
#ifndef SLABYARD_SLABYARD_H
#define SLABYARD_SLABYARD_H

#include <slabyard/audit.h>
#include <slabyard/cache.h>
#include <slabyard/checks.h>
#include <slabyard/count.h>
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
#include <slabyard/profile.h>
#include <slabyard/reclaim.h>
#include <slabyard/scope.h>
#include <slabyard/stats.h>
#include <slabyard/vmem.h>

#endif
