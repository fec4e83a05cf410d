/*
 * slabyard/cache.h: object caches.
 *
 * A cache gives out objects of one kind: fixed size, fixed alignment, optionally kept constructed
 * while they are free. Any thread may allocate from it and any thread may free to it. An allocation
 * that hits is a handful of instructions inlined into the caller: no lock, no atomic
 * read-modify-write, no call.
 *
 *     sy_cache *orders = sy_cache_create(
 *         &(sy_cache_config){.name = "order", .size = sizeof(struct order)});
 *     struct order *order = sy_cache_alloc(orders);
 *     ...
 *     sy_cache_free(orders, order);
 *     sy_cache_destroy(orders);
 *
 * Errors are NULL or -1 with `errno`. Nothing here is async-signal-safe. After fork, parent and
 * child each go on with their own copy of every cache.
 *
 * Misuse that means corruption (a double free, a pointer that is not an object of the cache) is
 * reported with the cache's name to the fault handler (slabyard/fault.h), which by default aborts.
 * A free of the object that this thread freed last is reported at once (but see
 * SY_NO_DOUBLE_FREE_CHECK in slabyard/loaded.h). Other misuse is reported when the slow path sees
 * it: late, or never if the object was given out again before. With SY_CHECKED every free is
 * examined at once.
 */
#ifndef SLABYARD_CACHE_H
#define SLABYARD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slabyard/checks.h>
#include <slabyard/loaded.h>
#include <slabyard/reclaim.h>

SY_BEGIN_DECLS

typedef struct sy_cache sy_cache;

/* Flags; SY_CHECKED and its kin are in slabyard/checks.h. */
enum {
    /* Slabs without a tail give up a slot, or as many as fill a cache line, so that the first
     * objects of successive slabs begin at different cache lines. (Where a slab has a tail, it is
     * used for that anyway.) */
    SY_COLOUR = 1u << 1,
    /* `limit` counts live objects exactly: no object waits in a magazine. Costs a lock per
       operation. */
    SY_LIMIT_EXACT = 1u << 2,
    /* Objects have handles (slabyard/handle.h): 8 bytes more each. */
    SY_HANDLES = 1u << 3,
    /* Objects of an epoch (slabyard/epoch.h) lie in slabs of their own. A free is a call, and what
     * is freed is given out again only when it is back in its slab. */
    SY_EPOCHS = 1u << 4,
};

enum {
    SY_CACHE_ALIGN_MAX = 2 << 20, /* bytes; the largest `align` of a cache */
    SY_CACHE_NAME_MAX = 31,       /* bytes of the name that are kept */
    SY_CACHES_MAX = 15000,        /* caches that can exist at a time, at least */
};

/* What kind of objects; zeroes are sensible for all but `size`. */
typedef struct sy_cache_config {
    const char *name; /* copied; for reports. NULL: "cache" */
    size_t size;      /* bytes of an object: 1 up to half the address space */
    size_t align; /* bytes: a power of two up to 2 MiB, or 0: 16 (8 for objects of up to 8 bytes) */
    /*
     * Called with `arg` once for each object before it is first given out, not at each allocation;
     * the object stays constructed while it is free. Returns 0, or anything else: the allocation
     * fails with the errno that it left. Called without any lock held; it may use other caches,
     * but not this one (it may destroy it), nor sy_thread_idle or sy_thread_flush.
     *
     * It may throw a C++ exception, and its thread may end in it. Then its memory goes back, and
     * the exception goes on to the caller of the allocation. It must not be left by longjmp.
     */
    int (*construct)(void *object, void *arg);
    /* Called once for each constructed object before its memory goes away. It may free objects,
     * those of this cache included, but not call sy_thread_idle or sy_thread_flush. It must
     * return (base.h). */
    void (*destruct)(void *object, void *arg);
    void *arg;
    size_t limit;   /* most live objects, 0: unlimited. Fewer may be had: up to an eighth can wait
                     * in the magazines of other threads, unless SY_LIMIT_EXACT */
    unsigned flags; /* SY_CHECKED ... */
    struct sy_memory *memory; /* to hold the objects (memory.h), for longer than the cache exists;
                                 NULL: the system's */
    /* With SY_HANDLES: called with `arg` for each object that is freed, before it is free, by the
     * thread that was the last to hold it (slabyard/handle.h). It may do anything, but must return
     * (base.h). Not called by sy_cache_destroy_all. */
    void (*dispose)(void *object, void *arg);
    uintptr_t reserved[6]; /* zero */
} sy_cache_config;

/*
 * A cache, or NULL with errno EINVAL (size 0 or over half the address space; align no power of two
 * or above SY_CACHE_ALIGN_MAX; unknown flag; reserved not zero; SY_LIMIT_EXACT without limit;
 * dispose without SY_HANDLES) or ENOMEM (no memory, or too many caches). The caller owns it until
 * sy_cache_destroy.
 */
SY_API sy_cache *sy_cache_create(const sy_cache_config *config);

/*
 * Destroys a cache of which no object is live: all its memory is given up, destructors are called.
 * 0, or -1 with errno and nothing changed: EBUSY, objects are live; EINVAL, it is a heap's. No
 * other thread may be using the cache. NULL is a no-op.
 *
 * A function that Slabyard calls (construct, destruct, dispose, discard, import, release, the
 * callback of a limit, a fault handler) may destroy any cache, its own too. If the cache is at work
 * there, further up the stack or in a trim of another thread, the call returns 0 at once and the
 * destruction is put off: the last thread to leave the cache's functions does it. If an object is
 * live then, the cache stays as it was.
 */
SY_API int sy_cache_destroy(sy_cache *cache);

/* The same, live objects included: they are destructed and become invalid. */
SY_API void sy_cache_destroy_all(sy_cache *cache);

/* Takes a zeroed object: sy_cache_alloc, then all bytes 0. NULL with EINVAL if the cache has a
 * constructor. */
SY_API void *sy_cache_zalloc(sy_cache *cache);

/*
 * Frees `object` and returns true if it is a live object of this cache; else returns false and does
 * nothing. Any address may be passed. If several threads call it for one live object at the same
 * time, exactly one is told true. errno is kept.
 *
 * It takes locks and looks for the object in all magazines of the cache, which is slow. With
 * SY_CHECKED or SY_HANDLES it is quick, and always exact. Without, there is one exception. If at
 * this moment another thread moves a magazine, since it allocates from this cache, frees to it, or
 * begins or ends an epoch, then a free object in that magazine is taken for a live one.
 */
SY_API bool sy_cache_try_free(sy_cache *cache, void *object);

/* Takes up to `count` objects into `objects`; returns how many (a prefix). errno is set when short.
 */
SY_API size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count);

/* Frees `count` objects; NULLs among them are skipped. */
SY_API void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count);

/*
 * Provides memory, populated, for the next `count` allocations of this process beyond what is live,
 * so that they need nothing of the OS. They succeed, whichever threads make them and whenever these
 * began. So slabs are provided for the magazines of all threads besides, and one more time for each
 * thread that comes to use the cache later; if there is no memory for that, such a thread works
 * without magazines until the allocations were made. Not promised: what a limit of the cache leaves
 * to magazines (sy_cache_config.limit), and objects that a constructor refuses.
 *
 * A later trim ends the promise and takes back what was not used. 0, or -1 with errno ENOMEM: what
 * had been provided stays.
 */
SY_API int sy_cache_reserve(sy_cache *cache, size_t count);

/*
 * The same for the next `count` allocations of this thread, beyond what is live, which besides take
 * no lock and call nobody: they are in its magazines, whatever their age, until a trim, the close
 * of an epoch, or a limit that somebody reaches takes them. Two magazines
 * (sy_cache_stats.magazine_items) hold what can be reserved; of a cache with SY_EPOCHS one, and
 * until the thread begins or ends an epoch. 0, or -1 with errno EINVAL (count is more) or ENOMEM.
 */
SY_API int sy_thread_reserve(sy_cache *cache, size_t count);

/*
 * Gives free memory of the cache back to the OS, page by page, slabs that are in use included.
 * Objects in the magazines of threads that are running elsewhere are taken at their next exchange
 * and given back by a later trim; those of idle (sy_thread_idle) and ended threads at once. Returns
 * bytes given back.
 */
SY_API size_t sy_cache_trim(sy_cache *cache);

/* Live objects: exact while no other thread is using the cache, or gives back what it does not want
 * (slabyard/reclaim.h); else a snapshot. */
SY_API size_t sy_cache_in_use(const sy_cache *cache);

/* Bytes from one object to the next: size rounded up to align, at least 8. (Of a cache with red
 * zones, which lie between: the size.) */
SY_API size_t sy_cache_slot_size(const sy_cache *cache);

/* --- The inline fast path ------------------------------------------------------------------- */

/* What the functions below read of a cache; the rest is the library's. */
struct sy_cache_head {
    uintptr_t reserved[5];
    size_t loaded_offset; /* bytes from sy_abi_1 to this cache's loaded slot */
    uintptr_t reserved_too[2];
};

SY_API void *sy_cache_alloc_slow(sy_cache *cache);
SY_API void sy_cache_free_slow(sy_cache *cache, void *object);

static inline sy_loaded_slot *sy_cache_loaded(sy_cache *cache) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + ((struct sy_cache_head *)cache)->loaded_offset);
}

static inline void *sy_cache_alloc_inline(sy_cache *cache) {
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return (void *)object;
    return sy_cache_alloc_slow(cache);
}

static inline void sy_cache_free_inline(sy_cache *cache, void *object) {
    if (!object || SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache), (uintptr_t)object)))
        return;
    sy_cache_free_slow(cache, object);
}

/*
 * Takes an object: `size` bytes at `align`, content undefined (as constructed or as freed, if the
 * cache has a constructor). NULL with errno ENOMEM (no memory, limit reached) or what the
 * constructor left.
 */
#ifdef SY_NO_INLINE
SY_API void *sy_cache_alloc(sy_cache *cache);
#else
static inline void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }
#endif

/* Gives back an object that sy_cache_alloc gave; NULL is a no-op. Any thread. errno is kept. */
#ifdef SY_NO_INLINE
SY_API void sy_cache_free(sy_cache *cache, void *object);
#else
static inline void sy_cache_free(sy_cache *cache, void *object) {
    sy_cache_free_inline(cache, object);
}
#endif

SY_END_DECLS

#endif
