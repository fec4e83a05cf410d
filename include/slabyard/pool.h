/*
 * pool.h: objects of one size for one thread.
 *
 * A pool hands out slots of one size. A freed slot goes on top of a list that runs through the free
 * slots themselves, so the object just freed is the next one given, still in the processor's cache.
 * Slots that were never used are carved one by one from the front of memory that nothing has
 * touched yet. There is no lock, no lookup, and nothing beside the objects.
 *
 * Thread rule: one thread at a time; a pool may move between threads if they synchronise. Different
 * pools have nothing in common. No function here is async-signal-safe.
 *
 * What a pool finds of misuse by default: a free of the object that was freed last is reported as a
 * double free, to the fault handler (fault.h), at once (but see SY_NO_DOUBLE_FREE_CHECK in
 * loaded.h). Freeing an object twice with frees of others between makes the list a circle, and one
 * slot is then given to two owners; writing to a freed object overwrites the list. After such a
 * double free sy_pool_in_use() still ends, and its answer lies between 0 and the slots ever given.
 *
 * With SY_CHECKED and its kin (checks.h), or SLABYARD=check, a pool keeps its books outside the
 * objects and sees all of these. Its functions must be calls for this: in code compiled with
 * SY_NO_INLINE each free is checked, and with SY_POISON free objects are verified once more when
 * the process ends (option `exit-check`). Where frees were compiled in, damage around an object is
 * found when the pool is reset or destroyed, and a write to a free object never. A pool without
 * checks keeps nothing with which a free slot could be verified.
 *
 * Memory: address space is taken in extents of which each is as large as all before it together
 * (1 GiB at most, unless one object needs more), so 8 GiB of objects take some twenty mappings.
 * It goes back when the pool is destroyed, or trimmed while no object of it is out.
 */
#ifndef SLABYARD_POOL_H
#define SLABYARD_POOL_H

#include <slabyard/base.h>
#include <slabyard/checks.h>

SY_BEGIN_DECLS

/* Back memory with pages before slots are carved from it, so that an allocation never waits for a
 * page: all of a bounded pool when it is created, each chunk of an unbounded one when it grows. */
#define SY_POOL_PREFAULT 1u

/* Ask the system for huge pages; chunks are then at least 2 MiB. Advice: no error where there are
 * none. */
#define SY_POOL_HUGE 2u

enum { SY_POOL_NAME_MAX = 31 }; /* bytes of the name that are kept */

/* All zero but `size` is a sensible pool. */
typedef struct sy_pool_config {
    size_t size;           /* bytes of an object, at least 1 */
    size_t align;          /* a power of two; 0: 16, or 8 for objects under 16 bytes */
    size_t chunk_bytes;    /* least growth, rounded up to pages; 0: 64 KiB. No use when bounded */
    size_t capacity;       /* most objects at a time, all their memory taken now; 0: unbounded */
    unsigned flags;        /* SY_POOL_..., and SY_CHECKED and its kin */
    const char *name;      /* copied; for reports. NULL: "pool" */
    uintptr_t reserved[3]; /* zero */
} sy_pool_config;

struct sy_pool_extent;

/* Not for callers: it is here because the inline functions below know it. The words that they use
 * stand in the second half of a cache line, where no object of 64 bytes or a multiple begins, so
 * that a write to an object is not mistaken for a write to them (addresses are first compared by
 * their low 12 bits). */
typedef struct sy_pool {
    struct sy_pool_extent *extent; /* the one that is being carved */
    size_t carved_before;          /* slots in the extents before it */
    size_t capacity;               /* 0: unbounded */
    size_t chunk_bytes;
    size_t stride;        /* bytes from slot to slot */
    void *free;           /* the slot freed last; each holds the address of the next */
    unsigned char *limit; /* end of the last slot that can be carved without growing */
    unsigned char *bump;  /* the next slot to carve */
} sy_pool;

/* A new, empty pool. NULL and errno:
 *   EINVAL  no config; size 0 or over half the address space; align not a power of two, or over
 *           half the address space; an unknown flag; a reserved field that is not zero;
 *   ENOMEM  capacity times slot size, or anything else, is more than there is. */
SY_API sy_pool *sy_pool_create(const sy_pool_config *config);

/* Every object and all memory of the pool go. NULL is a no-op. */
SY_API void sy_pool_destroy(sy_pool *pool);

/* Every object goes, all memory stays. Touches no slot: it takes the same time for one object as
 * for millions. The slots are given again from the first one on, in order of address. */
SY_API void sy_pool_reset(sy_pool *pool) SY_NONNULL(1);

/* Where no object is out, memory goes back to the system, all but the pages that hold the pool
 * itself; else nothing happens. Returns the bytes whose pages went, those never touched included.
 * Counts the free list, as sy_pool_in_use. 0 too for pools that check, or were backed beforehand
 * (SY_POOL_PREFAULT). The slots are given again from the first one on, in order of address. */
SY_API size_t sy_pool_trim(sy_pool *pool) SY_NONNULL(1);

/* Objects given and not freed, exact. Counts the free list: it takes a load for each free slot. */
SY_API SY_MUST_USE size_t sy_pool_in_use(const sy_pool *pool) SY_NONNULL(1);

/* Bytes from one slot to the next: the size rounded up to the alignment, at least 8. All of them
 * may be used. (Of a pool that checks: the bytes that may be used.) */
SY_API SY_MUST_USE size_t sy_pool_slot_size(const sy_pool *pool) SY_NONNULL(1);

/* Objects that fit: the capacity of a bounded pool; of an unbounded one, how many it can hold,
 * those given included, before it grows again. */
SY_API SY_MUST_USE size_t sy_pool_capacity(const sy_pool *pool) SY_NONNULL(1);

/* A word of the caller's that goes with the pool: 0 at first, which the pool never changes. */
static inline uintptr_t *sy_pool_word(sy_pool *pool) {
    return SY_CAST(uintptr_t *, SY_CAST(void *, pool + 1));
}

/* What sy_pool_alloc does when the free list is empty and no slot is left to carve: grow, and carve
 * one. Not for callers. */
SY_API SY_COLD void *SY_ABI_NAME(sy_pool_grow)(sy_pool *pool) SY_NONNULL(1);

/* What sy_pool_free does with the object that was freed last: reports the double free. Not for
 * callers. */
SY_API SY_COLD void SY_ABI_NAME(sy_pool_freed_twice)(sy_pool *pool, void *object) SY_NONNULL(1);

/* A free slot's first word; whatever type the caller kept there, it may be read as this. */
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

/*
 * sy_pool_alloc: an object, its content undefined. NULL and ENOMEM: the pool is bounded and full,
 * or there is no memory; the pool is as it was.
 *
 * sy_pool_free: gives back an object of this pool. NULL is a no-op.
 */
#if defined(SY_NO_INLINE)
SY_API SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) SY_NONNULL(1);
SY_API void sy_pool_free(sy_pool *pool, void *object) SY_NONNULL(1);
#else
static inline SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) { return sy_pool_alloc_inline(pool); }
static inline void sy_pool_free(sy_pool *pool, void *object) { sy_pool_free_inline(pool, object); }
#endif

SY_END_DECLS

#endif
