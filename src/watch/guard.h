/*
 * guard.h: objects on pages of their own, with inaccessible ones beside them.
 *
 *     | guard | slot 0 | guard | slot 1 | guard | slot 2 . (guard) . slot 3 | guard | ...
 *      a page                                      a run of two slots, for what is larger
 *
 * An object lies at the right end of its run, or at the left, by turns: as far as its alignment
 * lets it. Of the run the pages that it touches are accessible while it is live, none before and
 * after; what of these pages is no object has the pattern of its watch. After its free the run
 * waits until the others were used, the one freed longest ago is reused first. Guards are the
 * kernel's (MADV_GUARD_INSTALL, Linux 6.13), which cost no mapping, or else mprotect's.
 *
 * All in one reservation, made when the first object is guarded, with as many slots as the option
 * `guard-slots` says then. With guard=all there are a million (8 GiB of addresses, touched as
 * used), and objects may have runs of several slots, up to 1 MiB; else what is larger than a page
 * is not guarded. Nor is what finds no run.
 *
 * Each run has a record (watch.h), so that a free is validated and a fault explained: by
 * sy_guard_explain, from the handler of SIGSEGV and SIGBUS, if the option `explain` lets there be
 * one, which then calls the handler that was there before. Who allocated and freed is noted for
 * each object, whether audit is on or not. (After GWP-ASan and KFENCE.)
 *
 * Above: magazine/ (when), cache/ (what). Below: watch.h, stack.h, os/.
 */
#ifndef SY_WATCH_GUARD_H
#define SY_WATCH_GUARD_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "os/start.h"
#include "watch/watch.h"

/* Bytes from one address to the next that cannot be told apart by page; written once. */
extern SY_HIDDEN _Atomic uintptr_t sy_guard_start;
extern SY_HIDDEN _Atomic size_t sy_guard_bytes;

/* Whether the address lies in the region of guarded objects; false before there is one. */
static inline bool sy_guard_owns(uintptr_t address) {
    size_t bytes = atomic_load_explicit(&sy_guard_bytes, memory_order_acquire);
    return address - atomic_load_explicit(&sy_guard_start, memory_order_relaxed) < bytes;
}

/* ---- which allocations: one in `guard_every` ---- */

/*
 * Allocations that this thread makes until one is to be guarded, that one included; less than 1:
 * it is overdue, which shortens the next interval. The intervals are random (geometric, so that
 * nobody is in step with them, and threads of few allocations have their share). Caches that see
 * each allocation count by sy_guard_due; those whose allocations are inline subtract what has gone
 * from their magazines (magazine/sample.h).
 */
extern SY_HIDDEN SY_TLS int64_t sy_guard_left;

/* An allocation is made: whether it is the one. */
bool sy_guard_due(void);

/* A random number of allocations, at least 1, geometrically distributed with the mean `every`; with
 * 1 always 1. */
int64_t sy_guard_interval(uint32_t every);

/* ---- an object's life ---- */

/* An object of `size` bytes at `align` for the cache that is watched, live from now on. NULL: there
 * is no run for it; errno is kept. */
void *sy_guard_alloc(sy_watch *watch, size_t size, size_t align);

/* Called for an object that is not live any more, while it is still there. */
typedef void sy_guard_visit(void *object, void *arg);

/*
 * Frees it: checks that it is live, begins there, belongs to `watch` and has `told` bytes
 * (SIZE_MAX: not said), verifies what of its pages is no object, calls `last` (NULL: nobody) and
 * makes them inaccessible. False, with the fault raised that the cache would raise: it is none
 * such.
 */
bool sy_guard_free(sy_watch *watch, void *object, size_t told, sy_guard_visit *last, void *arg);
/* The same, but nothing is raised if it is none such. */
bool sy_guard_try_free(sy_watch *watch, void *object, sy_guard_visit *last, void *arg);

/* Bytes asked for of the live object that begins there; 0: none does. In *watch whose the run at
 * that address is, or was last; NULL: nobody's who is still there. */
size_t sy_guard_size(const void *object, sy_watch **watch);

/* The record of the run that lies at an address, where its object is or was last, and whose (as
 * above); NULL: there has been none. */
sy_record *sy_guard_record(uintptr_t address, uintptr_t *object, sy_watch **watch);

/* Live guarded objects of the cache; those of a cache that is destroyed go without a word but to
 * `last`. Both walk all runs. */
size_t sy_guard_live(const sy_watch *watch);

/* Visits its objects, live or not: where they lie, and what is known. No lock is held. */
void sy_guard_each(const sy_watch *watch,
                   void (*visit)(void *arg, const void *object, const sy_record *record),
                   void *arg);
void sy_guard_forget(sy_watch *watch, sy_guard_visit *last, void *arg);

/* ---- bad accesses ---- */

/* If it hit a guard or a freed object: tells the fault, and true (access.h). */
bool sy_guard_explain(const sy_os_access *access);

/* ---- the whole ---- */

/* The memory of its own records; NULL with 0 bytes: there is none. */
const void *sy_guard_table(size_t *bytes);

/* Violations of its invariants. */
size_t sy_guard_verify(void);

/* In the child of a fork what other threads were taking or freeing is free. */
extern SY_HIDDEN const sy_part sy_guard_part;

#endif
