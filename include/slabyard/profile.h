/**
 * slabyard/profile.h: a profile of the heap, from samples: which stacks allocate, and whose objects
 * are live.
 *
 * One object in so many allocated bytes is sampled, with its stack. Each sample stands for as many
 * objects as its chance says, so the sums are estimates without a bias. So a profile can be taken
 * in production, begun and ended while the program runs.
 *
 *     objects of              are sampled                   while a profile is taken
 *     malloc, C++'s new,      with the drop-in malloc       the others cost no more than without
 *     and so on               (libslabyard-malloc)
 *     sy_malloc and so on     unless malloc is the drop-in  each free takes some 180 instructions
 *     sy_heap_alloc           yes                           the same
 *     sy_cache_alloc          without SY_HANDLES and        the same
 *                             SY_EPOCHS
 *     pools, epochs, handles  no
 *
 * Objects that are checked or guarded (`check`, `guard`, SY_CHECKED, SY_GUARD) are not sampled. The
 * option `profile` begins a profile when the program starts.
 *
 * Threads: any thread.
 */
#ifndef SLABYARD_PROFILE_H
#define SLABYARD_PROFILE_H

#include <slabyard/base.h>
#include <stddef.h>

SY_BEGIN_DECLS

/** The usual distance of samples: 512 KiB. */
#define SY_PROFILE_MEAN ((size_t)512 << 10)

/**
 * Begins a profile: from now on one object is sampled in `mean` allocated bytes, on average. An
 * earlier profile is forgotten. If a profile is being taken already, only the mean changes. With
 * the drop-in malloc, other threads take samples once they have made 2,000 more allocations of a
 * size class. Without it, they begin at once on Linux, and elsewhere with the next magazine that
 * they exchange.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL     mean is 0, or more than 1 GiB
 *     ENOTSUP    the platform records no stacks
 *     ENOMEM     no memory for the table of samples
 *
 *     if (sy_profile_start(SY_PROFILE_MEAN) != 0) perror("profile");
 */
SY_API int sy_profile_start(size_t mean);

/**
 * Ends the profile: no more objects are sampled. The profile stays until the next one begins. Frees
 * of its objects are still noted if malloc allocated them, or if they are large objects of
 * sy_malloc or of a separate heap (more than 128 KiB); the other objects stay in the profile as
 * they are now.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     ENOENT    no profile is being taken
 *
 *     if (sy_profile_stop() != 0) perror("profile");
 */
SY_API int sy_profile_stop(void);

/**
 * Writes the profile to a file descriptor, in the format of pprof (profile.proto, not compressed):
 * for each stack the objects and bytes allocated since the profile began (alloc_objects,
 * alloc_space), and those of them that are live (inuse_objects, inuse_space). The file has
 * addresses and the build ids of the files of code; `go tool pprof` and other viewers find the
 * names.
 *
 * Returns 0, or -1 with errno, which can also be an errno of write(2). A part of the profile may
 * have been written then.
 *
 * Errors:
 *     ENOENT    no profile was begun
 *     ENOMEM    no memory
 *
 * Threads: any thread, but not in a signal handler, since it takes locks.
 *
 *     if (sy_profile_write(STDOUT_FILENO) != 0) perror("profile");
 */
SY_API int sy_profile_write(int fd);

SY_END_DECLS

#endif
