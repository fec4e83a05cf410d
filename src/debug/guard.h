/*
 * guard.h: guarded objects: objects on pages of their own, with inaccessible pages beside them.
 *
 *     | guard | slot 0 | guard | slot 1 | guard | slot 2 . (guard) . slot 3 | guard | ...
 *      a page                                      a run of two slots, for a larger object
 *
 * Objects lie alternately at the right end and at the left end of their runs, as close to the end
 * as their alignment allows. While an object is live, only the pages that it touches are
 * accessible. The rest of these pages is filled with the pattern of the object's watch. After the
 * free, a run waits in a queue: the run that was freed longest ago is reused first. The guards are
 * made by the kernel's MADV_GUARD_INSTALL (Linux 6.13), which costs no mapping, or else by
 * mprotect.
 *
 * All runs lie in one reservation. It is made when the first object is guarded, and the option
 * `guard-slots` gives the number of its slots, of which as many are used as the live objects need,
 * and as many again. With guard=all it has a million slots (8 GiB of addresses, which hold memory
 * only once used), and an object may have a run of several slots, up to 1 MiB. Otherwise an object
 * larger than a page is not guarded. An object for which no run is left is not guarded either; such
 * objects are counted.
 *
 * The default of 16,384 slots is the samples of 819 million live objects with sample=1/50000, and
 * of 16 million with guard=1/1000. They take 128 MiB of addresses, 3 MiB of records, and a page of
 * memory for each live object: 64 MiB at most.
 *
 * Each run has a record (watch.h), so that a free can be validated and a fault explained. The
 * handler of SIGSEGV and SIGBUS calls sy_guard_explain, if the option `explain` allows a handler,
 * and then the handler that was there before. The stacks of each object's allocation and free are
 * recorded, with or without audit: most often by copies of the stacks, which only a report unwinds
 * (stack.h). (After GWP-ASan and KFENCE.)
 *
 * Above: magazine/ (decides when to guard), cache/ (allocates and frees). Below: watch.h, stack.h,
 * os/.
 */
#ifndef SY_DEBUG_GUARD_H
#define SY_DEBUG_GUARD_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug/watch.h"
#include "os/os.h"
#include "os/start.h"

/* The region of guarded objects: its start and its size in bytes. Written once; 0 bytes before. */
extern SY_HIDDEN _Atomic uintptr_t sy_guard_start;
extern SY_HIDDEN _Atomic size_t sy_guard_bytes;

/* Whether the address lies in the region of guarded objects; false before there is one. */
static inline bool sy_guard_owns(uintptr_t address) {
    size_t bytes = atomic_load_explicit(&sy_guard_bytes, memory_order_acquire);
    return address - atomic_load_explicit(&sy_guard_start, memory_order_relaxed) < bytes;
}

/* ---- which allocations: one in `guard_every` ---- */

/*
 * The number of allocations of this thread until one has to be guarded, that one included. If it is
 * less than 1, the guarded allocation is overdue, which shortens the next interval. The intervals
 * are random (geometrically distributed), so that no program is in step with them, and threads with
 * few allocations get their share. A cache that sees each allocation calls sy_guard_due. For a
 * cache whose allocations are inline, the items that have gone from its magazines are subtracted
 * (magazine/sample.h).
 */
extern SY_HIDDEN SY_TLS int64_t sy_guard_left;

/* Counts an allocation. Returns whether it has to be guarded. */
bool sy_guard_due(void);

/* ---- an object's life ---- */

/* Makes a live object of `size` bytes at `align` for the cache of `watch`. Returns NULL if there is
 * no run for it. errno is kept. */
void *sy_guard_alloc(sy_watch *watch, size_t size, size_t align);

/* Called for an object that is no longer live, while its pages are still accessible. */
typedef void sy_guard_visit(void *object, void *arg);

/*
 * Frees an object: checks that it is live, begins at this address, belongs to `watch` and has
 * `told` bytes (SIZE_MAX: size not given), verifies the rest of its pages, calls `last` (NULL: no
 * call) and makes the pages inaccessible. If a check fails, it raises the fault that the cache
 * would raise, and returns false.
 */
bool sy_guard_free(sy_watch *watch, void *object, size_t told, sy_guard_visit *last, void *arg);
/* As sy_guard_free, but if a check fails it raises no fault. */
bool sy_guard_try_free(sy_watch *watch, void *object, sy_guard_visit *last, void *arg);

/* Returns the size asked for of the live object that begins at this address; 0: there is none. Sets
 * *watch to the watch of the run at the address, or of its last object. NULL: there was none, or
 * its cache is gone. */
size_t sy_guard_size(const void *object, sy_watch **watch);

/* Returns the record of the run at an address, and sets *object to the start of its present or last
 * object and *watch as sy_guard_size. NULL: no object was ever there. */
sy_record *sy_guard_record(uintptr_t address, uintptr_t *object, sy_watch **watch);

/* Counts the live guarded objects of the cache, except those that this thread is making or freeing.
 * Walks all runs. */
size_t sy_guard_live(const sy_watch *watch);

/* Calls `visit` for each object of the cache, live or not. No lock is held. */
void sy_guard_each(const sy_watch *watch,
                   void (*visit)(void *arg, const void *object, const sy_record *record),
                   void *arg);

/* Frees all objects of a cache that is destroyed, without reports. Calls `last` for each, if it is
 * not NULL. Walks all runs. */
void sy_guard_forget(sy_watch *watch, sy_guard_visit *last, void *arg);

/* ---- statistics ---- */

typedef struct sy_guard_counts {
    size_t held;       /* slots of live objects */
    size_t freed;      /* slots of freed objects, inaccessible */
    uint64_t left_out; /* objects that were to be guarded, but no slot was left for them */
} sy_guard_counts;

/* Returns whether any object was guarded or left out. */
bool sy_guard_get_counts(sy_guard_counts *counts);

/* ---- bad accesses ---- */

/* If the access hit a guard or a freed object, reports the fault and returns true (access.h). */
bool sy_guard_explain(const sy_os_access *access);

/* ---- all guarded objects ---- */

/* Returns the memory of the records, and its size in *bytes. NULL and 0: there is none. */
const void *sy_guard_table(size_t *bytes);

/* Returns the number of violated invariants. */
size_t sy_guard_verify(void);

/* In the child of a fork, runs that other threads were taking or freeing become free. */
extern SY_HIDDEN const sy_part sy_guard_part;

#endif
