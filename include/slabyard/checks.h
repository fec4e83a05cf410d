/*
 * slabyard/checks.h: flags that make caches, heaps and pools look for mistakes, or keep secrets.
 *
 * Each is said in the `flags` of a configuration, or by the option of the same name for everything,
 * without compiling anything again (slabyard/options.h). What is off costs nothing; a cache with
 * one that has to see each operation has its fast path shut, and operations are calls.
 * docs/checks.md says which mistake is found by which of them, when, and what it costs.
 */
#ifndef SLABYARD_CHECKS_H
#define SLABYARD_CHECKS_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

enum {
    /* Every free is validated: foreign or misaligned pointer, object of another cache, double free,
     * wrong size. Option `check`. The next four bring it along. */
    SY_CHECKED = 1u << 7,
    /* Bytes before and behind each object, in a pattern of the cache's own, that are verified when
     * it is freed and by sy_verify. Option `redzone`: how many. */
    SY_REDZONE = 1u << 8,
    /* A free object is filled, and verified wholly before it is given out again, and once more when
     * the process ends (option `exit-check`). It is destructed when it is freed then, and
     * constructed anew. Option `poison`. */
    SY_POISON = 1u << 9,
    /* Freed objects wait until many others were freed, and are reused in random order. Option
     * `quarantine`: how many wait. */
    SY_QUARANTINE = 1u << 10,
    /* Who allocated and who freed an object, and when, is noted for reports, leaks and tags.
     * Option `audit`. */
    SY_AUDIT = 1u << 11,
    /* Slots are taken in random order. Option `random`. Leaves the fast path open. */
    SY_RANDOM = 1u << 12,
    /* The two ends of each slab hold a pattern, verified when it is released and by sy_verify.
     * Option `edges`. Leaves the fast path open. */
    SY_EDGES = 1u << 13,
    /* Now and then an object gets pages of its own, with inaccessible ones beside it, and they stay
     * inaccessible after it was freed, until they are reused. Option `guard`: how often. Leaves
     * allocation open; each free is a call. Not for objects that have handles, are locked, kept out
     * of dumps or in the program's own memory, for spans (unless they are checked), nor for what
     * sy_thread_reserve provided. With a constructor a guarded object is constructed at its
     * allocation and destructed at its free. */
    SY_GUARD = 1u << 14,
    /* Objects are filled with zeroes when they are freed. Option `zero`. */
    SY_ZERO = 1u << 15,
    /* The memory of objects is kept out of core dumps. Option `dump=no`. */
    SY_NO_DUMP = 1u << 16,
    /* The memory of objects is locked: not written to swap. An allocation fails if it cannot be.
     * Option `lock`. */
    SY_LOCKED = 1u << 17,

    SY_CHECK_FLAGS = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_RANDOM |
                     SY_EDGES | SY_GUARD | SY_ZERO | SY_NO_DUMP | SY_LOCKED, /* all of them */
};

/* Violations of the library's invariants and damage to objects at present, of pools too: 0 when all
 * is well. Each damage is reported as a fault that does not end the process, other violations by a
 * line. Any thread, any time, while other threads use their pools; slow. No other thread may
 * destroy a pool meanwhile. */
SY_API size_t sy_verify(void);

SY_END_DECLS

#endif
