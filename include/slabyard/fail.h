/*
 * slabyard/fail.h: allocations that are made to fail, to see what the program does then.
 *
 *     SLABYARD=fail=order:7 ./server        the 7th object of the cache "order" is not to be had
 *
 * `slabyard faults -- ./server` runs a program once for each of its allocations and shows the first
 * failure that it does not survive; docs/faults.md is the guide.
 *
 * A specification is one rule, or several with + between. Each says who, and when:
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
 * An allocation is an object asked of a cache or heap through any door that gives one: each object
 * of a batch is one, with or without handle, in an epoch or not, reserved or not; so is a realloc
 * that needs a new place. The size classes of the heap are caches named "heap-64", and what is
 * larger than they are is of "heap"; while the heap is checked, and in heaps of the program's own,
 * that is of size classes too: "heap-196608", "tenant-64". The size is that of the cache's objects,
 * or what was asked of the heap. Slabs, magazines and other memory of the library's own are no
 * allocations, nor are those of pools and arenas: what they need can fail by os: alone.
 *
 * What fails returns NULL with ENOMEM, as if there were no memory, and leaves everything as it was.
 * It is told, on stderr or where the option `report` says, with the rule's count:
 *
 *     slabyard: made allocation 7 of cache "order" (64 bytes) fail
 *     slabyard: made call 3 of sy_os_commit fail
 *
 * A cache that a rule names when it is created has its fast path shut, so that every allocation is
 * seen. Of one that no rule named then, and that has no checks, no allocation is ever counted: say
 * the specification before, or by the option. A child of fork goes on with counts of its own, from
 * where its parent's were.
 */
#ifndef SLABYARD_FAIL_H
#define SLABYARD_FAIL_H

#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/* Takes the place of what was specified before, and counts begin anew; NULL or "": nothing is made
 * to fail. 0; or -1 with EINVAL: it is no specification, is longer than 255 bytes or has more than
 * 16 rules, and nothing was changed. Any thread. */
SY_API int sy_set_failures(const char *specification);

/* How many allocations and calls were made to fail since then. Any thread. */
SY_API uint64_t sy_failures(void);

SY_END_DECLS

#endif
