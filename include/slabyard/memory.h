/**
 * slabyard/memory.h: caches over memory of your own: shared memory, huge pages, a file, a device.
 * Caches without it take their memory from the operating system.
 *
 * A memory (sy_memory) divides your region into chunks of 4 MiB. These chunks hold the slabs of the
 * caches and heaps that are created with the memory (sy_cache_config.memory,
 * sy_heap_config.memory), and nothing else. Slabyard writes two things into the region: objects,
 * and descriptors in the first 64 KiB of each chunk.
 *
 * Other processes that map the region may read and write the objects; everything else belongs to
 * this process. After a fork, at most one of parent and child may use a memory that they share and
 * its caches. A trim of all caches (sy_trim) is a use too.
 */
#ifndef SLABYARD_MEMORY_H
#define SLABYARD_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/base.h>

SY_BEGIN_DECLS

struct sy_vmem;

/** A memory. Its content is private. */
typedef struct sy_memory sy_memory;

/** The configuration of a memory: either a region, or an arena of addresses. */
typedef struct sy_memory_config {
    const char *name; /* copied; NULL: "memory" */

    /* The region: its start, and its size in bytes. It must be readable and writable as long as the
     * memory exists, may have any content, and must not be memory of Slabyard. Only whole 4 MiB at
     * multiples of 4 MiB are used. A chunk that once held slabs holds only slabs from then on. So
     * an object that does not fit in a chunk needs chunks that never held slabs. */
    void *start;
    size_t bytes;
    /* Or an arena, from which the memory takes addresses of such memory, 4 MiB and more at a time.
     * The arena may import them (vmem.h), and may serve other users too. Its quantum is 4 MiB at
     * most. It must outlive the memory. While the memory exists, it frees only segments that held
     * large objects. It frees all others when it is destroyed. */
    struct sy_vmem *arena;

    /*
     * Called by trims, and by frees of large objects, for a range of whole pages that holds
     * nothing. The function may return the range's memory to the system, and the content may become
     * anything. It returns 0, or another value if it did not release the memory. NULL: the memory
     * is kept.
     *
     * No lock is held, and no other thread waits until the function ends. While the function runs,
     * its range cannot be allocated. So if nothing else is free, an allocation is refused, also one
     * that the function itself makes. A trim passes at most 256 KiB of small objects at a time. The
     * function must return (base.h).
     */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_memory_config;

/**
 * Creates a memory. The caller owns it until sy_memory_destroy.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    no config; no region and no arena, or both; a region without a whole 4 MiB at a
 *               multiple of 4 MiB, past the end of the address space, or in memory of Slabyard; an
 *               arena with a larger quantum; a reserved field that is not zero
 *     ENOMEM    no memory for the records about it
 *
 * Threads: any thread.
 *
 *     size_t bytes = (size_t)64 << 20;
 *     void *region = aligned_alloc((size_t)4 << 20, bytes);
 *     sy_memory *memory = sy_memory_create(&(sy_memory_config){.start = region, .bytes = bytes});
 *     sy_cache_config config = {.name = "order", .size = 64, .memory = memory};
 *     sy_cache *cache = sy_cache_create(&config);
 */
SY_API sy_memory *sy_memory_create(const sy_memory_config *config);

/**
 * Destroys a memory and frees to the arena all that was taken from it. No other thread may be using
 * the memory. NULL is allowed and does nothing.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     there are caches or heaps over it
 *
 *     void *region = aligned_alloc((size_t)4 << 20, (size_t)64 << 20);
 *     sy_memory_config config = {.start = region, .bytes = (size_t)64 << 20};
 *     sy_memory *memory = sy_memory_create(&config);
 *     ...
 *     if (sy_memory_destroy(memory) == 0) free(region);   after the caches over it
 */
SY_API int sy_memory_destroy(sy_memory *memory);

/** The use of a memory, in bytes: mapped == used + free + headers. */
typedef struct sy_memory_stats {
    size_t chunks;  /* number of chunks, 4 MiB each */
    size_t mapped;  /* of chunks and large objects */
    size_t used;    /* by slabs */
    size_t free;    /* in no slab */
    size_t clean;   /* of free: discarded, or never touched if the system provides it */
    size_t headers; /* 64 KiB for each 4 MiB in use, which hold no objects */
} sy_memory_stats;

/* sy_memory_get_stats for a struct of `size` bytes (base.h). */
SY_API int sy_memory_get_stats_sized(const sy_memory *memory, sy_memory_stats *stats, size_t size);

/**
 * Fills `stats`. NULL for `memory` means the memory that all other caches and sy_malloc take from
 * the operating system.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    `stats` is NULL
 *
 * Threads: any thread.
 *
 *     sy_memory_stats stats;
 *     if (sy_memory_get_stats(NULL, &stats) == 0) printf("%zu KiB in slabs\n", stats.used >> 10);
 */
static inline int sy_memory_get_stats(const sy_memory *memory, sy_memory_stats *stats) {
    return sy_memory_get_stats_sized(memory, stats, sizeof *stats);
}

SY_END_DECLS

#endif
