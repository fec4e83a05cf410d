/**
 * slabyard/profile.h: a profile of the heap, from samples: which stacks allocate, and whose objects
 * are live.
 *
 * One object in so many allocated bytes is sampled, with its stack. Each sample stands for as many
 * objects as its chance says, so the sums are estimates without a bias. The other allocations and
 * frees cost no more than without a profile. So a profile can be taken in production, begun and
 * ended while the program runs.
 *
 * Only objects of the drop-in malloc (libslabyard-malloc) are sampled: those of malloc, of C++'s
 * operators and of the other functions that it replaces. The functions sy_malloc, sy_cache_alloc
 * and others of these headers make objects that are in no profile. Nor are there samples of size
 * classes with options that check objects (`check`, `guard`). The option `profile` begins a profile
 * when the program starts.
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
 * earlier profile is forgotten. If a profile is being taken already, only the mean changes. Other
 * threads take samples once they have made 2,000 more allocations of a size class.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL     mean is 0, or more than 1 GiB
 *     ENOTSUP    the program's malloc is not Slabyard's, or the platform records no stacks
 *     ENOMEM     no memory for the table of samples
 *
 *     if (sy_profile_start(SY_PROFILE_MEAN) != 0) perror("profile");
 */
SY_API int sy_profile_start(size_t mean);

/**
 * Ends the profile: no more objects are sampled. The profile stays, and frees of its objects are
 * still noted, until the next one begins.
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
