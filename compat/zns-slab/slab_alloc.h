/*
 * slab_alloc.h: the allocator of ZNS-Slab, by handle and by pointer, over Slabyard's handles.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/zns-slab -lslabyard
 *
 * Where its document left a choice, or was not kept:
 *   - the largest object is 512 bytes by handle and 504 by pointer, as it says; more is NULL with
 *     EINVAL. (There is no header any more; slabyard/heap.h has every size.) 0 bytes are served by
 *     handle, and are NULL by pointer;
 *   - a handle is stale for ever once it is freed, whatever lies in its place since; forged handles
 *     and those of another allocator are refused, and never followed. 0 is never one;
 *   - slab_free of what is not a live object of this allocator does nothing. It frees what
 *     alloc_obj gave, too;
 *   - objects are aligned to 64 bytes, their class's size at most;
 *   - it keeps slabs mapped until the allocator is destroyed, for the sake of stale handles, and
 *     promises bounded memory: here empty slabs are reused by anybody, and their memory goes back
 *     to the system by itself after a while (slabyard/reclaim.h), and all of it at the end; what is
 *     said about handles holds all the same;
 *   - allocators have nothing in common, whatever threads use them.
 */
#ifndef SLABYARD_COMPAT_ZNS_SLAB_ALLOC_H
#define SLABYARD_COMPAT_ZNS_SLAB_ALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slabyard/handle.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

SY_BEGIN_DECLS

#define SLAB_PAGE_SIZE 4096u /* what slab_object_count counts in; slabs are larger here */

enum { SY_ZNS_CLASSES = 4, SY_ZNS_LEAST = 64, SY_ZNS_MOST = 512, SY_ZNS_MOST_BY_POINTER = 504 };

typedef uint64_t SlabHandle;

/* The caller's, or from slab_allocator_create. */
typedef struct SlabAllocator {
    sy_cache *classes[SY_ZNS_CLASSES]; /* of 64, 128, 256 and 512 bytes; NULL: no memory for it */
} SlabAllocator;

/* Events since the allocator was made. */
typedef struct PerfCounters {
    uint64_t slow_path_hits;            /* magazines filled from slabs */
    uint64_t new_slab_count;            /* slabs taken from the chunks */
    uint64_t list_move_partial_to_full; /* slabs that became full */
    uint64_t list_move_full_to_partial; /* that were full, and are not any more */
    uint64_t current_partial_null;      /* no slab had a free slot but an empty or a new one */
    uint64_t current_partial_full;      /* the slab that was taken from had no slot any more */
    uint64_t empty_slab_recycled;       /* slabs that were empty, and are used again */
    uint64_t empty_slab_overflowed;     /* empty slabs given back to the chunks */
} PerfCounters;

/* ---- lifecycle ---- */

static inline void allocator_init(SlabAllocator *alloc) {
    static const char *const names[SY_ZNS_CLASSES] = {"zns-64", "zns-128", "zns-256", "zns-512"};
    if (!alloc) return;
    for (unsigned i = 0; i < SY_ZNS_CLASSES; i++) {
        sy_cache_config config;
        memset(&config, 0, sizeof config);
        config.name = names[i];
        config.size = (size_t)SY_ZNS_LEAST << i;
        config.align = SY_ZNS_LEAST;
        config.flags = SY_HANDLES;
        alloc->classes[i] = sy_cache_create(&config);
    }
}

/* All memory goes, with all objects. NULL is a no-op. */
static inline void allocator_destroy(SlabAllocator *alloc) {
    if (!alloc) return;
    for (unsigned i = 0; i < SY_ZNS_CLASSES; i++) sy_cache_destroy_all(alloc->classes[i]);
    memset(alloc, 0, sizeof *alloc);
    sy_trim();
}

/* NULL: no memory. */
static inline SlabAllocator *slab_allocator_create(void) {
    SlabAllocator *alloc = (SlabAllocator *)sy_malloc(sizeof *alloc);
    if (alloc) allocator_init(alloc);
    return alloc;
}

/* NULL is a no-op. */
static inline void slab_allocator_free(SlabAllocator *alloc) {
    allocator_destroy(alloc);
    sy_free(alloc);
}

/* ---- by handle ---- */

/* An object and, in *out_handle, its handle; NULL for out_handle: the object alone, which slab_free
 * frees. NULL with errno EINVAL (more than 512 bytes, or no allocator) or ENOMEM; *out_handle is
 * then as before. */
static inline void *alloc_obj(SlabAllocator *alloc, uint32_t size, SlabHandle *out_handle) {
    SlabHandle unwanted;
    unsigned i = 0;
    if (size > SY_ZNS_MOST || !alloc) {
        errno = EINVAL;
        return NULL;
    }
    while (size > (uint32_t)SY_ZNS_LEAST << i) i++;
    if (alloc->classes[i])
        return sy_handle_alloc(alloc->classes[i], out_handle ? out_handle : &unwanted);
    errno = ENOMEM;
    return NULL;
}

/* Frees an object. True once for each handle; false for any other 64 bits, and without an
 * allocator. */
static inline bool free_obj(SlabAllocator *alloc, SlabHandle handle) {
    for (unsigned i = 0; alloc && i < SY_ZNS_CLASSES; i++) {
        sy_cache *cache = alloc->classes[i];
        if (cache && sy_handle_get(cache, handle)) return sy_handle_free(cache, handle);
    }
    return false;
}

/* ---- by pointer ---- */

/* NULL with errno EINVAL (0 bytes, or more than 504; no allocator) or ENOMEM. */
static inline void *slab_malloc(SlabAllocator *alloc, size_t size) {
    if (size && size <= SY_ZNS_MOST_BY_POINTER) return alloc_obj(alloc, (uint32_t)size, NULL);
    errno = EINVAL;
    return NULL;
}

/* NULL is a no-op, for either. */
static inline void slab_free(SlabAllocator *alloc, void *ptr) {
    free_obj(alloc, sy_handle_of(ptr));
}

/* ---- what happened ---- */

/* Of class 0 (64 bytes) to 3 (512 bytes); all 0 for others, and without an allocator. Does nothing
 * if `out` is NULL. */
static inline void get_perf_counters(SlabAllocator *alloc, uint32_t size_class, PerfCounters *out) {
    sy_cache_stats stats;
    if (!out) return;
    memset(out, 0, sizeof *out);
    if (!alloc || size_class >= SY_ZNS_CLASSES || !alloc->classes[size_class]) return;
    if (sy_cache_get_stats(alloc->classes[size_class], &stats) != 0) return;
    out->slow_path_hits = stats.refills;
    out->new_slab_count = stats.slabs_made;
    out->list_move_partial_to_full = stats.slabs_filled;
    out->list_move_full_to_partial = stats.slabs_opened;
    out->current_partial_null = stats.slabs_reused;
    out->current_partial_full = stats.slabs_filled;
    if (stats.slabs_reused > stats.slabs_made) /* new ones are empty at first */
        out->empty_slab_recycled = stats.slabs_reused - stats.slabs_made;
    out->empty_slab_overflowed = stats.slabs_released;
}

/* ---- utilities ---- */

/* Objects of `obj_size` bytes in SLAB_PAGE_SIZE bytes, which have no header here: 32 of 128 bytes,
 * where it was 31. 0 for 0. */
static inline uint32_t slab_object_count(uint32_t obj_size) {
    return obj_size ? SLAB_PAGE_SIZE / obj_size : 0;
}

/* Bytes of the process that are in memory; 0 where there is no /proc. */
static inline uint64_t read_rss_bytes_linux(void) {
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    (void)fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Nanoseconds since some start. The clock is the monotonic one if <time.h> shows it, as it does
 * unless a program asks for ISO C alone (-std=c11 without _POSIX_C_SOURCE or the like); then it is
 * the time of day. */
static inline uint64_t now_ns(void) {
    struct timespec now;
#ifdef CLOCK_MONOTONIC
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
#else
    (void)timespec_get(&now, TIME_UTC);
#endif
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

SY_END_DECLS

#endif
