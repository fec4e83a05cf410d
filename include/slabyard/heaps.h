/*
 * slabyard/heaps.h: heaps of the program's own: memory of any size that is counted, limited and
 * given up together: of a tenant, a request, a plug-in, a level of a game.
 *
 *     sy_heap *tenant = sy_heap_create(
 *         &(sy_heap_config){.name = "tenant", .limit = {.hard = 64 << 20}});
 *     char *text = sy_heap_alloc(tenant, 100);
 *     ...
 *     sy_heap_free(tenant, text);
 *     sy_heap_destroy_all(tenant);        with whatever is still live in it
 *
 * A heap has caches for the size classes of sy_malloc, made when they are first needed, and beyond
 * 128 KiB for further ones (8 to a doubling, in whole 64 KiB). They are named in faults and
 * statistics after heap and size, "tenant-112". With SY_HANDLES its objects have handles too.
 *
 * Errors are NULL or -1 with errno; sy_last_refusal (limit.h) has the reason. Any thread may use a
 * heap at any time, but for its end. After a fork, parent and child have a copy each.
 *
 * Misuse is reported as for caches (cache.h): a pointer of another heap, of a cache or of
 * sy_malloc, or one that is no object's start, at once; a double free at once if the object is what
 * the thread freed last, else where the slow path sees it; with SY_CHECKED always at once.
 */
#ifndef SLABYARD_HEAPS_H
#define SLABYARD_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/handle.h>
#include <slabyard/limit.h>

SY_BEGIN_DECLS

typedef struct sy_heap sy_heap;

enum { SY_HEAP_NAME_MAX = 15 }; /* bytes of the name that are kept */

/* Zeroes are sensible. */
typedef struct sy_heap_config {
    const char *name;         /* copied; for reports. NULL: "heap" */
    sy_limit limit;           /* bytes (limit.h) */
    unsigned flags;           /* SY_CHECKED, SY_HANDLES, SY_EPOCHS */
    struct sy_memory *memory; /* to hold the objects (memory.h), for longer than the heap exists;
                                 NULL: the system's */
    uintptr_t reserved[7];    /* zero */
} sy_heap_config;

/*
 * A heap, or NULL with errno EINVAL (no config, another flag, `limit` as in sy_set_limit, reserved
 * not zero) or ENOMEM. The caller owns it. It counts towards SY_CACHES_MAX with each size class
 * that is used in it.
 */
SY_API sy_heap *sy_heap_create(const sy_heap_config *config);

/*
 * Destroys a heap of which no object is live; all its memory is given up. 0, or -1 with EBUSY and
 * nothing changed if objects are live, or if a function of the program's that the heap has called
 * asks for it (that of its limit, discard, import, release, a fault handler). No other thread may
 * be using it; any may call. NULL is a no-op.
 */
SY_API int sy_heap_destroy(sy_heap *heap);

/* The same, live objects included, pinned ones too, at a cost by slabs and not by objects: their
 * addresses are invalid from now on, their handles stale for ever. Asked for by a function that the
 * heap has called, it is done when the heap's functions have been left. */
SY_API void sy_heap_destroy_all(sy_heap *heap);

/* ---- objects by address ---- */

/* `size` bytes, aligned to 16 (to 8 for sizes up to 8), content undefined; size 0 gives a unique
 * pointer. ENOMEM: no memory, or a limit is reached. */
SY_API void *sy_heap_alloc(sy_heap *heap, size_t size);

/* `count` times `size` bytes, all zero. ENOMEM, also when the product overflows. */
SY_API void *sy_heap_calloc(sy_heap *heap, size_t count, size_t size);

/* `size` bytes at a multiple of `align`, a power of two up to SY_CACHE_ALIGN_MAX (else EINVAL);
 * it takes `align` bytes at least. ENOMEM. */
SY_API void *sy_heap_aligned_alloc(sy_heap *heap, size_t align, size_t size);

/*
 * The object with its first min(old, new) bytes at `size` bytes, moved if its size class changes;
 * then the old pointer is gone, and its handle stale. NULL acts as sy_heap_alloc. Size 0 keeps a
 * minimal object. On ENOMEM the old object stays as it is. What is no object of the heap's is a
 * fault, and NULL with EINVAL.
 */
SY_API void *sy_heap_realloc(sy_heap *heap, void *object, size_t size);

/* Frees an object of this heap; NULL is a no-op; errno is kept. */
SY_API void sy_heap_free(sy_heap *heap, void *object);

/* The same for an object of sy_heap_alloc, calloc or realloc whose size the caller knows; a size of
 * another class is reported. */
SY_API void sy_heap_free_sized(sy_heap *heap, void *object, size_t size);

/* Frees `object` and returns true if it is a live object of this heap; else returns false and does
 * nothing. Any address may be passed; as sy_cache_try_free. */
SY_API bool sy_heap_try_free(sy_heap *heap, void *object);

/* Bytes that may be used at `object`, at least as many as asked for; 0 for NULL and where no object
 * of the heap can begin. */
SY_API size_t sy_heap_usable_size(const sy_heap *heap, const void *object);

/*
 * The cache that sy_heap_alloc has objects of `size` bytes from: where the size is known
 * beforehand, sy_cache_alloc and sy_cache_free on it are inline. One for all sizes up to 1 KiB with
 * the same multiple of 8 above them. It is the heap's and exists as long: sy_cache_destroy refuses
 * it, and sy_cache_destroy_all must not be given it. The objects are the heap's too: sy_cache_free
 * and sy_heap_free take them, and checks know the size of the class, not what was asked for
 * (sy_heap_free_sized has to be told that size). Opened if need be; NULL with ENOMEM.
 */
SY_API sy_cache *sy_heap_cache_for(sy_heap *heap, size_t size);

/* ---- objects by handle: a heap with SY_HANDLES (handle.h) ---- */

/* An object of `size` bytes and, in *handle, its handle. NULL as sy_heap_alloc, or EINVAL without
 * SY_HANDLES; *handle is then as before. */
SY_API void *sy_heap_alloc_handle(sy_heap *heap, size_t size, sy_handle *handle);

/*
 * As sy_handle_get, sy_handle_free, sy_handle_pin and sy_handle_unpin, for handles of this heap.
 * Any 64 bits may be passed; stale and forged ones, and those of other heaps and caches, are
 * refused.
 */
SY_API void *sy_heap_get(const sy_heap *heap, sy_handle handle);
SY_API bool sy_heap_free_handle(sy_heap *heap, sy_handle handle);
SY_API void *sy_heap_pin(sy_heap *heap, sy_handle handle);
SY_API void sy_heap_unpin(sy_heap *heap, sy_handle handle);

/* As sy_handle_each, for all sizes; classes that `visit` uses for the first time may be left out.
 */
SY_API int sy_heap_each(sy_heap *heap, sy_handle_visit visit, void *arg);

/* ---- looking ---- */

/* Gives free memory of the heap back to the OS, as sy_cache_trim. Bytes given back. */
SY_API size_t sy_heap_trim(sy_heap *heap);

typedef struct sy_heap_stats {
    char name[SY_HEAP_NAME_MAX + 1];
    size_t used;         /* bytes: what counts for the limit */
    size_t limit;        /* bytes: hard; 0: none */
    size_t soft;         /* bytes; 0: none */
    size_t objects;      /* number of: live */
    size_t live_bytes;   /* of the classes' sizes */
    size_t caches;       /* number of: classes that were used */
    uint64_t limits_hit; /* allocations refused for the limit of this heap */
} sy_heap_stats;

/* Fills `stats`: exact while nobody uses the heap, else a snapshot of each. 0; -1 with EINVAL for
 * NULL. */
SY_API int sy_heap_get_stats(const sy_heap *heap, sy_heap_stats *stats);

SY_END_DECLS

#endif
