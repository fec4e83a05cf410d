/**
 * slabyard/fail.h: allocation failures on request, to test how a program handles them.
 *
 *     SLABYARD=fail=order:7 ./server        the 7th allocation of the cache "order" fails
 *
 * `slabyard faults -- ./server` runs a program again and again, lets another allocation fail each
 * time, and shows the first failure that the program does not survive; docs/faults.md is the guide.
 *
 * A specification is one rule, or several with + between. Each rule says which allocations fail,
 * and when:
 *
 *     rule:  [WHO:]WHEN
 *     WHO:   NAME           allocations of caches of this name, with * and ? standing for any text
 *                           and any byte, and | between several names; without WHO: all
 *            os:CALL        calls to the system, by their names in src/os/os.h: os:commit, os:*
 *     WHEN:  N              the N-th of them, once
 *            every:N        each N-th
 *            random:P:SEED  each with probability P (0.01; nine digits at most), the same ones
 *                           for the same seed as long as they come in the same order
 *            size>N         each of more than N bytes; not with os:
 *
 * An allocation is one object that is requested from a cache or heap, through any function that
 * returns objects. Each object of a batch counts as one. It makes no difference whether the object
 * has a handle, is in an epoch, or was reserved. A realloc that needs a new place counts too.
 * Slabs, magazines and other memory of the library itself are no allocations. Those of pools and
 * arenas do not count either; only the system calls that they make can fail, by os: rules.
 *
 * The size classes of sy_malloc are caches named "heap-64", and larger objects belong to "heap".
 * While sy_malloc is checked, and in separate heaps, larger objects have size classes too:
 * "heap-196608", "tenant-64". The size of an allocation is the object size of the cache, or the
 * size that was asked of the heap.
 *
 * An allocation that is made to fail returns NULL with ENOMEM, as if there were no memory, and
 * changes nothing. It is reported on stderr, or where the option `report` says, with the count of
 * the rule:
 *
 *     slabyard: made allocation 7 of cache "order" (64 bytes) fail
 *     slabyard: made call 3 of sy_os_commit fail
 *
 * If a rule names a cache at the time when the cache is created, the cache's fast path is shut, so
 * that every allocation is counted. If no rule names the cache at that time and the cache has no
 * checks, its allocations are never counted. So set the specification before you create the cache,
 * or set it by the option. The child of a fork continues with its own counts, which start from the
 * parent's.
 */
#ifndef SLABYARD_FAIL_H
#define SLABYARD_FAIL_H

#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/**
 * Sets the specification, in place of the previous one, and starts all counts again. NULL or "": no
 * allocation is made to fail.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    the text is no specification, is longer than 255 bytes, or has more than 16 rules
 *
 * Threads: any thread.
 */
SY_API int sy_set_failures(const char *specification);

/**
 * Counts the failures that were made.
 *
 * Returns how many allocations and calls were made to fail since the specification was set.
 *
 * Threads: any thread.
 */
SY_API uint64_t sy_failures(void);

SY_END_DECLS

#endif
