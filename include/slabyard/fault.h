/*
 * slabyard/fault.h: what happens when misuse is seen that means corruption.
 */
#ifndef SLABYARD_FAULT_H
#define SLABYARD_FAULT_H

#include <stddef.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

typedef enum sy_fault_kind {
    SY_FAULT_FOREIGN_POINTER = 1, /* freed, but no memory of Slabyard, or not in use */
    SY_FAULT_MISALIGNED_POINTER,  /* inside a slab of the cache, but not the start of an object */
    SY_FAULT_WRONG_CACHE,         /* an object of another cache, or of the heap */
    SY_FAULT_DOUBLE_FREE,         /* an object that is free already */
    SY_FAULT_WRONG_SIZE,          /* a sized free with a size of another class */
    SY_FAULT_NOT_ALLOCATED,       /* freed to an arena, but no segment allocated there */
    SY_FAULT_SEGMENT_SIZE,        /* freed to an arena with another size than it was allocated */
} sy_fault_kind;

typedef struct sy_fault {
    sy_fault_kind kind;
    const char *cache;       /* name of the cache, heap or arena asked to free; "heap": sy_free */
    size_t object_size;      /* bytes of its objects, 0 for a heap; of an arena: the size given */
    const void *address;     /* what was freed */
    const char *found_cache; /* SY_FAULT_WRONG_CACHE: whose it is; else NULL */
    size_t found_size;       /* SY_FAULT_SEGMENT_SIZE: the size that is allocated; else 0 */
} sy_fault;

/*
 * Called without any lock held, in the thread that saw the fault, which need not be the one that
 * made it. If it returns, the pointer is ignored and the program goes on. It may use Slabyard.
 */
typedef void (*sy_fault_handler)(const sy_fault *fault);

/* Sets the handler of the process and gives the one before; NULL: report on stderr and abort. Any
 * thread. */
SY_API sy_fault_handler sy_set_fault_handler(sy_fault_handler handler);

SY_END_DECLS

#endif
