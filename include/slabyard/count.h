/**
 * slabyard/count.h: counts what a thread allocates, for tests.
 *
 * A test can so state that a function allocates nothing, that it frees all that it allocates, or
 * how much memory it needs at most. Each allocation of the thread is counted, and each free of what
 * it allocated: of sy_malloc and the functions beside it, of separate heaps, and of caches. Not
 * counted are caches with SY_HANDLES, SY_EPOCHS or SY_CHECKED, pools, and the program's malloc.
 * (For that there is `slabyard run --limit-allocations`.)
 *
 * Other threads note their frees from the moment that sy_count_begin returns on Linux. On other
 * systems, and in sandboxes without membarrier, a thread that was running already notes them from
 * its next exchange of a magazine on: let such a thread start after sy_count_begin.
 *
 * While a thread counts, its allocations take some thousand instructions, and the frees of all
 * threads some 200.
 */
#ifndef SLABYARD_COUNT_H
#define SLABYARD_COUNT_H

#include <slabyard/base.h>
#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/** What a thread allocated between sy_count_begin and sy_count_end. Bytes are those that were asked
 * for. */
typedef struct sy_counted {
    uint64_t allocations; /* objects that the thread allocated, */
    uint64_t bytes;       /* and their bytes */
    uint64_t frees;       /* of these objects, by any thread */
    uint64_t live;        /* allocations - frees: objects that are left at the end, */
    uint64_t live_bytes;  /* and their bytes */
    uint64_t peak_bytes;  /* the most bytes of these objects that were live at a time */
} sy_counted;

/**
 * Begins to count what the calling thread allocates. Objects from before are not counted, nor are
 * their frees. sy_realloc and sy_expand count nothing if an object of up to 128 KiB stays where it
 * is; otherwise an allocation and a free.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EAGAIN     32 threads are counting
 *     EBUSY      the thread is counting already, or is in a function that the library calls
 *     ENOMEM     no memory
 *     ENOTSUP    objects cannot be counted: malloc is Slabyard's drop-in, or options such as
 *                `check` and `guard` say how objects are made
 *
 *     sy_counted counted;
 *     if (sy_count_begin() == 0) {
 *         sy_free(sy_malloc(100));   what is to be tested
 *         if (sy_count_end(&counted) == 0 && counted.live) puts("it leaks");
 *     }
 *
 * Threads: any thread, each for itself.
 */
SY_API int sy_count_begin(void);

/* sy_count_end for a struct of `size` bytes (base.h). */
SY_API int sy_count_end_sized(sy_counted *counted, size_t size);

/**
 * Ends the count of the calling thread, which began it, and fills *counted.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    `counted` is NULL; the thread goes on counting
 *     ENOENT    the thread is not counting
 *     ENOMEM    there was no memory to count each object, so *counted is too low
 *
 * Threads: the thread that has begun to count.
 */
static inline int sy_count_end(sy_counted *counted) {
    return sy_count_end_sized(counted, sizeof *counted);
}

SY_END_DECLS

#endif
