/*
 * slabyard/epoch.h: objects of one phase together, so that its memory comes back when it is over.
 *
 * Objects that live and die together (of one request, one frame, one connection, one generation of
 * a table) lie among others in the slabs of ordinary caches, and a few that live long hold up slabs
 * in which all others have died. In an epoch the allocations of a phase are taken from slabs of its
 * own: when the phase is over and its objects are freed, these slabs are empty, whole, and used for
 * anything else.
 *
 *     sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 200, .flags = SY_EPOCHS});
 *     sy_epoch *request = sy_epoch_create("request");
 *     sy_epoch_begin(request);
 *     void *object = sy_cache_alloc(cache);           from the slabs of the epoch
 *     sy_epoch_end(request);
 *     sy_cache_free(cache, object);                   any time, by any thread
 *     sy_epoch_close(request);                        what is empty is given up at once
 *
 * An epoch is for all caches with SY_EPOCHS, and for as many threads as are in it. There may be any
 * number of them; threads may be in several, one within the other: the innermost counts. Nothing is
 * freed with an epoch: objects are freed one by one, before or after it is closed.
 *
 * What it costs: in caches with SY_EPOCHS an allocation is as fast as in others, a free is a call
 * that puts the object into this thread's outbox, from which objects go to their slabs by the
 * magazine-full and are not given out before. Beginning and ending puts back what this thread has
 * at hand for other epochs: some tens of nanoseconds a cache.
 *
 * Thread rule: any thread, except where said. A thread ends the epochs that it is in before it ends
 * itself. In the child of a fork the other threads are in no epoch.
 */
#ifndef SLABYARD_EPOCH_H
#define SLABYARD_EPOCH_H

#include <slabyard/base.h>
#include <slabyard/cache.h>

SY_BEGIN_DECLS

enum {
    SY_EPOCH_NAME_MAX = 31, /* bytes of the name that are kept */
    SY_EPOCH_DEPTH_MAX = 32 /* epochs that a thread can be in at a time */
};

typedef struct sy_epoch sy_epoch;

/* An epoch, which is open; it is the caller's until closed. `name` is copied; NULL: "epoch". NULL
 * with errno ENOMEM. */
SY_API sy_epoch *sy_epoch_create(const char *name);

/*
 * From here on the calling thread allocates from the epoch, until the matching sy_epoch_end; NULL:
 * from no epoch, as outside of all. 0; -1 with errno EINVAL (it is closed), or EAGAIN (the thread
 * is in SY_EPOCH_DEPTH_MAX already). Not from a constructor, nor a destructor.
 */
SY_API int sy_epoch_begin(sy_epoch *epoch);

/* Ends the innermost epoch of the calling thread, which has to be this one: else -1 with EINVAL,
 * and nothing has changed. */
SY_API int sy_epoch_end(sy_epoch *epoch);

/* The innermost one of the calling thread, or NULL. */
SY_API sy_epoch *sy_epoch_current(void);

/*
 * The phase is over: nobody begins the epoch any more, and it is the caller's no longer. Slabs of
 * which no object is live go to all caches at once (to the OS with a trim, slabyard/reclaim.h), the
 * others as soon as that comes true, through the frees that are still to be made; threads that are
 * in the epoch may finish. What other running threads have at hand, and in their outboxes, counts
 * as live until these have come by a slow path. Returns how many count as live. NULL is a no-op.
 */
SY_API size_t sy_epoch_close(sy_epoch *epoch);

/* ---- those that do not end ---- */

typedef struct sy_epoch_stats {
    char name[SY_EPOCH_NAME_MAX + 1];
    uint64_t number;              /* in order of creation */
    uint64_t age_ns, closed_ns;   /* since creation; since it was closed, 0: it is open */
    unsigned threads;             /* that are in it; one that is in it twice counts twice */
    size_t objects, slabs, bytes; /* live, as of sy_epoch_close; of slabs */
} sy_epoch_stats;

/* Called for each, without any lock; nonzero ends it. */
typedef int (*sy_epoch_visit)(void *arg, const sy_epoch_stats *stats);

/* Calls `visit` for the open epochs, and for closed ones that still have slabs or threads, in order
 * of creation. 0, or what `visit` returned. */
SY_API int sy_epoch_each(sy_epoch_visit visit, void *arg);

/*
 * Writes a line to stderr for each epoch that was closed `ns` nanoseconds ago or longer and is
 * stuck: its name, what is live in it, of which caches, and how many threads never ended it.
 * Returns how many there are.
 */
SY_API size_t sy_epoch_report_stuck(uint64_t ns);

SY_END_DECLS

#endif
