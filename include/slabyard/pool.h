/**
 * pool.h: objects of one size for one thread.
 *
 * A pool allocates slots of one size. A freed slot goes on top of a list that runs through the free
 * slots themselves. So the object that was freed last is the next one allocated, and is still in
 * the processor's cache. Slots that were never used are carved one by one from the front of
 * untouched memory. There is no lock, no lookup, and no metadata beside the objects.
 *
 * Threads: one thread at a time. A pool may move between threads if they synchronise. Different
 * pools share nothing. Do not call these functions in a signal handler.
 *
 * By default a pool finds one kind of misuse: if the object that was freed last is freed again, the
 * double free is reported at once to the fault handler (fault.h), unless SY_NO_DOUBLE_FREE_CHECK of
 * loaded.h is defined. Other misuse is not found. If other frees come between the two frees of an
 * object, the list becomes a circle, and one slot is allocated to two owners. A write to a freed
 * object overwrites the list. After such a double free sy_pool_in_use() still returns, and its
 * result lies between 0 and the number of slots ever allocated.
 *
 * With SY_CHECKED or another flag of checks.h, or with SLABYARD=check, a pool keeps its records
 * outside the objects and finds all of these mistakes. For this, its functions must be calls. In
 * code compiled with SY_NO_INLINE each free is checked, and with SY_POISON free objects are
 * verified once more when the process ends (option `exit-check`). In code with inline frees, damage
 * around an object is found when the pool is reset or destroyed, and a write to a free object is
 * never found. In a pool without checks, free slots cannot be verified.
 *
 * Memory: the pool takes address space in extents. Each extent is as large as all before it
 * together (1 GiB at most, unless one object needs more), so 8 GiB of objects take about twenty
 * mappings. The memory is returned when the pool is destroyed, or trimmed while no object is live.
 */
#ifndef SLABYARD_POOL_H
#define SLABYARD_POOL_H

#include <stdbool.h>

#include <slabyard/base.h>
#include <slabyard/checks.h>

SY_BEGIN_DECLS

/** Populate memory with pages before slots are carved from it, so that an allocation never waits
 * for a page. A bounded pool populates all its memory when it is created, an unbounded one each
 * chunk when it grows. */
#define SY_POOL_PREFAULT 1u

/** Ask the operating system for huge pages; chunks are then at least 2 MiB. If the system has no
 * huge pages, the pool uses normal pages. */
#define SY_POOL_HUGE 2u

/** The bytes of a pool's name that are kept. */
enum { SY_POOL_NAME_MAX = 31 }; /* bytes of the name that are kept */

/** The configuration of a pool. Every field but `size` may be zero. */
typedef struct sy_pool_config {
    size_t size;           /* bytes of an object, at least 1 */
    size_t align;          /* bytes: a power of two; 0: 16, or 8 for objects under 16 bytes */
    size_t chunk_bytes;    /* least growth in bytes, in whole pages; 0: 64 KiB. Unused if bounded */
    size_t capacity;       /* most objects at a time; their memory is taken at once; 0: unbounded */
    unsigned flags;        /* SY_POOL_..., SY_CHECKED and other flags of checks.h */
    const char *name;      /* for reports; copied. NULL: "pool" */
    uintptr_t reserved[3]; /* zero */
} sy_pool_config;

struct sy_pool_extent;

/** A pool. Its fields are not for callers: the inline functions need them. The fields that the
 * inline functions use are in the second half of a cache line. No object whose size is a multiple
 * of 64 bytes begins there. The processor compares addresses first by their low 12 bits, so it does
 * not mistake a write to such an object for a write to these fields. */
typedef struct sy_pool {
    struct sy_pool_extent *extent; /* the extent that slots are carved from */
    size_t carved_before;          /* slots in the earlier extents */
    size_t capacity;               /* 0: unbounded */
    size_t chunk_bytes;
    size_t stride;        /* bytes from slot to slot */
    void *free;           /* the slot freed last; each holds the address of the next */
    unsigned char *limit; /* end of the last slot that can be carved without growing */
    unsigned char *bump;  /* the next slot to carve */
} sy_pool;

/**
 * Creates an empty pool. The caller owns it until sy_pool_destroy.
 *
 * Returns the pool, or NULL with errno.
 *
 * Errors:
 *     EINVAL    no config; size 0 or over half the address space; align not a power of two, or over
 *               half the address space; an unknown flag; a reserved field that is not zero
 *     ENOMEM    not enough memory, for `capacity` slots or for the pool itself
 */
SY_API sy_pool *sy_pool_create(const sy_pool_config *config);

/** Destroys a pool with all its objects and releases all its memory. It cannot fail, as
 * sy_cache_destroy_all and sy_heap_destroy_all cannot. NULL is allowed and does nothing. */
SY_API void sy_pool_destroy(sy_pool *pool);

/** Frees every object and keeps all memory. The function touches no slot, so it takes the same time
 * for one object as for millions. The next allocations begin again at the first slot, in order of
 * address. */
SY_API void sy_pool_reset(sy_pool *pool) SY_NONNULL(1);

/**
 * Gives the pool's memory back to the operating system if no object is live, except the pages that
 * hold the pool itself. If an object is live, it does nothing. It takes a load for each free slot,
 * as sy_pool_in_use does. The next allocations begin again at the first slot, in order of address.
 *
 * Returns the number of bytes, including pages that were never touched. Always 0 for a pool with
 * checks or with SY_POOL_PREFAULT.
 *
 * Between two games, no object is live:
 *
 *     sy_pool_reset(pool);
 *     printf("%zu KiB returned to the system\n", sy_pool_trim(pool) >> 10);
 */
SY_API size_t sy_pool_trim(sy_pool *pool) SY_NONNULL(1);

/**
 * Counts the live objects. For this it walks through the list of free slots, with one load for
 * each.
 *
 * Returns the exact number of live objects.
 *
 *     printf("%zu objects live\n", sy_pool_in_use(pool));
 */
SY_API SY_MUST_USE size_t sy_pool_in_use(const sy_pool *pool) SY_NONNULL(1);

/**
 * Tells how far apart slots lie.
 *
 * Returns the bytes from one slot to the next: the size rounded up to the alignment, at least 8.
 * All of them may be used. In a pool with checks: the bytes that may be used.
 *
 *     sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = 20});
 *     size_t bytes = pool ? sy_pool_slot_size(pool) : 0;   32: a multiple of the alignment, 16
 */
SY_API SY_MUST_USE size_t sy_pool_slot_size(const sy_pool *pool) SY_NONNULL(1);

/**
 * Tells how many objects fit.
 *
 * Returns the capacity of a bounded pool. For an unbounded one: the number of objects that it can
 * hold before it grows again, live objects included.
 *
 *     if (sy_pool_in_use(pool) == sy_pool_capacity(pool)) fprintf(stderr, "the pool is full\n");
 */
SY_API SY_MUST_USE size_t sy_pool_capacity(const sy_pool *pool) SY_NONNULL(1);

/**
 * Finds the word in the pool that is for your own use: 0 at first. No other function changes it.
 *
 * Returns the address of the word.
 *
 *     *sy_pool_word(pool) = (uintptr_t)session;   the session whose objects these are
 *     ...
 *     struct session *owner = (struct session *)*sy_pool_word(pool);
 */
static inline uintptr_t *sy_pool_word(sy_pool *pool) {
    return SY_CAST(uintptr_t *, SY_CAST(void *, pool + 1));
}

/* Not for callers: the slow path of sy_pool_alloc. The free list is empty and no slot is left to
 * carve, so the pool grows, and one slot is carved. */
SY_API SY_COLD void *SY_ABI_NAME(sy_pool_grow)(sy_pool *pool) SY_NONNULL(1);

/* Not for callers: the slow path of sy_pool_free for the object that was freed last. It reports the
 * double free. */
SY_API SY_COLD void SY_ABI_NAME(sy_pool_freed_twice)(sy_pool *pool, void *object) SY_NONNULL(1);

/* Not for callers: the slow path of sy_pool_may_free, for checked pools, whose `extent` is NULL,
 * and for the object that was freed last. */
SY_API SY_COLD bool SY_ABI_NAME(sy_pool_may_free_slow)(sy_pool *pool, void *object) SY_NONNULL(1);

/* Not for callers: sy_pool_free for checked pools. */
SY_API SY_COLD void SY_ABI_NAME(sy_pool_free_slow)(sy_pool *pool, void *object) SY_NONNULL(1);

/* The first word of a free slot. It may be read as this type, whatever type the object had. */
typedef void *sy_pool_link __attribute__((may_alias));

static inline void *sy_pool_alloc_inline(sy_pool *pool) {
    void *object = pool->free;
    if (SY_LIKELY(object != NULL)) {
        pool->free = *SY_CAST(sy_pool_link *, object);
        return object;
    }
    unsigned char *fresh = pool->bump;
    if (SY_LIKELY(fresh != pool->limit)) {
        pool->bump = fresh + pool->stride;
        return fresh;
    }
    return SY_ABI_NAME(sy_pool_grow)(pool);
}

static inline void sy_pool_free_inline(sy_pool *pool, void *object) {
    void *newest = pool->free;
    if (SY_UNLIKELY(object == NULL)) return;
#ifndef SY_NO_DOUBLE_FREE_CHECK /* see loaded.h */
    if (SY_UNLIKELY(object == newest)) {
        SY_ABI_NAME(sy_pool_freed_twice)(pool, object);
        return;
    }
#endif
    *SY_CAST(sy_pool_link *, object) = newest;
    pool->free = object;
}

static inline bool sy_pool_may_free_inline(sy_pool *pool, void *object) {
#ifndef SY_NO_DOUBLE_FREE_CHECK
    if (SY_LIKELY(pool->extent != NULL && pool->free != object)) return true;
#else
    if (SY_LIKELY(pool->extent != NULL)) return true;
#endif
    return SY_ABI_NAME(sy_pool_may_free_slow)(pool, object);
}

/* As sy_pool_free_inline, but a checked pool checks the free. */
static inline void sy_pool_free_checked_inline(sy_pool *pool, void *object) {
    if (SY_UNLIKELY(pool->extent == NULL))
        SY_ABI_NAME(sy_pool_free_slow)(pool, object);
    else
        sy_pool_free_inline(pool, object);
}

#if defined(SY_NO_INLINE)
/**
 * Allocates an object with undefined content.
 *
 * Returns the object, or NULL with errno; the pool is then unchanged.
 *
 * Errors:
 *     ENOMEM    the pool is bounded and full, or there is no memory
 */
SY_API SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) SY_NONNULL(1);

/** Frees an object of this pool. NULL is allowed and does nothing. */
SY_API void sy_pool_free(sy_pool *pool, void *object) SY_NONNULL(1);

/**
 * For languages with destructors, which end an object before its memory is freed: whether
 * sy_pool_free would accept the object (as sy_cache_may_free).
 *
 * Returns false after it has reported the fault; then neither destroy nor free the object. A pool
 * without checks knows only the object that was freed last.
 *
 *     if (sy_pool_may_free(pool, pointer)) sy_pool_free(pool, pointer);
 */
SY_API bool sy_pool_may_free(sy_pool *pool, void *object) SY_NONNULL(1);
#else
static inline SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) { return sy_pool_alloc_inline(pool); }
static inline void sy_pool_free(sy_pool *pool, void *object) { sy_pool_free_inline(pool, object); }
static inline bool sy_pool_may_free(sy_pool *pool, void *object) {
    return sy_pool_may_free_inline(pool, object);
}
#endif

SY_END_DECLS

#endif
