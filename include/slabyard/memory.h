/*
 * slabyard/memory.h: caches over memory of the program's own: shared memory, huge pages, a file, a
 * device. Without it they take theirs from the system.
 *
 * A memory is an engine instance: chunks of 4 MiB in the program's region hold the slabs of the
 * caches and heaps that are created with it (sy_cache_config.memory, sy_heap_config.memory), and
 * nothing else does. Slabyard writes into the region: objects, and descriptors in the first 64 KiB
 * of each chunk.
 *
 * Objects may be read and written by other processes that map the region; all else is this
 * process's alone. After a fork, one of parent and child at most may use a memory that they share
 * and its caches in any way, trims of all caches included.
 */
#ifndef SLABYARD_MEMORY_H
#define SLABYARD_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

struct sy_vmem;

typedef struct sy_memory sy_memory;

/* Either a region or an arena of addresses. */
typedef struct sy_memory_config {
    const char *name; /* copied; NULL: "memory" */

    /* Readable and writable for as long as the memory exists, whatever is in it; not Slabyard's
     * own. Used as far as it has whole 4 MiB at multiples of 4 MiB. Where slabs have been, there
     * will be slabs alone; objects that do not fit in a chunk need 4 MiB and more that had none. */
    void *start;
    size_t bytes;
    /* Or: whence addresses of such memory come, 4 MiB and more at a time; it may import them
     * (vmem.h), and serve others too. Its quantum is 4 MiB at most. Must outlive the memory, which
     * gives back what held large objects, and all else when it is destroyed. */
    struct sy_vmem *arena;

    /*
     * Called by trims, and by frees of large objects, for a range in whole pages that holds
     * nothing: its memory may be given back, its content may become anything. 0, or anything else
     * if it was not. NULL: memory stays. No lock is held, and no other thread waits for its end:
     * while it runs, its range cannot be had, so an allocation (also one that it makes itself) that
     * finds nothing else free is refused. A trim gives at most 256 KiB of small objects at a time.
     * It must return (base.h).
     */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_memory_config;

/*
 * A new memory, owned by the caller. NULL and errno:
 *   EINVAL  no config; no region and no arena, or both; less than 4 MiB of use in the region; past
 *           the end of the address space; memory of Slabyard's own; an arena with a larger quantum;
 *           a reserved field that is not zero;
 *   ENOMEM  no memory for what is kept about it.
 * Any thread.
 */
SY_API sy_memory *sy_memory_create(const sy_memory_config *config);

/* Gives the arena back what was taken. 0; -1 with EBUSY, and nothing changed, while there are
 * caches or heaps over it. Nobody else may be using it. NULL is a no-op. */
SY_API int sy_memory_destroy(sy_memory *memory);

/* Bytes: mapped == used + free + headers. */
typedef struct sy_memory_stats {
    size_t chunks;  /* number of: 4 MiB each */
    size_t mapped;  /* chunks and large objects */
    size_t used;    /* by slabs */
    size_t free;    /* in no slab */
    size_t clean;   /* of free: discarded, or never touched in memory of the system's */
    size_t headers; /* 64 KiB for each 4 MiB that are in use, where no objects lie */
} sy_memory_stats;

/* Fills `stats`; NULL for `memory`: what is taken from the system for all other caches and for the
 * heap. 0; -1 with EINVAL for NULL. Any thread. */
SY_API int sy_memory_get_stats(const sy_memory *memory, sy_memory_stats *stats);

SY_END_DECLS

#endif
