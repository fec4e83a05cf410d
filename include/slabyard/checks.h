/**
 * slabyard/checks.h: flags that make caches, heaps and pools look for mistakes or keep secrets.
 *
 * Set a flag in the `flags` of a configuration. Or set the option of the same name for all caches,
 * heaps and pools, without recompiling anything (slabyard/options.h). A flag that is off costs
 * nothing. A flag that must see each operation shuts the fast path of its cache, so that operations
 * are function calls. docs/checks.md says which flag finds which mistake, when, and at what cost.
 */
#ifndef SLABYARD_CHECKS_H
#define SLABYARD_CHECKS_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/** Flags of caches, heaps and pools, for the field `flags` of their configurations. */
enum {
    /* Validates every free: foreign or misaligned pointer, object of another cache, double free,
     * wrong size. Option `check`. The next four flags include it. */
    SY_CHECKED = 1u << 7,
    /* Puts red zones before and behind each object: bytes with a pattern of the cache's own. They
     * are verified when the object is freed, and by sy_verify. Option `redzone`: how many bytes. */
    SY_REDZONE = 1u << 8,
    /* Fills each freed object with a pattern. The whole object is verified before it is allocated
     * again, and once more when the process ends (option `exit-check`). With this flag objects are
     * destructed when they are freed, and constructed again when they are allocated. Option
     * `poison`. */
    SY_POISON = 1u << 9,
    /* Keeps freed objects back until many others were freed; they are then reused in random order.
     * sy_trim, sy_cache_trim and sy_heap_trim keep none back, nor does an allocation that a limit
     * would refuse. Option `quarantine`: how many objects are kept back. */
    SY_QUARANTINE = 1u << 10,
    /* Records for each object which code allocated it and which freed it, and when: for reports,
     * leaks and tags. Option `audit`. */
    SY_AUDIT = 1u << 11,
    /* Allocates slots in random order. Option `random`. The fast path stays open. */
    SY_RANDOM = 1u << 12,
    /* Puts a pattern at both ends of each slab. It is verified when the slab is released, and by
     * sy_verify. Option `edges`. The fast path stays open. */
    SY_EDGES = 1u << 13,
    /*
     * Now and then places an object on pages of its own, with inaccessible pages beside them. After
     * the object is freed its pages stay inaccessible until they are reused. Option `guard`: how
     * often. The fast path of allocation stays open; each free is a function call. With a
     * constructor, a guarded object is constructed when it is allocated and destructed when it is
     * freed.
     *
     * Never guarded: objects that have handles, are locked, are kept out of core dumps, or lie in
     * memory of your own; spans, unless they are checked; objects that sy_thread_reserve has
     * reserved; objects of an epoch.
     */
    SY_GUARD = 1u << 14,
    /* Fills objects with zeroes when they are freed. Option `zero`. */
    SY_ZERO = 1u << 15,
    /* Keeps the memory of objects out of core dumps. Option `dump=no`. */
    SY_NO_DUMP = 1u << 16,
    /* Locks the memory of objects, so that it is never written to swap. An allocation fails if its
     * memory cannot be locked. Option `lock`. */
    SY_LOCKED = 1u << 17,

    SY_CHECK_FLAGS = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_RANDOM |
                     SY_EDGES | SY_GUARD | SY_ZERO | SY_NO_DUMP | SY_LOCKED, /* all of them */
};

/**
 * Examines the whole process, pools included. Each damaged object is reported as a fault that does
 * not end the process. Each other violation is reported by one line. The function is slow. Other
 * threads may use their pools meanwhile, but may not destroy a pool.
 *
 * Returns the number of violated invariants of the library and of damaged objects: 0 if all is
 * well.
 *
 * Threads: any thread, at any time.
 */
SY_API size_t sy_verify(void);

SY_END_DECLS

#endif
