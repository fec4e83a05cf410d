/*
 * slabyard/audit.h: who has what: tags, the last operations of a cache, leaks.
 *
 * Of caches and heaps with SY_AUDIT (slabyard/checks.h), or all with SLABYARD=audit. Any thread may
 * call; what is visited is a copy of how things stood, and `visit` is called without any lock held
 * and may use Slabyard.
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

typedef unsigned sy_tag; /* 0: none */

enum { SY_TAG_NAME_MAX = 31, SY_TAGS_MAX = 255 };

/* The tag of a name, of which SY_TAG_NAME_MAX bytes are kept; the same for the same name, 0 for "".
 * 0 with ENOMEM: there are SY_TAGS_MAX. For ever. */
SY_API sy_tag sy_tag_open(const char *name);

/* What this thread allocates from now on has the tag, a number that is none's the tag 0; returns
 * the one before. */
SY_API sy_tag sy_tag_set(sy_tag tag);

typedef struct sy_tag_stats {
    sy_tag tag;
    char name[SY_TAG_NAME_MAX + 1];
    uint64_t allocations, frees;
    size_t live;                   /* number of objects */
    size_t live_bytes, peak_bytes; /* asked for */
} sy_tag_stats;

/* Calls `visit` for each tag, the untagged (0) first, until it returns something else than 0;
 * returns that. */
SY_API int sy_each_tag(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg);

/* ---- what happened last ---- */

typedef struct sy_operation {
    bool freed; /* else allocated */
    const void *object;
    size_t size; /* asked for */
    sy_trace trace;
} sy_operation;

/* Calls `visit` for the last operations of the cache, the latest first, as many as the option
 * `audit=N` has kept. Returns as above, or -1 with ENOMEM. */
SY_API int sy_cache_history(struct sy_cache *cache,
                            int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* ---- leaks ---- */

enum {
    /* Only what nothing points to: an aligned pointer to any byte of an object, or its handle, in
     * the writable memory of the process that it shares with no other, in a register of the calling
     * thread, in an object that is pointed to itself or in one without audit, makes it no leak. (As
     * findleaks of illumos' mdb, and LeakSanitizer, do it: conservatively.) The registers of other
     * threads are not seen: ask while they are idle or waiting. Takes time by the size of the
     * process, in a copy of it, made as fork would make it but without hooks; the program goes on
     * meanwhile. */
    SY_LEAKS_UNREACHABLE = 1,
};

/* Objects of one cache that were allocated by the same stack and are live. */
typedef struct sy_leak {
    const char *cache;       /* its name, as long as the visit lasts */
    size_t objects, bytes;   /* number of, asked for */
    uint64_t oldest, newest; /* nanoseconds since their allocation */
    const void *example;     /* the oldest */
    sy_trace allocated;      /* of that one */
} sy_leak;

/* Calls `visit` for each group, the one with the most bytes first; `cache`: of this one alone,
 * NULL: all. Returns as above; or -1 with EINVAL (unknown flags) or ENOMEM: no memory, or the
 * system does not tell what the process holds. */
SY_API int sy_each_leak(struct sy_cache *cache, unsigned flags,
                        int (*visit)(void *arg, const sy_leak *leak), void *arg);

/* The same as a report (slabyard/fault.h): how many objects are in it. Nothing is written if there
 * are none. The option `leaks` has this done when a cache is destroyed, and at the end of the
 * process. What Rust's runtime allocated before main, or keeps until the process ends, is left out,
 * as far as its functions have names in the program's table of symbols. */
SY_API size_t sy_report_leaks(struct sy_cache *cache, unsigned flags);

SY_END_DECLS

#endif
