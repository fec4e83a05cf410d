/**
 * slabyard/audit.h: allocation tags, the last operations of a cache, and leaks.
 *
 * These functions report about caches and heaps with SY_AUDIT (slabyard/checks.h), or about all
 * with SLABYARD=audit. Visitors get a copy of the state at one moment. `visit` is called without
 * any lock held and may use Slabyard.
 *
 * Threads: any thread.
 */
#ifndef SLABYARD_AUDIT_H
#define SLABYARD_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/fault.h>

SY_BEGIN_DECLS

struct sy_cache;

/* ---- tags: allocations by the part of the program that makes them ---- */

/** A tag stands for a part of the program; its allocations are counted together. 0: no tag. */
typedef unsigned sy_tag;

/** The bytes of a tag's name that are kept, and the number of tags that can exist. */
enum { SY_TAG_NAME_MAX = 31, SY_TAGS_MAX = 255 };

/**
 * Finds or makes the tag of a name: always the same for the same name. SY_TAG_NAME_MAX bytes of the
 * name are kept. A tag exists until the process ends.
 *
 * Returns the tag; 0 for the name "", and 0 with errno on failure.
 *
 * Errors:
 *     ENOMEM    there are SY_TAGS_MAX tags already
 *
 *     sy_tag parser = sy_tag_open("parser");   the same number each time
 */
SY_API sy_tag sy_tag_open(const char *name);

/**
 * From now on the allocations of the calling thread have this tag. A number that is no tag acts as
 * 0.
 *
 * Returns the previous tag of the thread.
 *
 *     sy_tag before = sy_tag_set(sy_tag_open("parser"));
 *     ...
 *     sy_tag_set(before);   the caller's tag again
 */
SY_API sy_tag sy_tag_set(sy_tag tag);

/** The allocations with one tag. */
typedef struct sy_tag_stats {
    sy_tag tag;
    char name[SY_TAG_NAME_MAX + 1];
    uint64_t allocations, frees;
    size_t live;                   /* number of objects */
    size_t live_bytes, peak_bytes; /* bytes asked for */
} sy_tag_stats;

/**
 * Calls `visit` for each tag, beginning with untagged allocations (0), until `visit` returns a
 * value other than 0.
 *
 * Returns the value with which `visit` ended the iteration, or 0.
 *
 *     static int print(void *file, const sy_tag_stats *stats) {
 *         fprintf(file, "%s: %zu bytes live\n", stats->name, stats->live_bytes);
 *         return 0;
 *     }
 *
 *     sy_tag_each(print, stderr);
 */
SY_API int sy_tag_each(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg);

/* ---- the last operations of a cache ---- */

/** An allocation or a free of a cache's history. */
typedef struct sy_operation {
    bool freed; /* else it was allocated */
    const void *object;
    size_t size; /* bytes asked for */
    sy_trace trace;
} sy_operation;

/**
 * Calls `visit` for the last operations of the cache, the latest first, until `visit` returns a
 * value other than 0. The option `audit=N` sets how many operations are kept.
 *
 * Returns the value with which `visit` ended the iteration, or 0; or -1 with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 */
SY_API int sy_cache_history(struct sy_cache *cache,
                            int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* ---- leaks ---- */

/** Flags of a search for leaks: which objects it lists. */
enum {
    /*
     * Only objects that the program cannot reach any more. An object is reachable if an aligned
     * pointer to any of its bytes, or its handle, is found in one of these places:
     *
     *   - the writable memory of the process that it shares with no other process
     *   - a register of the calling thread
     *   - an object that is reachable itself
     *   - an object without audit
     *
     * The search is conservative, as in findleaks of illumos' mdb and in LeakSanitizer. It does not
     * see the registers of other threads, so call it while they are idle or waiting. The time
     * depends on the size of the process. The search runs in a copy of the process, which is made
     * as by fork, but without calling fork's handlers. The program continues meanwhile.
     */
    SY_LEAKS_UNREACHABLE = 1,
};

/** Live objects of one cache that were allocated with the same stack. */
typedef struct sy_leak {
    const char *cache;       /* its name, valid during the visit */
    size_t objects, bytes;   /* number of objects; bytes asked for */
    uint64_t oldest, newest; /* nanoseconds since their allocation */
    const void *example;     /* the oldest object */
    sy_trace allocated;      /* the allocation of that object */
} sy_leak;

/**
 * Calls `visit` for each group of leaked objects, the one with the most bytes first, until `visit`
 * returns a value other than 0. `cache`: search this cache alone; NULL: all. `flags`: 0 for all
 * live objects, or SY_LEAKS_UNREACHABLE.
 *
 * Returns the value with which `visit` ended the iteration, or 0; or -1 with errno.
 *
 * Errors:
 *     EINVAL     unknown flags
 *     ENOMEM     no memory, or the system does not tell which memory the process has
 *     ENOTSUP    SY_LEAKS_UNREACHABLE, and the platform makes no copies of the process
 *                (sy_platform_has)
 */
SY_API int sy_leak_each(struct sy_cache *cache, unsigned flags,
                        int (*visit)(void *arg, const sy_leak *leak), void *arg);

/**
 * Writes the leaks that sy_leak_each visits as a report (slabyard/fault.h). Objects of several
 * sizes that were allocated with the same stack are one entry, also if they are in several size
 * classes of a heap. The line of the program with the most bytes comes first. If there are no
 * leaks, it writes nothing. With the option `leaks` this is done when a cache or heap is destroyed,
 * and at the end of the process. Objects that Rust's runtime allocated before main, or keeps until
 * the process ends, are left out if its functions have names in the program's symbol table.
 *
 * Returns the number of objects in the report.
 *
 *     size_t leaked = sy_report_leaks(NULL, SY_LEAKS_UNREACHABLE);
 *     if (leaked > 0) fprintf(stderr, "%zu objects leaked\n", leaked);
 */
SY_API size_t sy_report_leaks(struct sy_cache *cache, unsigned flags);

SY_END_DECLS

#endif
