/**
 * slabyard/stats.h: statistics: where the memory is, and how often the slow paths ran.
 *
 * Counting costs the fast paths nothing, because whole magazines are counted, not single objects.
 * The figures of a cache are exact while no other thread uses or trims the cache; else each is a
 * snapshot.
 */
#ifndef SLABYARD_STATS_H
#define SLABYARD_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <slabyard/cache.h>

SY_BEGIN_DECLS

/** The objects, the memory and the events of a cache. */
typedef struct sy_cache_stats {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t object_size, slot_size, align; /* bytes */
    size_t slab_bytes, slots_per_slab;
    unsigned colours;        /* number of offsets at which slabs begin */
    unsigned magazine_items; /* most objects that a magazine of the cache holds */

    /* Objects: slots + guarded == in_use + in_depot + in_loaded + in_quarantine + free + retired */
    size_t slots;         /* in all slabs; of a size class, also objects between those of others */
    size_t in_use;        /* held by the program; of the latter, also some that it has just freed */
    size_t in_depot;      /* free, in magazines in the depot */
    size_t in_loaded;     /* free, in magazines of threads */
    size_t guarded;       /* of in_use: on pages of their own, in no slab (checks.h) */
    size_t in_quarantine; /* free, kept back until others were freed (checks.h) */
    size_t free;          /* free, in slabs */
    size_t retired;       /* never used again: all their generations are used up */
    size_t limit;         /* 0: none */

    /* Slabs: slabs == full + partial + empty. */
    size_t slabs, full, partial, empty;

    /* Bytes: mapped == slots * slot_size + tail. */
    size_t mapped;     /* bytes of slabs, and of objects between those of other size classes */
    size_t tail;       /* of slabs: too small for a slot, or used for colouring */
    size_t waste;      /* tail, and the bytes by which slots exceed objects */
    size_t discarded;  /* of mapped: returned to the OS by a trim and not touched since */
    size_t never_used; /* of mapped: slots that were never allocated */

    /* Events since creation. */
    uint64_t refills, flushes;           /* magazines filled from slabs, emptied into slabs */
    uint64_t depot_hits, depot_misses;   /* requests for a full magazine: found, not found */
    uint64_t depot_steals;               /* of the hits: from the shard of another CPU */
    uint64_t slabs_made, slabs_released; /* taken from the chunks, returned to them */
    uint64_t slabs_filled, slabs_opened; /* became full; were full and got a free slot again */
    uint64_t slabs_reused;               /* were empty, and were then used again */
    uint64_t constructed, destructed;
    uint64_t limits_hit; /* allocations refused for a limit in objects or in bytes (limit.h) */
    /* With SY_MOVABLE: objects that were moved; objects that were to be moved, but were pinned,
     * looked up meanwhile, in a magazine, or in a read guard; and bytes of slabs that became empty
     * by the moves */
    uint64_t moves, moves_put_off, move_bytes;
} sy_cache_stats;

/* sy_cache_get_stats for a struct of `size` bytes (base.h). */
SY_API int sy_cache_get_stats_sized(const sy_cache *cache, sy_cache_stats *stats, size_t size);

/**
 * Fills `stats`. The figures are exact while no other thread uses or trims the cache; else each is
 * a snapshot.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    an argument is NULL
 *
 * Threads: any thread.
 *
 *     sy_cache_stats stats;
 *     if (sy_cache_get_stats(orders, &stats) == 0)
 *         printf("%s: %zu live, %zu KiB mapped\n", stats.name, stats.in_use, stats.mapped >> 10);
 */
static inline int sy_cache_get_stats(const sy_cache *cache, sy_cache_stats *stats) {
    return sy_cache_get_stats_sized(cache, stats, sizeof *stats);
}

/**
 * The memory of the process, in bytes. The fields from `mapped` to `chunk_headers` count address
 * space that may be written. A page of this address space holds memory from the first write until
 * it is returned. `magazines` and `side` count memory outside of it.
 *
 *     mapped == slabs + spans + units_free + chunk_headers
 *     memory held <= mapped - units_clean + magazines + side
 *
 * Not counted here: the words of handles (8 bytes for each object), the tables that lead from an
 * address to its chunk (some pages), guarded objects, and your own pools.
 */
typedef struct sy_stats {
    size_t caches; /* number of caches, including the size classes of the heap */
    size_t chunks; /* number of chunks */

    size_t mapped;        /* address space of chunks, 4 MiB each, and of large spans */
    size_t slabs;         /* of mapped: in caches; unused parts hold no memory */
    size_t spans;         /* of mapped: large objects */
    size_t units_free;    /* of mapped: units in chunks, in no slab or span, or kept for reuse */
    size_t units_clean;   /* of units_free: those that hold no memory */
    size_t chunk_headers; /* of mapped: 64 KiB for each chunk. They hold no memory, unless a huge
                             page covers them, but the chunk's descriptors hold 16 KiB elsewhere,
                             which are counted here */

    size_t magazines; /* memory of magazines, and of each thread's part of them */
    size_t side;      /* memory of caches, of bitmaps that do not fit in descriptors, and of the
                         arena that gives out address space */

    size_t memory_limit; /* bytes that control groups and resource limits grant; 0: no limit */
    unsigned cpus;       /* processors that the process may use at once (affinity, control
                          * groups) */
    uint64_t limits_hit; /* allocations refused for the limit of the process (limit.h) */
} sy_stats;

/* sy_get_stats for a struct of `size` bytes (base.h). */
SY_API int sy_get_stats_sized(sy_stats *stats, size_t size);

/**
 * Fills `stats`. The limits of the system are those that the library has found last; the function
 * reads no files. errno is kept.
 *
 * Threads: any thread.
 *
 *     sy_stats stats;
 *     sy_get_stats(&stats);
 *     printf("%zu MiB mapped\n", stats.mapped >> 20);
 */
static inline void sy_get_stats(sy_stats *stats) { sy_get_stats_sized(stats, sizeof *stats); }

/* ---- where the memory is ---- */

/**
 * The memory of the process by what it is for, in bytes: the rows of `slabyard account`. The tool
 * looks at each page from outside. This function knows what was counted when magazines, slabs and
 * units changed hands, so an object that the program has allocated but never written counts as
 * memory here. What was returned to the system, and what was never used, is only in
 * address_space_bytes.
 */
typedef struct sy_account {
    /* Objects that the program has. */
    size_t live_bytes;     /* a cache's with the size of its objects, others with their slots */
    size_t large_bytes;    /* objects that have units or spans of their own */
    size_t guarded_bytes;  /* objects on pages of their own (checks.h) */
    size_t rounding_bytes; /* by which slots of live objects of caches exceed the objects */

    /* Free memory. */
    size_t quarantine_bytes;       /* objects kept back until others were freed (checks.h) */
    size_t thread_magazines_bytes; /* objects in magazines of threads */
    size_t depot_magazines_bytes;  /* objects in magazines in the depot */
    size_t free_in_slabs_bytes;
    size_t holes_bytes; /* between objects of several sizes */
    size_t tails_bytes; /* ends of slabs, too small for an object or used for colouring */
    size_t free_units_bytes;
    size_t kept_spans_bytes; /* large objects that were freed, kept for reuse */

    /* The library's own. */
    size_t headers_bytes;       /* descriptors of slabs */
    size_t records_bytes;       /* caches, bitmaps, descriptors of large objects */
    size_t magazines_bytes;     /* magazines, threads */
    size_t handles_bytes;       /* words of handles (handle.h) */
    size_t arenas_bytes;        /* tags and tables of all arenas (vmem.h) */
    size_t traces_bytes;        /* stacks */
    size_t guard_records_bytes; /* of guarded objects */

    size_t address_space_bytes; /* for objects; holds no memory */

    /* The anonymous memory of the process in RAM, as the system counts it; 0: unknown. And what of
     * it is in no row above: the program's own mappings, stacks, variables, another malloc. */
    size_t resident_bytes, other_bytes;
} sy_account;

/* sy_get_account for a struct of `size` bytes (base.h). */
SY_API int sy_get_account_sized(sy_account *account, size_t size);

/**
 * Fills `account`. It walks the slabs of one cache after the other, each under the lock of that
 * cache; other threads go on, on their fast paths also in this cache. It reads one file of the
 * system (/proc/self/statm), and none of control groups. errno is kept.
 *
 * Threads: any thread, but not in a signal handler, since it takes locks.
 *
 *     sy_account account;
 *     sy_get_account(&account);
 *     printf("%zu of %zu MiB are live\n", account.live_bytes >> 20, account.resident_bytes >> 20);
 */
static inline void sy_get_account(sy_account *account) {
    sy_get_account_sized(account, sizeof *account);
}

/* ---- every cache ---- */

/** The owner of a cache. */
typedef enum sy_cache_kind {
    SY_CACHE_OF_PROGRAM, /* made by sy_cache_create */
    SY_CACHE_OF_SIZES,   /* a size class of sy_malloc */
    SY_CACHE_OF_HEAP,    /* a size class of a sy_heap: named after the heap and the size */
} sy_cache_kind;

/** A cache and its statistics, as sy_cache_each passes them. */
typedef struct sy_cache_account {
    const sy_cache *cache; /* identifies it; another thread may destroy it meanwhile */
    sy_cache_kind kind;
    sy_cache_stats stats;
} sy_cache_account;

/**
 * Calls `visit` for each cache until `visit` returns a value other than 0. A cache that another
 * thread creates or destroys meanwhile may be visited or not. Large objects of sy_malloc
 * (sy_stats.spans) belong to no cache.
 *
 * `visit` gets a copy of the figures, which is valid until it returns. No lock is held, so `visit`
 * may call any function; it may create and destroy caches, also the visited one.
 *
 * Returns the value with which `visit` ended the iteration, or 0; or -1 with errno.
 *
 * Errors:
 *     EINVAL    `visit` is NULL
 *
 * Threads: any thread, at any time.
 */
SY_API int sy_cache_each(int (*visit)(void *arg, const sy_cache_account *account), void *arg);

/**
 * Writes tables of the memory of the process, of each heap (heaps.h) and of each cache to a file
 * descriptor, in lines of at most 80 columns, the caches with the most memory first. The format is
 * made for people and may change. The function uses neither stdio nor malloc, and takes a few pages
 * of memory until it returns. With the option `stats` the account is written to stderr at exit.
 *
 * Returns 0, or -1 with errno, which can also be an errno of write(2). A part of the text may have
 * been written then.
 *
 * Errors:
 *     ENOMEM    no memory
 *
 * Threads: any thread, but not in a signal handler, since it takes locks. If `fd` is a pipe or
 * socket, the caller must hold no lock that the reader of the pipe or socket waits for.
 *
 *     if (sy_print_stats(STDERR_FILENO) != 0) perror("statistics");
 */
SY_API int sy_print_stats(int fd);

SY_END_DECLS

#endif
