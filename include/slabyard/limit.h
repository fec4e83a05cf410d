/*
 * slabyard/limit.h: limits in bytes, of the process and of heaps (heaps.h), and why an allocation
 * was refused.
 *
 * What counts is the memory of slabs and of large objects, in units of 64 KiB, from when it is
 * taken for a cache or heap to when it is given up: what is free in a slab or waits in a magazine
 * counts too. Free units of chunks, descriptors, magazines and other tables do not (sy_stats has
 * them). What a heap holds counts for the heap and for the process; memory of the program's own
 * (memory.h) for the heap alone, not for the process.
 */
#ifndef SLABYARD_LIMIT_H
#define SLABYARD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/* `used` is more than before, or would have to be: see sy_limit. It must return (base.h). */
typedef void (*sy_limit_callback)(void *arg, size_t used, size_t soft);

/* Bytes; zeroes: no limit. */
typedef struct sy_limit {
    /*
     * Never more than this is taken: an allocation that needs more fails with ENOMEM. Before it
     * does, empty slabs of the same owner's caches are given up (not those of sy_cache_reserve),
     * with what waits in depots and in the magazines of this thread and of idle ones; `callback` is
     * called; and it is tried once more. A limit below what is in use takes nothing away.
     */
    size_t hard;
    /*
     * `callback` is called when what is in use reaches this, and again when it does so after having
     * fallen more than an eighth below.
     */
    size_t soft;
    /*
     * Called with `arg`, what is in use and `soft`; NULL: nobody is told. In a thread that
     * allocates from the owner, at the end of the allocation that reached the mark or, if that was
     * made by a constructor or by this callback, of one soon after. No lock is held: it may use
     * Slabyard in every way, and free objects of any cache, but not destroy the heap whose it is.
     * Several threads may be in it at a time; in none is it called while it is running there.
     */
    sy_limit_callback callback;
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_limit;

/*
 * Sets the limit of the process in place of the one before; NULL: none. If `soft` is reached
 * already, the callback is called by the next allocation that goes beyond its thread's magazines.
 * 0; -1 with EINVAL (`soft` above `hard` or without callback, reserved not zero) or ENOMEM (the
 * library cannot start), and nothing has changed. Any thread.
 */
SY_API int sy_set_limit(const sy_limit *limit);

/* What counts for the process now, with a limit or without. Any thread. */
SY_API size_t sy_limit_used(void);

/* Why an allocation was refused. */
typedef enum sy_refusal {
    SY_REFUSAL_NONE = 0,
    SY_REFUSAL_SYSTEM,        /* the system gave none, or the program's memory is full */
    SY_REFUSAL_CACHE_LIMIT,   /* sy_cache_config.limit is reached */
    SY_REFUSAL_HEAP_LIMIT,    /* sy_heap_config.limit */
    SY_REFUSAL_PROCESS_LIMIT, /* sy_set_limit */
    SY_REFUSAL_CONSTRUCTOR,   /* a constructor failed */
} sy_refusal;

/*
 * Why the last allocation of this thread that was refused, by a cache or a heap, was so: a NULL, or
 * a batch that came short. SY_REFUSAL_NONE if there was none yet. What was wrong (EINVAL) was not
 * refused; what a limit's callback was refused is forgotten at its end. Arenas and pools do not
 * tell.
 */
SY_API sy_refusal sy_last_refusal(void);

/* What it says in English, for messages: a constant string. */
SY_API const char *sy_refusal_text(sy_refusal refusal);

SY_END_DECLS

#endif
