/**
 * slabyard/epoch.h: objects of one phase in slabs of their own, so that the memory comes back when
 * the phase ends.
 *
 * Some objects live and die together: those of one request, one frame, one connection, one
 * generation of a table. In an ordinary cache they share slabs with other objects, and a few
 * long-lived objects hold slabs whose other objects were freed long ago. In an epoch, allocations
 * take objects from slabs of the epoch's own. When the phase is over and its objects are freed,
 * these slabs are empty, and their memory can be used for anything else.
 *
 *     sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 200, .flags = SY_EPOCHS});
 *     sy_epoch *request = sy_epoch_create("request");
 *     sy_epoch_begin(request);
 *     void *object = sy_cache_alloc(cache);           from the slabs of the epoch
 *     sy_epoch_end(request);
 *     sy_cache_free(cache, object);                   any time, by any thread
 *     sy_epoch_close(request);                        releases its empty slabs at once
 *
 * An epoch covers all caches with SY_EPOCHS, and any number of threads may be in it. There may be
 * any number of epochs. A thread may be in several, one within the other; it then allocates from
 * the innermost. An epoch frees no object: you free the objects one by one, before or after the
 * epoch is closed.
 *
 * Costs: in a cache with SY_EPOCHS an allocation is as fast as in others. A free is a function call
 * that puts the object into the thread's outbox. From there objects return to their slabs a whole
 * magazine at a time, and only then can they be allocated again. When a thread begins or ends an
 * epoch, it returns the free objects that it holds for other epochs, which takes some tens of
 * nanoseconds for each cache.
 *
 * Threads: any thread, except where a comment says otherwise. A thread must end the epochs that
 * it is in before it ends itself. In the child of a fork the other threads are in no epoch.
 */
#ifndef SLABYARD_EPOCH_H
#define SLABYARD_EPOCH_H

#include <slabyard/base.h>
#include <slabyard/cache.h>

SY_BEGIN_DECLS

/** Sizes of epochs. */
enum {
    SY_EPOCH_NAME_MAX = 31, /* bytes of the name that are kept */
    SY_EPOCH_DEPTH_MAX = 32 /* epochs that a thread can be in at a time */
};

/** An epoch. Its content is private. */
typedef struct sy_epoch sy_epoch;

/**
 * Creates an epoch, which is open. The caller owns it until sy_epoch_close. `name` is copied; NULL:
 * "epoch".
 *
 * Returns the epoch, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 */
SY_API sy_epoch *sy_epoch_create(const char *name);

/**
 * From now on the calling thread allocates from the epoch, until the matching sy_epoch_end. With
 * NULL it allocates from no epoch, as outside of all epochs. Do not call it in a constructor or a
 * destructor.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    the epoch is closed
 *     EAGAIN    the thread is in SY_EPOCH_DEPTH_MAX epochs already
 */
SY_API int sy_epoch_begin(sy_epoch *epoch);

/**
 * Ends the innermost epoch of the calling thread.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    `epoch` is not the innermost
 */
SY_API int sy_epoch_end(sy_epoch *epoch);

/**
 * Finds the epoch from which the calling thread allocates.
 *
 * Returns the innermost epoch of the calling thread, or NULL.
 */
SY_API sy_epoch *sy_epoch_current(void);

/**
 * Closes the epoch when its phase is over. From then on no thread can begin it, and the caller no
 * longer owns it. Threads that are in the epoch may finish. NULL is allowed and does nothing.
 *
 * Slabs without live objects become available to all caches at once; a trim returns them to the
 * operating system (slabyard/reclaim.h). Each other slab follows when its last live object is
 * freed. Free objects in the magazines and outboxes of other running threads count as live until
 * those threads reach a slow path.
 *
 * Returns the number of objects that count as live.
 */
SY_API size_t sy_epoch_close(sy_epoch *epoch);

/* ---- epochs that do not end ---- */

/** The state of an epoch. */
typedef struct sy_epoch_stats {
    char name[SY_EPOCH_NAME_MAX + 1];
    uint64_t number;              /* in order of creation */
    uint64_t age_ns, closed_ns;   /* since creation; since the epoch was closed, 0: it is open */
    unsigned threads;             /* in the epoch; one that is in it twice counts twice */
    size_t objects, slabs, bytes; /* objects: live, as sy_epoch_close counts; bytes: of slabs */
} sy_epoch_stats;

/** Called for each epoch, without any lock held. A return value other than 0 ends the iteration. */
typedef int (*sy_epoch_visit)(void *arg, const sy_epoch_stats *stats);

/**
 * Calls `visit` for the open epochs, and for closed ones that still have slabs or threads, in order
 * of creation.
 *
 * Returns 0, or the value with which `visit` ended the iteration.
 */
SY_API int sy_epoch_each(sy_epoch_visit visit, void *arg);

/**
 * Writes a line to stderr for each stuck epoch: one that was closed at least `ns` nanoseconds ago
 * and still has slabs or threads. The line gives its name, its live objects and their caches, and
 * the number of threads that never ended it.
 *
 * Returns the number of stuck epochs.
 */
SY_API size_t sy_epoch_report_stuck(uint64_t ns);

SY_END_DECLS

#endif
