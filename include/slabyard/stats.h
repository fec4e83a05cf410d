/*
 * slabyard/stats.h: where the memory is, and how often the slow paths ran.
 *
 * Counting costs the fast paths nothing: what is counted is counted once per magazine. Figures are
 * exact while no other thread is using the cache or trims it, else a snapshot of each.
 */
#ifndef SLABYARD_STATS_H
#define SLABYARD_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/cache.h>

SY_BEGIN_DECLS

typedef struct sy_cache_stats {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t object_size, slot_size, align; /* bytes */
    size_t slab_bytes, slots_per_slab;
    unsigned colours;        /* different offsets at which slabs begin */
    unsigned magazine_items; /* most objects that a magazine of the cache holds */

    /* Objects: slots + guarded == in_use + in_depot + in_loaded + in_quarantine + free + retired.
     */
    size_t slots;         /* in all slabs */
    size_t in_use;        /* held by the program */
    size_t in_depot;      /* free, in magazines that wait */
    size_t in_loaded;     /* free, in magazines of threads */
    size_t guarded;       /* of in_use: on pages of their own, in no slab (checks.h) */
    size_t in_quarantine; /* free, waiting for others to be (checks.h) */
    size_t free;          /* free, in slabs */
    size_t retired;       /* never used again: handles for them are spent */
    size_t limit;         /* 0: none */

    /* Slabs: slabs == full + partial + empty. */
    size_t slabs, full, partial, empty;

    /* Bytes: mapped == slots * slot_size + tail. */
    size_t mapped;     /* of slabs */
    size_t tail;       /* of slabs, too small for a slot, or used for colouring */
    size_t waste;      /* tail, and what slots have more than objects */
    size_t discarded;  /* of mapped: given back to the OS by a trim and not touched since */
    size_t never_used; /* of mapped: slots that were never given out */

    /* Events since creation. */
    uint64_t refills, flushes;           /* magazines filled from slabs, emptied into slabs */
    uint64_t depot_hits, depot_misses;   /* a full magazine was wanted: found, not found */
    uint64_t depot_steals;               /* of the hits: in the shard of another CPU */
    uint64_t slabs_made, slabs_released; /* taken from and given to the chunks */
    uint64_t slabs_filled, slabs_opened; /* became full; were full, and are not any more */
    uint64_t slabs_reused;               /* were empty, and are not any more */
    uint64_t constructed, destructed;
    uint64_t limits_hit; /* allocations refused: of objects, or in bytes (limit.h) */
} sy_cache_stats;

/* Fills `stats`. 0; -1 with EINVAL for NULL. */
SY_API int sy_cache_get_stats(const sy_cache *cache, sy_cache_stats *stats);

/*
 * The process, in bytes. The first group is address space that may be written; a page of it holds
 * memory once it was written, until it is given back. The second group is memory beside it.
 *
 *     mapped == slabs + spans + units_free + chunk_headers
 *     memory held <= mapped - units_clean + magazines + side
 *
 * Not counted here: the words of handles (8 bytes an object), the tables that lead from an address
 * to its chunk (some pages), guarded objects, and the program's own pools.
 */
typedef struct sy_stats {
    size_t caches; /* number of, the heap's size classes included */
    size_t chunks; /* number of */

    size_t mapped;        /* address space of chunks, 4 MiB each, and of large spans */
    size_t slabs;         /* of mapped: what caches have; what they have not used holds no memory */
    size_t spans;         /* of mapped: large objects */
    size_t units_free;    /* of mapped: in chunks, in no slab or span, or kept for reuse */
    size_t units_clean;   /* of units_free: holding no memory */
    size_t chunk_headers; /* of mapped: 64 KiB a chunk. It holds no memory: a chunk's descriptors
                             hold 16 KiB elsewhere, which are counted as this */

    size_t magazines; /* memory of magazines and of what each thread has of them */
    size_t side;      /* memory of caches, of bitmaps that do not fit in descriptors, and of the
                         arena that gives out address space */

    size_t memory_limit; /* bytes that the system grants: control groups and resource limits; 0:
                            none */
    unsigned cpus;       /* processors that may be used at once: affinity and control groups */
    uint64_t limits_hit; /* allocations refused for the limit of the process (limit.h) */
} sy_stats;

/* Fills `stats`. Reads files of the system, for the limits that it sets. errno is kept. */
SY_API void sy_get_stats(sy_stats *stats);

/* ---- every cache ---- */

typedef enum sy_cache_kind {
    SY_CACHE_OF_PROGRAM, /* made by sy_cache_create */
    SY_CACHE_OF_SIZES,   /* a size class of sy_malloc */
    SY_CACHE_OF_HEAP,    /* a size class of a sy_heap: named after the heap and the size */
} sy_cache_kind;

typedef struct sy_cache_account {
    const sy_cache *cache; /* to tell it from others; another thread may destroy it meanwhile */
    sy_cache_kind kind;
    sy_cache_stats stats;
} sy_cache_account;

/*
 * Calls `visit` for each cache, until it returns something other than 0, which is then returned;
 * else 0. -1 with EINVAL for NULL. Any thread, at any time: a cache that another thread creates or
 * destroys meanwhile is visited or not. Large objects of sy_malloc (sy_stats.spans) are in none.
 *
 * `visit` gets a copy of the figures, which is its own until it returns. Nothing is held while it
 * runs, so it may do anything: create caches, and destroy them, the visited one too.
 */
SY_API int sy_each_cache(int (*visit)(void *arg, const sy_cache_account *account), void *arg);

/*
 * Writes a readable account of the process and of each cache to a file descriptor, in lines of at
 * most 80 columns, the caches with the most memory first. The text is for people, and may change.
 * Any thread, with no lock held that the descriptor's reader waits for. Uses neither stdio nor
 * malloc, and a few pages of memory until it returns. 0; -1 with ENOMEM, or with what write() said:
 * a part may have been written then. The option `stats` has the account written to stderr at exit.
 */
SY_API int sy_print_stats(int fd);

SY_END_DECLS

#endif
