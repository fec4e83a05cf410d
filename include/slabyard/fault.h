/**
 * slabyard/fault.h: reports and handlers for misuse that would corrupt memory.
 *
 * By default Slabyard reports the misuse and ends the process. The report goes to stderr, or to the
 * place that the option `report` names. All kinds have the same format: what happened, in which
 * cache, at which address, where the object was allocated or freed, and what to do next. A handler
 * of your own can take the place of the report.
 */
#ifndef SLABYARD_FAULT_H
#define SLABYARD_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

/** The kinds of faults. */
typedef enum sy_fault_kind {
    SY_FAULT_NONE,               /* no fault; a handler is never called with it */
    SY_FAULT_FOREIGN_POINTER,    /* freed, but not memory of Slabyard, or not in use */
    SY_FAULT_MISALIGNED_POINTER, /* inside a slab of the cache, but not the start of an object */
    SY_FAULT_WRONG_CACHE,        /* an object of another cache, or of the heap */
    SY_FAULT_DOUBLE_FREE,        /* an object that is free already */
    SY_FAULT_WRONG_SIZE,         /* a sized free with a size or alignment of another class */
    SY_FAULT_NOT_ALLOCATED,      /* freed to an arena that has no segment allocated there */
    SY_FAULT_SEGMENT_SIZE,       /* freed to an arena with another size than allocated */
    SY_FAULT_OVERFLOW,           /* the red zone behind an object was written to */
    SY_FAULT_UNDERFLOW,          /* the red zone before an object was written to */
    SY_FAULT_WRITE_AFTER_FREE,   /* a free object was written to */
    SY_FAULT_SLAB_EDGE,          /* the edge of a slab was written to, far from any object */
    SY_FAULT_GUARD_OVERFLOW,     /* an access hit the guard page behind an object */
    SY_FAULT_GUARD_UNDERFLOW,    /* an access hit the guard page before an object */
    SY_FAULT_USE_AFTER_FREE,     /* an access to a guarded object after it was freed */
    SY_FAULT_NOT_PINNED,         /* an unpin of a handle that has no pin */
    SY_FAULT_FREED_POINTER,      /* an access through a pointer read from a free object */
    SY_FAULT_UNWRITTEN_POINTER,  /* the same, from an object unwritten since its allocation */
} sy_fault_kind;

/** How memory was accessed. */
typedef enum sy_access { SY_ACCESS_UNKNOWN, SY_ACCESS_READ, SY_ACCESS_WRITE } sy_access;

/** The stack of an allocation or a free. It is recorded with SY_AUDIT or the option `audit`, and
 * for guarded objects. */
typedef struct sy_trace {
    const void *const *frames; /* return addresses, the innermost first; always valid */
    size_t depth;              /* number of frames; 0: not recorded */
    unsigned thread;           /* the system's number of the thread; 0: not recorded */
    uint64_t age;              /* nanoseconds since the allocation or free */
} sy_trace;

/** A fault, as a fault handler gets it. */
typedef struct sy_fault {
    sy_fault_kind kind;
    const char *cache;         /* name of the cache, heap or arena asked to free; "heap": sy_free;
                                * "": not known: the pointer was read from a pattern */
    size_t object_size;        /* bytes of the cache's objects, or of those of found_cache if
                                * `cache` is a heap; 0: not known. For an arena: the size that was
                                * passed */
    const void *address;       /* the address that was freed, or the first byte that was damaged or
                                * accessed, or the pointer that was used */
    const char *found_cache;   /* SY_FAULT_WRONG_CACHE, SY_FAULT_WRONG_SIZE: the object's cache, if
                                * it is not `cache`; else NULL */
    size_t found_size;         /* size asked for, of the object concerned or of the segment that is
                                * allocated there; 0: not known */
    size_t told_size;          /* SY_FAULT_WRONG_SIZE: the size passed; 0: none, or not known */
    const void *object;        /* start of the object concerned; NULL: not known */
    ptrdiff_t offset;          /* bytes from `object` to `address` */
    const void *damage;        /* the bytes found there now; NULL: nothing was damaged */
    size_t damage_bytes;       /* from the first damaged byte to the last */
    sy_trace allocated, freed; /* the last allocation and the last free */
    sy_access access;          /* read or write, if the processor reported it */
    const char *held_in;       /* SY_FAULT_FREED_POINTER, SY_FAULT_UNWRITTEN_POINTER: the register
                                * that holds the pointer; else NULL */
} sy_fault;

/**
 * A fault handler. It is called without any lock held, in the thread that found the fault, which
 * may not be the thread that caused it. It must return or end the process (base.h).
 *
 * If the handler returns, the bad pointer is ignored or the damage is repaired, and the program
 * continues. After a bad access (SY_FAULT_GUARD_..., SY_FAULT_USE_AFTER_FREE,
 * SY_FAULT_FREED_POINTER, SY_FAULT_UNWRITTEN_POINTER) the program repeats the access instead,
 * outside of Slabyard.
 *
 * The handler may call functions of Slabyard. Everything that the fault points to is valid until
 * the handler returns.
 */
typedef void (*sy_fault_handler)(const sy_fault *fault);

/**
 * Sets the fault handler of the process. With NULL, Slabyard reports a fault and aborts, or
 * continues if the option on-fault says so.
 *
 * Returns the previous handler.
 *
 * Threads: any thread.
 *
 *     static void report(const sy_fault *fault) {
 *         sy_report_fault(fault);
 *         abort();
 *     }
 *
 *     sy_fault_handler before = sy_set_fault_handler(report);
 */
SY_API sy_fault_handler sy_set_fault_handler(sy_fault_handler handler);

/**
 * Writes the report of a fault to the place where the report would go without a handler. Use this
 * function in a handler that adds something to the report. It takes no memory from Slabyard. errno
 * is kept.
 *
 * Threads: any thread.
 *
 * A handler that adds a line to the report:
 *
 *     static void report(const sy_fault *fault) {
 *         sy_report_fault(fault);
 *         fprintf(stderr, "while request %ld was served\n", request);
 *         abort();
 *     }
 *
 *     sy_set_fault_handler(report);
 */
SY_API void sy_report_fault(const sy_fault *fault);

SY_END_DECLS

#endif
