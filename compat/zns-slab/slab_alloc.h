/*
 * slab_alloc.h: the allocator of ZNS-Slab, by handle and by pointer, implemented by Slabyard's
 * handles.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/zns-slab -lslabyard
 *
 * In these points ZNS-Slab's document leaves a choice, or ZNS-Slab does not do what it says. Here:
 *   - The largest object is 512 bytes by handle and 504 by pointer, as the document says. For more,
 *     the result is NULL with EINVAL. (Objects have no header here; slabyard/heap.h has every
 *     size.) An object of 0 bytes is allocated by handle; by pointer the result is NULL.
 *   - A handle stays invalid once its object is freed, whatever is placed there later. Forged
 *     handles and those of another allocator are refused, and never used as an address. 0 is never
 *     a handle.
 *   - slab_free does nothing for an address that is no live object of this allocator. It also frees
 *     objects of alloc_obj.
 *   - Objects are aligned to 64 bytes.
 *   - ZNS-Slab keeps slabs mapped until the allocator is destroyed, because of stale handles, and
 *     promises bounded memory. Here empty slabs are reused for other caches, and their memory
 *     returns to the operating system after a while, if threads take slow paths or a background
 *     thread runs (slabyard/reclaim.h), and all of it at the end. The promises about handles hold
 *     all the same.
 *   - Allocators share nothing, whichever threads use them.
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

#define SLAB_PAGE_SIZE 4096u /* the unit of slab_object_count; slabs are larger here */

enum { SY_ZNS_CLASSES = 4, SY_ZNS_LEAST = 64, SY_ZNS_MOST = 512, SY_ZNS_MOST_BY_POINTER = 504 };

typedef uint64_t SlabHandle;

/* The structure belongs to the caller, or comes from slab_allocator_create. */
typedef struct SlabAllocator {
    sy_cache *classes[SY_ZNS_CLASSES]; /* of 64, 128, 256 and 512 bytes; NULL: no memory for it */
} SlabAllocator;

/* Events since the allocator was created. */
typedef struct PerfCounters {
    uint64_t slow_path_hits;            /* magazines filled from slabs */
    uint64_t new_slab_count;            /* slabs taken from the chunks */
    uint64_t list_move_partial_to_full; /* slabs that became full */
    uint64_t list_move_full_to_partial; /* slabs that were full, and are so no longer */
    uint64_t current_partial_null;      /* only an empty or a new slab had a free slot */
    uint64_t current_partial_full;      /* the slab in use had no free slot any more */
    uint64_t empty_slab_recycled;       /* empty slabs that were used again */
    uint64_t empty_slab_overflowed;     /* empty slabs returned to the chunks */
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

/* Destroys an allocator with all its objects and releases all its memory. NULL is allowed and does
 * nothing. */
static inline void allocator_destroy(SlabAllocator *alloc) {
    if (!alloc) return;
    for (unsigned i = 0; i < SY_ZNS_CLASSES; i++) sy_cache_destroy_all(alloc->classes[i]);
    memset(alloc, 0, sizeof *alloc);
    sy_trim();
}

/* Creates an allocator. The caller owns it until slab_allocator_free. Returns NULL if there is no
 * memory. */
static inline SlabAllocator *slab_allocator_create(void) {
    SlabAllocator *alloc = (SlabAllocator *)sy_malloc(sizeof *alloc);
    if (alloc) allocator_init(alloc);
    return alloc;
}

/* Destroys an allocator of slab_allocator_create. NULL is allowed and does nothing. */
static inline void slab_allocator_free(SlabAllocator *alloc) {
    allocator_destroy(alloc);
    sy_free(alloc);
}

/* ---- by handle ---- */

/* Allocates an object and writes its handle to *out_handle. If `out_handle` is NULL, the object has
 * to be freed with slab_free. Returns NULL with errno EINVAL (more than 512 bytes, or no allocator)
 * or ENOMEM; *out_handle is then unchanged. */
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

/* Frees an object. Returns true once for each handle; false for any other 64 bits, and if `alloc`
 * is NULL. */
static inline bool free_obj(SlabAllocator *alloc, SlabHandle handle) {
    for (unsigned i = 0; alloc && i < SY_ZNS_CLASSES; i++) {
        sy_cache *cache = alloc->classes[i];
        if (cache && sy_handle_get(cache, handle)) return sy_handle_free(cache, handle);
    }
    return false;
}

/* ---- by pointer ---- */

/* Allocates an object. Returns NULL with errno EINVAL (0 bytes, or more than 504; no allocator) or
 * ENOMEM. */
static inline void *slab_malloc(SlabAllocator *alloc, size_t size) {
    if (size && size <= SY_ZNS_MOST_BY_POINTER) return alloc_obj(alloc, (uint32_t)size, NULL);
    errno = EINVAL;
    return NULL;
}

/* Frees an object. Either argument may be NULL; the function then does nothing. */
static inline void slab_free(SlabAllocator *alloc, void *ptr) {
    free_obj(alloc, sy_handle_of(ptr));
}

/* ---- statistics ---- */

/* Writes the counters of a class, 0 (64 bytes) to 3 (512 bytes), to *out. For another class, or
 * without an allocator, all counters are 0. If `out` is NULL, it does nothing. */
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
    if (stats.slabs_reused > stats.slabs_made) /* a new slab is empty at first */
        out->empty_slab_recycled = stats.slabs_reused - stats.slabs_made;
    out->empty_slab_overflowed = stats.slabs_released;
}

/* ---- utilities ---- */

/* Returns how many objects of `obj_size` bytes fit in SLAB_PAGE_SIZE bytes. Slabs have no header
 * here, so 32 objects of 128 bytes fit (31 in ZNS-Slab). Returns 0 for 0. */
static inline uint32_t slab_object_count(uint32_t obj_size) {
    return obj_size ? SLAB_PAGE_SIZE / obj_size : 0;
}

/* Returns the resident memory of the process in bytes, or 0 if there is no /proc. */
static inline uint64_t read_rss_bytes_linux(void) {
    unsigned long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    (void)fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns nanoseconds since a fixed moment. The clock is the monotonic one if <time.h> declares it.
 * It does so unless a program asks for ISO C alone (-std=c11 without _POSIX_C_SOURCE or a similar
 * macro); then the clock is the time of day. */
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
