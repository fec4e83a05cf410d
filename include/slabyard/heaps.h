/**
 * slabyard/heaps.h: separate heaps: memory of any size that is counted, limited and released
 * together, for example that of a tenant, a request, a plug-in, or a level of a game.
 *
 *     sy_heap *tenant = sy_heap_create(
 *         &(sy_heap_config){.name = "tenant", .limit = {.hard = 64 << 20}});
 *     char *text = sy_heap_alloc(tenant, 100);
 *     ...
 *     sy_heap_free(tenant, text);
 *     sy_heap_destroy_all(tenant);        frees all that is still live in it
 *
 * A heap has caches for the size classes of sy_malloc, created when they are first needed. Beyond
 * 128 KiB it has further classes: 8 for each doubling of the size, in whole 64 KiB. In faults and
 * statistics these caches are named after heap and size, "tenant-112". In a heap with SY_HANDLES
 * all objects have handles.
 *
 * Functions that fail return NULL or -1 and set errno; sy_last_refusal (limit.h) gives the reason.
 * After a fork, parent and child each have their own copy.
 *
 * Threads: any thread may use a heap at any time, except while it is destroyed.
 *
 * Misuse is reported as for caches (cache.h). A pointer of another heap, of a cache or of sy_malloc
 * is reported at once, as is a pointer that is not the start of an object. A double free is
 * reported at once if the object is the one that the thread freed last; otherwise when the object
 * reaches the slow path. With SY_CHECKED a double free is always reported at once.
 */
#ifndef SLABYARD_HEAPS_H
#define SLABYARD_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/handle.h>
#include <slabyard/limit.h>

SY_BEGIN_DECLS

/** A separate heap. Its content is private. */
typedef struct sy_heap sy_heap;

/** The bytes of a heap's name that are kept. */
enum {
    SY_HEAP_NAME_MAX = 15,       /* bytes of the name that are kept */
    SY_HEAP_CLASSES_MAX = 12288, /* size classes in use, of all heaps together; a quarter of them on
                                  * a platform without "free-addresses" (sy_platform_has) */
};

/** The configuration of a heap. Every field may be zero. */
typedef struct sy_heap_config {
    const char *name;         /* for reports; copied. NULL: "heap" */
    sy_limit limit;           /* bytes (limit.h) */
    unsigned flags;           /* SY_CHECKED, SY_HANDLES, SY_EPOCHS */
    struct sy_memory *memory; /* memory of your own for the objects (memory.h), which must outlive
                                 the heap; NULL: memory of the system */
    uintptr_t reserved[7];    /* zero */
} sy_heap_config;

/**
 * Creates a heap. The caller owns it until sy_heap_destroy or sy_heap_destroy_all. Each size class
 * that is used in it counts towards SY_CACHES_MAX and SY_HEAP_CLASSES_MAX.
 *
 * Returns the heap, or NULL with errno.
 *
 * Errors:
 *     EINVAL     no config; another flag; a `limit` that sy_set_limit would refuse; reserved not
 *                zero
 *     ENOMEM     no memory
 *     ENOTSUP    SY_GUARD or SY_LOCKED, which the platform does not have (sy_platform_has)
 */
SY_API sy_heap *sy_heap_create(const sy_heap_config *config);

/**
 * Destroys a heap without live objects and releases all its memory. No other thread may be using
 * the heap. NULL is allowed and does nothing.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     objects are live, or the call is made in a function of yours that the heap is
 *               calling (the callback of its limit, discard, import, release, a fault handler)
 *
 * Threads: any thread.
 */
SY_API int sy_heap_destroy(sy_heap *heap);

/** Destroys a heap as sy_heap_destroy, even if objects are live or pinned. Their addresses become
 * invalid and their handles stay stale. The time depends on the number of slabs, not of objects. If
 * you call this in a function of yours that the heap is calling, the heap is destroyed later: when
 * the heap's functions have returned. */
SY_API void sy_heap_destroy_all(sy_heap *heap);

/* ---- objects by address ---- */

/**
 * Allocates `size` bytes, aligned to 16 (to 8 for sizes up to 8), with undefined content. Size 0
 * gives a unique pointer.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory, or a limit is reached
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 */
SY_API void *sy_heap_alloc(sy_heap *heap, size_t size);

/**
 * Allocates `count` times `size` bytes, all zero.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory, a limit is reached, or the product overflows
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 *
 *     struct order *table = sy_heap_calloc(tenant, 256, sizeof *table);   all bytes are 0
 *     ...
 *     sy_heap_free(tenant, table);
 */
SY_API void *sy_heap_calloc(sy_heap *heap, size_t count, size_t size);

/**
 * Allocates `size` bytes at a multiple of `align`, which takes at least `align` bytes.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    `align` is no power of two up to SY_CACHE_ALIGN_MAX
 *     ENOMEM    no memory, or a limit is reached
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 *
 *     float *row = sy_heap_aligned_alloc(tenant, 64, 1000 * sizeof *row);   for vector code
 *     ...
 *     sy_heap_free(tenant, row);
 */
SY_API void *sy_heap_aligned_alloc(sy_heap *heap, size_t align, size_t size);

/**
 * Allocates `count` times `size` bytes, all zero, as sy_heap_aligned_alloc.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    `align` is no power of two up to SY_CACHE_ALIGN_MAX
 *     ENOMEM    no memory, a limit is reached, or the product overflows
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 *
 *     double *matrix = sy_heap_aligned_calloc(tenant, 64, 100 * 100, sizeof *matrix);
 *     ...
 *     sy_heap_free(tenant, matrix);
 */
SY_API void *sy_heap_aligned_calloc(sy_heap *heap, size_t align, size_t count, size_t size);

/**
 * Changes the size of an object to `size` bytes. The first min(old, new) bytes keep their content.
 * If the size class changes, the object moves: the old pointer becomes invalid, and the old handle
 * becomes stale. NULL as `object` acts as sy_heap_alloc. With size 0 a minimal object stays
 * allocated. An address that is no object of the heap is reported to the fault handler
 * (slabyard/fault.h).
 *
 * Returns the object's address. On failure NULL with errno, and the old object stays as it is.
 *
 * Errors:
 *     EINVAL    the address is no object of the heap, and the fault handler returned
 *     ENOMEM    no memory, or a limit is reached
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 */
SY_API void *sy_heap_realloc(sy_heap *heap, void *object, size_t size);

/** Frees an object of this heap. NULL is allowed and does nothing. errno is kept. */
SY_API void sy_heap_free(sy_heap *heap, void *object);

/**
 * Frees an object whose size you know, as sy_heap_free. The object must be from sy_heap_alloc,
 * sy_heap_calloc or sy_heap_realloc. A size of another class is reported.
 *
 *     struct order *order = sy_heap_alloc(tenant, sizeof *order);
 *     ...
 *     sy_heap_free_sized(tenant, order, sizeof *order);
 */
SY_API void sy_heap_free_sized(sy_heap *heap, void *object, size_t size);

/**
 * Frees `object` if it is a live object of this heap; else does nothing. Any address may be passed.
 * The cost is that of sy_cache_try_free.
 *
 * Returns true if it freed the object, else false.
 *
 * Threads: as sy_cache_try_free.
 *
 * A pointer from a plug-in may be wrong:
 *
 *     if (!sy_heap_try_free(tenant, pointer)) fprintf(stderr, "%p: not the tenant's\n", pointer);
 */
SY_API bool sy_heap_try_free(sy_heap *heap, void *object);

/**
 * Tells how large an object is.
 *
 * Returns the number of bytes that may be used at `object`: at least as many as were asked for. 0
 * for NULL, and for an address where no object of the heap can begin.
 *
 *     char *text = sy_heap_alloc(tenant, 100);
 *     size_t room = sy_heap_usable_size(tenant, text);   112: the size class of 100 bytes
 *     ...
 *     sy_heap_free(tenant, text);
 */
SY_API size_t sy_heap_usable_size(const sy_heap *heap, const void *object);

/**
 * Finds the cache from which sy_heap_alloc takes objects of `size` bytes, and creates it if
 * necessary. If you know the size beforehand, call sy_cache_alloc and sy_cache_free on this cache:
 * they are inline. All sizes up to 1 KiB that round up to the same multiple of 8 have the same
 * cache.
 *
 * The cache belongs to the heap and exists as long as the heap: sy_cache_destroy refuses it, and
 * you must not pass it to sy_cache_destroy_all. Its objects belong to the heap too, so both
 * sy_cache_free and sy_heap_free accept them. Checks know the size of the class, not the size that
 * you asked for, so pass the size of the class to sy_heap_free_sized.
 *
 * Returns the cache, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 *
 *     sy_cache *orders = sy_heap_cache_for(tenant, sizeof(struct order));
 *     struct order *order = orders ? sy_cache_alloc(orders) : NULL;
 *     ...
 *     sy_heap_free(tenant, order);   or sy_cache_free(orders, order), which is faster
 */
SY_API sy_cache *sy_heap_cache_for(sy_heap *heap, size_t size);

/* ---- objects by handle: a heap with SY_HANDLES (handle.h) ---- */

/**
 * Allocates an object of `size` bytes and writes its handle to *handle.
 *
 * Returns the object, or NULL with errno; *handle is then unchanged.
 *
 * Errors:
 *     EINVAL    the heap has no SY_HANDLES
 *     ENOMEM    no memory, or a limit is reached
 *     ENOSPC    a size class is needed, and there are SY_HEAP_CLASSES_MAX in all heaps
 */
SY_API void *sy_heap_alloc_handle(sy_heap *heap, size_t size, sy_handle *handle);

/**
 * Looks up the object of a handle, as sy_handle_get. Any 64 bits may be passed.
 *
 * Returns the object of a live handle of this heap. NULL for a handle that is stale, forged, or of
 * another heap or cache.
 */
SY_API void *sy_heap_get(const sy_heap *heap, sy_handle handle);

/**
 * Frees the object of a handle, as sy_handle_free. Any 64 bits may be passed.
 *
 * Returns true once for each handle of this heap; false for any other handle.
 */
SY_API bool sy_heap_free_handle(sy_heap *heap, sy_handle handle);

/**
 * Pins the object of a handle, as sy_handle_pin. Any 64 bits may be passed.
 *
 * Returns the object. NULL for any handle that is not live in this heap; NULL with errno if the
 * object cannot be pinned.
 *
 * Errors:
 *     EAGAIN    the object has SY_HANDLE_PINS_MAX pins
 */
SY_API void *sy_heap_pin(sy_heap *heap, sy_handle handle);

/** Ends one pin, as sy_handle_unpin. */
SY_API void sy_heap_unpin(sy_heap *heap, sy_handle handle);

/**
 * Calls `visit` for the live objects of all sizes, as sy_handle_each. Size classes that `visit`
 * uses for the first time may be left out.
 *
 * Returns 0, or the value with which `visit` ended the iteration, or -1 with errno.
 *
 * Errors:
 *     EINVAL    the heap has no SY_HANDLES
 *     ENOMEM    no memory
 *
 * The bytes of all live objects, each as large as its class:
 *
 *     static int add_size(void *arg, sy_handle handle, void *object) {
 *         (void)handle;
 *         *(size_t *)arg += sy_heap_usable_size(tenant, object);
 *         return 0;   continue
 *     }
 *
 *     size_t bytes = 0;
 *     if (sy_heap_each(tenant, add_size, &bytes) == 0) printf("%zu bytes\n", bytes);
 */
SY_API int sy_heap_each(sy_heap *heap, sy_handle_visit visit, void *arg);

/* ---- trimming and statistics ---- */

/**
 * Gives free memory of the heap back to the operating system, as sy_cache_trim.
 *
 * Returns the number of bytes.
 *
 *     size_t bytes = sy_heap_trim(tenant);
 *     printf("%zu KiB returned to the system\n", bytes >> 10);
 */
SY_API size_t sy_heap_trim(sy_heap *heap);

/** The memory of a heap. */
typedef struct sy_heap_stats {
    char name[SY_HEAP_NAME_MAX + 1];
    size_t used;         /* bytes that count for the limit */
    size_t limit;        /* bytes: the hard limit; 0: none */
    size_t soft;         /* bytes; 0: none */
    size_t objects;      /* number of live objects */
    size_t live_bytes;   /* bytes of live objects, each as large as its class */
    size_t caches;       /* number of classes that were used */
    uint64_t limits_hit; /* allocations refused because of this heap's limit */
} sy_heap_stats;

/* sy_heap_get_stats for a struct of `size` bytes (base.h). */
SY_API int sy_heap_get_stats_sized(const sy_heap *heap, sy_heap_stats *stats, size_t size);

/**
 * Fills `stats`. The figures are exact while no thread uses the heap; else each is a snapshot.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    an argument is NULL
 */
static inline int sy_heap_get_stats(const sy_heap *heap, sy_heap_stats *stats) {
    return sy_heap_get_stats_sized(heap, stats, sizeof *stats);
}

SY_END_DECLS

#endif
