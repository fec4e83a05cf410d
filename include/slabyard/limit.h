/**
 * slabyard/limit.h: limits in bytes, for the process and for heaps (heaps.h), and why an allocation
 * was refused.
 *
 * A limit counts the memory of slabs and of large objects, in units of 64 KiB, from the moment when
 * a cache or heap takes it until it is released. Free slots in a slab and free objects in a
 * magazine count too. Free units of chunks, descriptors, magazines and other tables do not count
 * (sy_stats reports them). The memory of a heap counts for the heap and for the process. Memory of
 * your own (memory.h) counts for the heap alone, not for the process.
 */
#ifndef SLABYARD_LIMIT_H
#define SLABYARD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/** The callback of a limit. `used`: bytes in use now, which have reached `soft`, or leave no room
 * below `hard` for an allocation. `soft`: sy_limit.soft. The callback must return (base.h). */
typedef void (*sy_limit_callback)(void *arg, size_t used, size_t soft);

/** The limit of an owner: the process, or a heap. Values are in bytes; 0: no limit. */
typedef struct sy_limit {
    /*
     * The owner never takes more than this: an allocation that needs more fails with ENOMEM. Before
     * it fails, Slabyard tries to make room:
     *
     *   - It returns the free objects in the owner's depots and quarantines (checks.h), and in the
     *     magazines of this thread and of idle threads, to their slabs. It then releases the
     *     owner's empty slabs, except those of sy_cache_reserve.
     *   - It calls `callback`, and then does the same for the objects that the callback freed.
     *   - It tries the allocation once more.
     *
     * If `hard` is set below the memory in use, nothing is taken away.
     */
    size_t hard;
    /*
     * `callback` is called when the memory in use reaches this value. It is called again when the
     * memory in use has fallen more than an eighth below the value and reaches it again.
     */
    size_t soft;
    /*
     * Called with `arg`, the bytes in use and `soft`. NULL: no callback. It runs in a thread that
     * allocates from the owner. For `soft` it runs at the end of the allocation that reached the
     * value. If that allocation was made in a constructor or in this callback, the callback runs at
     * the end of one of the next allocations.
     *
     * No lock is held. The callback may call every function of Slabyard and may free objects of any
     * cache. sy_heap_destroy refuses the heap that calls it (EBUSY); sy_heap_destroy_all destroys
     * this heap after the allocation has returned. The callback may run in several threads at a
     * time. While it runs in a thread, it is not called again in that thread.
     */
    sy_limit_callback callback;
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_limit;

/**
 * Sets the limit of the process, in place of the previous one. NULL: no limit. If `soft` is reached
 * already, the next allocation that goes beyond its thread's magazines calls the callback.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EINVAL    `soft` is above `hard`; `soft` without callback; reserved is not zero
 *     ENOMEM    the library cannot start
 *
 * Threads: any thread.
 */
SY_API int sy_set_limit(const sy_limit *limit);

/**
 * Fills *limit with the limit of the process, as it was set by sy_set_limit or by the option
 * `limit`. sy_heap_get_stats tells that of a heap.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    `limit` is NULL
 *     ENOMEM    the library cannot start
 *
 * Threads: any thread.
 *
 * Half of the limit is for a table, the rest for all else:
 *
 *     sy_limit limit;
 *     if (sy_get_limit(&limit) == 0 && limit.hard != 0) room = limit.hard / 2;
 */
SY_API int sy_get_limit(sy_limit *limit);

/**
 * Counts the memory of the process as its limit does, whether it has a limit or not.
 *
 * Returns the bytes that count for the process now.
 *
 * Threads: any thread.
 *
 *     printf("%zu MiB in use\n", sy_limit_used() >> 20);
 */
SY_API size_t sy_limit_used(void);

/** The reasons why an allocation is refused. */
typedef enum sy_refusal {
    SY_REFUSAL_NONE = 0,
    SY_REFUSAL_SYSTEM,        /* the system gave no memory, or your own (memory.h) is full */
    SY_REFUSAL_CACHE_LIMIT,   /* sy_cache_config.limit is reached */
    SY_REFUSAL_HEAP_LIMIT,    /* sy_heap_config.limit is reached */
    SY_REFUSAL_PROCESS_LIMIT, /* the limit of sy_set_limit is reached */
    SY_REFUSAL_CONSTRUCTOR,   /* a constructor failed */
    SY_REFUSAL_CACHES,        /* the heaps have SY_HEAP_CLASSES_MAX size classes together */
} sy_refusal;

/**
 * Tells why the last refused allocation of the calling thread from a cache or a heap was refused:
 * the last one that returned NULL, or the last batch that was short. An invalid argument (EINVAL)
 * is not a refusal. Refusals inside the callback of a limit are forgotten when it ends. Arenas and
 * pools do not record their refusals.
 *
 * Returns the reason, or SY_REFUSAL_NONE if no allocation of this thread was refused yet.
 */
SY_API sy_refusal sy_last_refusal(void);

/**
 * Describes a reason in English, for messages.
 *
 * Returns a constant string, which you do not free.
 *
 *     void *object = sy_malloc(4096);
 *     if (!object) fprintf(stderr, "no memory: %s\n", sy_refusal_text(sy_last_refusal()));
 */
SY_API const char *sy_refusal_text(sy_refusal refusal);

SY_END_DECLS

#endif
