/**
 * slabyard/cache.h: object caches.
 *
 * A cache allocates objects of one kind: fixed size, fixed alignment, optionally kept constructed
 * while they are free. Any thread may allocate from it and any thread may free to it. The usual
 * allocation takes an object from the calling thread's magazine: ten or eleven instructions,
 * inlined into the caller, without a lock, an atomic read-modify-write or a call.
 *
 *     sy_cache *orders = sy_cache_create(
 *         &(sy_cache_config){.name = "order", .size = sizeof(struct order)});
 *     struct order *order = sy_cache_alloc(orders);
 *     ...
 *     sy_cache_free(orders, order);
 *     sy_cache_destroy(orders);
 *
 * Functions that fail return NULL or -1 and set `errno`. After a fork, parent and child each have
 * their own copy of every cache.
 *
 * Threads: any thread, at any time, except where a comment says otherwise. Do not call these
 * functions in a signal handler.
 *
 * Misuse that would corrupt memory (a double free, a pointer that is not an object of the cache) is
 * reported with the cache's name to the fault handler (slabyard/fault.h), which aborts by default.
 * If a thread frees the object that it freed last, the report comes at once (unless
 * SY_NO_DOUBLE_FREE_CHECK of slabyard/loaded.h is defined). Other misuse is reported late, when the
 * object reaches the slow path. It is never reported if the object is allocated again before that.
 * With SY_CHECKED every free is examined at once.
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

/** An object cache. Its content is private. */
typedef struct sy_cache sy_cache;

/** Flags of a cache. slabyard/checks.h has more, for example SY_CHECKED. */
enum {
    /* The first objects of successive slabs begin at different cache lines. If the slots fill a
     * slab exactly, this costs one slot, or as many slots as fill a cache line. (If a slab has
     * bytes to spare, the cache uses these bytes for different beginnings, with or without the
     * flag.) */
    SY_COLOUR = 1u << 1,
    /* `limit` counts live objects exactly, because no free object waits in a magazine. Each
     * operation takes a lock. */
    SY_LIMIT_EXACT = 1u << 2,
    /* Objects have handles (slabyard/handle.h), which cost 8 bytes for each object. */
    SY_HANDLES = 1u << 3,
    /* Objects of an epoch (slabyard/epoch.h) lie in slabs of their own. A free is a function call,
     * and a freed object is allocated again only after it was returned to its slab. */
    SY_EPOCHS = 1u << 4,
    /* With SY_HANDLES: the library may move objects to empty sparse slabs. Only an object's handle
     * stays valid, and addresses only while the object is pinned or in a read guard
     * (slabyard/handle.h, "Objects that move"). This costs 12 bytes more for each object. */
    SY_MOVABLE = 1u << 5,
};

/** Sizes of caches. */
enum {
    SY_CACHE_ALIGN_MAX = 2 << 20, /* bytes; the largest `align` of a cache */
    SY_CACHE_NAME_MAX = 31,       /* bytes of the name that are kept */
    SY_CACHES_MAX = 15000,        /* at least as many caches can exist at a time; a quarter of them
                                   * on a platform without "free-addresses" (sy_platform_has) */
};

/** The configuration of a cache. Every field but `size` may be zero. */
typedef struct sy_cache_config {
    const char *name; /* for reports and statistics; copied. NULL: "cache" */
    size_t size;      /* bytes of an object: 1 up to half the address space */
    size_t align; /* bytes: a power of two up to 2 MiB, or 0: 16 (8 for objects of up to 8 bytes) */
    /*
     * The constructor. It is called with `arg` once for each object, before the object is allocated
     * for the first time; the object then stays constructed while it is free. If it returns a value
     * other than 0, the allocation fails, with the errno that the constructor left. No lock is
     * held. The constructor may use other caches, and may destroy this one. It may not allocate
     * from this cache or free to it, nor call sy_thread_idle or sy_thread_flush.
     *
     * The constructor may throw a C++ exception, and its thread may end in it. The memory of the
     * object then returns to the cache, and the exception reaches the caller of the allocation. The
     * constructor must not be left by longjmp.
     */
    int (*construct)(void *object, void *arg);
    /* The destructor. It is called with `arg` once for each constructed object before its memory is
     * released. It may free objects, also of this cache. It may not call sy_thread_idle or
     * sy_thread_flush, and it must return (base.h). */
    void (*destruct)(void *object, void *arg);
    void *arg;
    size_t limit;   /* of live objects; 0: none. Without SY_LIMIT_EXACT an allocation can fail when
                     * seven eighths are live, because the others may wait in other threads'
                     * magazines */
    unsigned flags; /* SY_CHECKED ... */
    struct sy_memory *memory; /* memory of your own for the objects (memory.h), which must outlive
                                 the cache; NULL: memory of the system */
    /* With SY_HANDLES: called with `arg` for each object that is freed, by the thread that held it
     * last, before the object can be allocated again (slabyard/handle.h). It may call any function,
     * and must return (base.h). sy_cache_destroy_all does not call it. */
    void (*dispose)(void *object, void *arg);
    /* With SY_MOVABLE: called with `arg` to move an object to `to`, which has the cache's size and
     * alignment; NULL: memcpy. For objects that contain their own address. No other thread uses the
     * object meanwhile. It must return, and may call no function of the library: not even a look-up
     * of this object, which would wait for the end of the move. It may take no lock that a thread
     * holds while it looks an object up. If another thread forks while it runs, the fork waits 50
     * milliseconds for it; then the child finds the object at `from`, in the middle of the work. If
     * another thread is in a read guard at a fork, it may be making an object there: then no object
     * of this cache moves in the child. */
    void (*relocate)(void *from, void *to, void *arg);
    uintptr_t reserved[5]; /* zero */
} sy_cache_config;

/**
 * Creates a cache. The caller owns it until sy_cache_destroy.
 *
 * Returns the cache, or NULL with errno.
 *
 * Errors:
 *     EINVAL     size is 0 or over half the address space; align is no power of two or above
 *                SY_CACHE_ALIGN_MAX; a flag is unknown; reserved is not zero; SY_LIMIT_EXACT
 *                without limit; dispose without SY_HANDLES; SY_MOVABLE without SY_HANDLES, with
 *                construct, destruct or SY_EPOCHS; relocate without SY_MOVABLE
 *     ENOMEM     no memory
 *     ENOSPC     too many caches (SY_CACHES_MAX)
 *     ENOTSUP    SY_GUARD or SY_LOCKED, and the platform has no guard pages, or locks no memory
 *                (sy_platform_has)
 */
SY_API sy_cache *sy_cache_create(const sy_cache_config *config);

/**
 * Destroys a cache without live objects: calls the destructors and releases all its memory. No
 * other thread may be using the cache. NULL is allowed and does nothing.
 *
 * A function that Slabyard calls (construct, destruct, dispose, discard, import, release, the
 * callback of a limit, a fault handler) may destroy any cache, also the cache that it is called
 * for. If a function of this cache is running at that moment, further up the stack or in a trim by
 * another thread, sy_cache_destroy returns 0 at once. The last thread that leaves the cache's
 * functions then destroys the cache, unless an object is live at that time.
 *
 * Returns 0, or -1 with errno and nothing changed.
 *
 * Errors:
 *     EBUSY     objects are live
 *     EINVAL    the cache belongs to a heap
 */
SY_API int sy_cache_destroy(sy_cache *cache);

/** Destroys a cache as sy_cache_destroy, even if objects are live: they are destructed and become
 * invalid. */
SY_API void sy_cache_destroy_all(sy_cache *cache);

/**
 * Allocates an object, as sy_cache_alloc, and sets all its bytes to 0.
 *
 * Returns the object, or NULL with errno.
 *
 * Errors:
 *     EINVAL    the cache has a constructor
 *     ENOMEM    no memory, or the limit is reached
 *     EPERM     the cache has SY_MOVABLE, and the thread is in no read guard (handle.h)
 *
 *     struct order *order = sy_cache_zalloc(orders);
 *     if (order) order->amount += 100;   the amount was 0
 */
SY_API void *sy_cache_zalloc(sy_cache *cache);

/**
 * Frees `object` if it is a live object of this cache; else does nothing. Any address may be
 * passed. If several threads call it for one live object at the same time, it returns true in
 * exactly one of them. errno is kept.
 *
 * The function takes locks and searches all magazines of the cache, which is slow. With SY_CHECKED
 * or SY_HANDLES it is quick and always exact. Without these flags there is one exception: while
 * another thread moves a magazine (because it allocates from this cache, frees to it, or begins or
 * ends an epoch), a free object in that magazine is taken for a live one.
 *
 * Returns true if it freed the object, else false.
 *
 * A pointer from a plug-in may be wrong:
 *
 *     if (!sy_cache_try_free(orders, pointer)) fprintf(stderr, "%p: no live order\n", pointer);
 */
SY_API bool sy_cache_try_free(sy_cache *cache, void *object);

/**
 * Allocates up to `count` objects and writes their addresses to the front of `objects`.
 *
 * Returns how many objects it allocated. If fewer than `count`, errno says why, as for
 * sy_cache_alloc.
 *
 * Errors:
 *     ENOMEM    no memory, or the limit is reached
 *     EPERM     the cache has SY_MOVABLE, and the thread is in no read guard (handle.h)
 */
SY_API size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count);

/** Frees `count` objects. A NULL among them is skipped. */
SY_API void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count);

/**
 * Reserves memory for `count` objects more than are live. The next `count` allocations then succeed
 * without a call of the operating system, whichever threads make them, also threads that start
 * later. The memory is populated: its pages are resident.
 *
 * To keep this promise, the cache also holds slabs for the magazines of all threads, and adds some
 * for each thread that starts to use the cache later. If there is no memory for these, such a
 * thread works without magazines until the `count` allocations were made. The promise does not
 * cover two cases: a limit may refuse an object because free objects wait in other threads'
 * magazines (sy_cache_config.limit), and a constructor may refuse an object.
 *
 * A later trim ends the promise and releases the unused part. Memory pressure does not end it.
 *
 * Returns 0, or -1 with errno. On failure the memory that was reserved until then stays.
 *
 * Errors:
 *     ENOMEM    no memory
 *
 * Before a phase in which no allocation may wait for the system:
 *
 *     if (sy_cache_reserve(orders, 100000) != 0) perror("memory for 100,000 orders");
 */
SY_API int sy_cache_reserve(sy_cache *cache, size_t count);

/**
 * Reserves objects for the next `count` allocations of the calling thread, as sy_cache_reserve
 * does. These allocations also take no lock and call no function of yours, because the objects are
 * in the thread's magazines already. They stay there until a trim, the close of an epoch, or an
 * allocation that reaches a limit takes them.
 *
 * At most two magazines of objects can be reserved (sy_cache_stats.magazine_items each); with
 * SY_EPOCHS one magazine, until the thread begins or ends an epoch.
 *
 * Returns 0, or -1 with errno.
 *
 * Errors:
 *     EINVAL    `count` is more than can be reserved
 *     ENOMEM    no memory
 *
 * Two objects that are needed together, or not at all:
 *
 *     if (sy_thread_reserve(orders, 2) == 0) {
 *         struct order *buy = sy_cache_alloc(orders);    cannot fail
 *         struct order *sell = sy_cache_alloc(orders);   nor can this
 *         ...
 *     }
 */
SY_API int sy_thread_reserve(sy_cache *cache, size_t count);

/**
 * Gives free memory of the cache back to the operating system, page by page, also in slabs with
 * live objects. Free objects in a quarantine, and in the magazines of idle (sy_thread_idle) and
 * ended threads, are included. Free objects in the magazines of other running threads leave these
 * magazines when the thread next exchanges a magazine; a later trim then returns their memory.
 *
 * Returns the number of bytes.
 */
SY_API size_t sy_cache_trim(sy_cache *cache);

/**
 * Counts the live objects. The number is exact while no other thread uses the cache or returns
 * memory (slabyard/reclaim.h); else it is a snapshot.
 *
 * Returns the number of live objects.
 */
SY_API size_t sy_cache_in_use(const sy_cache *cache);

/**
 * Tells how far apart objects lie.
 *
 * Returns the bytes from one object to the next: the size rounded up to the alignment and to a
 * multiple of 4, at least 8. In a cache with red zones, which lie between the objects: the size.
 *
 *     size_t bytes = 1000000 * sy_cache_slot_size(orders);   for a million orders
 */
SY_API size_t sy_cache_slot_size(const sy_cache *cache);

/* --- The inline fast path ------------------------------------------------------------------- */

/* The part of a cache that the inline functions read. */
struct sy_cache_head {
    uintptr_t reserved[40 / sizeof(uintptr_t)];
    size_t loaded_offset; /* bytes from sy_abi_1 to this cache's loaded slot */
    uintptr_t reserved_too[24 / sizeof(uintptr_t) - 1];
};

SY_API void *sy_cache_alloc_slow(sy_cache *cache);
SY_API void sy_cache_free_slow(sy_cache *cache, void *object);
SY_API bool sy_cache_may_free_slow(sy_cache *cache, const void *object);

static inline sy_loaded_slot *sy_cache_loaded(sy_cache *cache) {
    const struct sy_cache_head *head = SY_AS(struct sy_cache_head *, cache);
    return SY_AS(sy_loaded_slot *, SY_AS(char *, sy_abi_1) + head->loaded_offset);
}

static inline void *sy_cache_alloc_inline(sy_cache *cache) {
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return SY_AS(void *, object);
    return sy_cache_alloc_slow(cache);
}

static inline void sy_cache_free_inline(sy_cache *cache, void *object) {
    if (!object || SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache), SY_AS(uintptr_t, object))))
        return;
    sy_cache_free_slow(cache, object);
}

static inline bool sy_cache_may_free_inline(sy_cache *cache, const void *object) {
    if (SY_LIKELY(sy_loaded_may_push_once(sy_cache_loaded(cache), SY_AS(uintptr_t, object))))
        return true;
    return sy_cache_may_free_slow(cache, object);
}

/**
 * Allocates an object of the cache's size and alignment. Its content is undefined. If the cache has
 * a constructor, the content is that of a constructed object, or what it was at the object's last
 * free.
 *
 * Returns the object, or NULL with errno; if the constructor failed, the errno that it left.
 *
 * Errors:
 *     ENOMEM    no memory, or the limit is reached
 *     EPERM     the cache has SY_MOVABLE, and the thread is in no read guard (handle.h)
 */
#ifdef SY_NO_INLINE
SY_API void *sy_cache_alloc(sy_cache *cache);
#else
static inline void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }
#endif

/** Frees an object of this cache. NULL is allowed and does nothing. errno is kept. */
#ifdef SY_NO_INLINE
SY_API void sy_cache_free(sy_cache *cache, void *object);
#else
static inline void sy_cache_free(sy_cache *cache, void *object) {
    sy_cache_free_inline(cache, object);
}
#endif

/**
 * For languages with destructors, which end an object before its memory is freed: whether
 * sy_cache_free would accept the object. Call it first, so that a second destructor does not run in
 * an object that was freed. NULL is accepted.
 *
 * Returns false after it has reported the fault, as sy_cache_free does; then neither destroy nor
 * free the object. A cache without checks knows only the object that the thread freed last.
 *
 *     struct session *ended = pointer;
 *     if (sy_cache_may_free(sessions, ended)) {
 *         close(ended->socket);
 *         sy_cache_free(sessions, ended);
 *     }
 */
#ifdef SY_NO_INLINE
SY_API bool sy_cache_may_free(sy_cache *cache, const void *object);
#else
static inline bool sy_cache_may_free(sy_cache *cache, const void *object) {
    return sy_cache_may_free_inline(cache, object);
}
#endif

SY_END_DECLS

#endif
