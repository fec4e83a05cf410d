/*
 * slabyard/fault.h: what happens when misuse is seen that means corruption.
 *
 * It is reported, and the process ends: on stderr, or where the option `report` says, in one format
 * for all kinds: what happened, in which cache, where, who had the object and what to do next. A
 * handler of the program's can take the place of that.
 */
#ifndef SLABYARD_FAULT_H
#define SLABYARD_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

typedef enum sy_fault_kind {
    SY_FAULT_NONE,               /* no fault; a handler is never called with it */
    SY_FAULT_FOREIGN_POINTER,    /* freed, but no memory of Slabyard, or not in use */
    SY_FAULT_MISALIGNED_POINTER, /* inside a slab of the cache, but not the start of an object */
    SY_FAULT_WRONG_CACHE,        /* an object of another cache, or of the heap */
    SY_FAULT_DOUBLE_FREE,        /* an object that is free already */
    SY_FAULT_WRONG_SIZE,         /* a sized free with a size of another class */
    SY_FAULT_NOT_ALLOCATED,      /* freed to an arena, but no segment allocated there */
    SY_FAULT_SEGMENT_SIZE,       /* freed to an arena with another size than it was allocated */
    SY_FAULT_OVERFLOW,           /* the red zone behind an object was written to */
    SY_FAULT_UNDERFLOW,          /* the one before it */
    SY_FAULT_WRITE_AFTER_FREE,   /* a free object was written to */
    SY_FAULT_SLAB_EDGE,          /* the edge of a slab was written to: far out of an object */
    SY_FAULT_GUARD_OVERFLOW,     /* an access hit the guard page behind an object, */
    SY_FAULT_GUARD_UNDERFLOW,    /* before it, */
    SY_FAULT_USE_AFTER_FREE,     /* or an object on a page of its own after it was freed */
    SY_FAULT_NOT_PINNED,         /* a handle was unpinned that has no pin */
    SY_FAULT_FREED_POINTER,      /* an access by a pointer that was read from a free object, */
    SY_FAULT_UNWRITTEN_POINTER,  /* or from one that was not written to since its allocation */
} sy_fault_kind;

typedef enum sy_access { SY_ACCESS_UNKNOWN, SY_ACCESS_READ, SY_ACCESS_WRITE } sy_access;

/* Who did something to an object, as far as the option or flag audit had it noted. */
typedef struct sy_trace {
    const void *const *frames; /* return addresses, the innermost first; valid for ever */
    size_t depth;              /* number of; 0: not noted */
    unsigned thread;           /* the system's number for it; 0: not noted */
    uint64_t age;              /* nanoseconds since then */
} sy_trace;

typedef struct sy_fault {
    sy_fault_kind kind;
    const char *cache;       /* name of the cache, heap or arena asked to free; "heap": sy_free;
                              * "": not known, of a pointer that was read from a pattern */
    size_t object_size;      /* bytes of its objects, 0 for a heap; of an arena: the size given */
    const void *address;     /* what was freed, or the first byte that was damaged or accessed, or
                              * the pointer that was followed */
    const char *found_cache; /* SY_FAULT_WRONG_CACHE: whose it is; else NULL */
    size_t found_size;       /* of the object concerned, or of the segment that is allocated there:
                              * the size that was asked for; 0: not known */
    size_t told_size;        /* SY_FAULT_WRONG_SIZE: what the free said; 0: nothing, or not known */
    const void *object;      /* start of the object concerned; NULL: not known */
    ptrdiff_t offset;        /* bytes from `object` to `address` */
    const void *damage;      /* what is there now; NULL: nothing was damaged */
    size_t damage_bytes;     /* of it, from the first damaged byte to the last */
    sy_trace allocated, freed; /* the last time it was */
    sy_access access;          /* what faulted, if the processor said it */
    const char *held_in;       /* SY_FAULT_..._POINTER: the register that has it; else NULL */
} sy_fault;

/*
 * Called without any lock held, in the thread that saw the fault, which need not be the one that
 * made it. It must return, or end the process (base.h). If it returns, the pointer is ignored, or
 * what was damaged is repaired, and the program goes on (but not after SY_FAULT_GUARD_...,
 * SY_FAULT_USE_AFTER_FREE, SY_FAULT_FREED_POINTER and SY_FAULT_UNWRITTEN_POINTER: the access is
 * done again, outside of Slabyard). It may use Slabyard. What the fault points to is valid until it
 * returns.
 */
typedef void (*sy_fault_handler)(const sy_fault *fault);

/* Sets the handler of the process and gives the one before; NULL: report and abort, or
 * go on if the option on-fault says so. Any thread. */
SY_API sy_fault_handler sy_set_fault_handler(sy_fault_handler handler);

/* Writes the report of a fault where it would go without a handler; for handlers that add to it.
 * Takes no memory of Slabyard's. Any thread; errno is kept. */
SY_API void sy_report_fault(const sy_fault *fault);

SY_END_DECLS

#endif
