/*
 * slab.h: the object caches of magazine-slab, implemented by Slabyard's.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab -lslabyard
 *
 * In these points magazine-slab's document leaves a choice, or magazine-slab does not do what it
 * says. Here:
 *   - Constructors and destructors are called once for each object, before the object is first
 *     allocated and before its memory is released. With SLAB_POISON they are called at each
 *     allocation and free, because freed objects are filled.
 *   - SLAB_RED_ZONE and SLAB_POISON switch off everything that would hide mistakes, including
 *     magazines. Mistakes are reported with the cache's name (slabyard/fault.h), and the process
 *     ends unless a fault handler returns. With both flags, SLAB_DEBUG, freed objects are also kept
 *     back before they are used again (quarantine).
 *   - slab_cache_destroy with live objects writes a message to stderr, and leaves the objects and
 *     the cache as they are.
 *   - Slabs have colours whatever the size of the objects. Any alignment up to 2 MiB is kept
 *     exactly all the same. The number of caches is limited only by SY_CACHES_MAX.
 *   - struct slab_cache has the fields below, for reading. slab_cache_stats and slab_cache_shrink
 *     count the slabs; so do slab_alloc and slab_free from time to time, on their slow path. The
 *     numbers are those of the last count.
 *   - Objects are aligned to SLAB_ALIGN_DEFAULT, 8 bytes, as in magazine-slab. If their size is a
 *     multiple of 16 they are aligned to 16.
 *   - slab_kmalloc has classes closer than powers of two. It ends at 4096 bytes, as in
 *     magazine-slab (slabyard/heap.h has every size). As there, slab_kfree takes each size that
 *     rounds up to the same power of two as the size that was asked for. Another size is reported.
 *   - The macros below that describe how magazine-slab works (SLAB_MAX_OBJECTS, SLAB_MAG_SIZE and
 *     the like) have its values, for programs that size arrays by them. They say nothing of
 *     Slabyard, which chooses its sizes itself.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_SLAB_H
#define SLABYARD_COMPAT_MAGAZINE_SLAB_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifndef __cplusplus
#    include <stdatomic.h>
#endif

#include <slabyard/cache.h>
#include <slabyard/heap.h>
#include <slabyard/stats.h>

SY_BEGIN_DECLS

#define SLAB_RED_ZONE     0x01 /* finds writes beside an object */
#define SLAB_POISON       0x02 /* finds writes to a freed object */
#define SLAB_DEBUG        (SLAB_RED_ZONE | SLAB_POISON)
#define SLAB_NO_MAGAZINES 0x04 /* a freed object is returned to its slab at once */
#define SLAB_QUARANTINE   0x08 /* since 1.2: keeps freed objects back before they are reused */
#define SLAB_POOL_TAGS    0x10 /* since 1.2: for slab_alloc_tag */

#define SLAB_KMALLOC_MIN_SHIFT 3
#define SLAB_KMALLOC_MAX_SHIFT 12 /* 4096 bytes */
#define SLAB_KMALLOC_CLASSES   (SLAB_KMALLOC_MAX_SHIFT - SLAB_KMALLOC_MIN_SHIFT + 1)

#define SLAB_ALIGN_DEFAULT sizeof(void *) /* of objects, if slab_cache_create gets 0 */
#define SLAB_MIN_OBJ_SIZE  sizeof(void *) /* smaller objects take as much */
#define SLAB_CACHE_LINE    64             /* bytes between two colours */

/* How magazine-slab works; not used here. */
#define SLAB_PAGE_SIZE     4096
#define SLAB_PAGE_SHIFT    12
#define SLAB_MAX_OBJECTS   512 /* in a slab */
#define SLAB_MAG_SIZE      32  /* objects in a magazine */
#define SLAB_MAG_BATCH     16  /* objects that move between a magazine and slabs at a time */
#define SLAB_MAX_CPUS      256
#define SLAB_RED_ZONE_SIZE 8    /* bytes before and behind an object; here the option `redzone` */
#define SLAB_RED_MAGIC     0xBB /* each byte of a red zone; here they differ from run to run */
#define SLAB_POISON_FREE   0x6B /* each byte of a freed object; here 0xdeadbeefdeadbeef */
#define SLAB_POISON_ALLOC  0x5A /* each byte of a new object; here 0xbaddcafebaddcafe */

struct slab_cache {
    sy_cache *cache;
    uint32_t uncounted; /* slow paths until slabs are counted again */
    void (*ctor)(void *obj);
    void (*dtor)(void *obj);

    const char *name;
    size_t obj_size; /* bytes from one object to the next */
    size_t raw_size; /* bytes asked for */
    size_t align;
    uint32_t flags;
    size_t slab_size;
    uint16_t objs_per_slab;
    uint32_t nr_slabs, nr_partial, nr_free; /* at the last count */
};

/* Sets the numbers of slabs. Any thread. A thread that reads a field meanwhile gets the old number
 * or the new one. */
static inline void sy_magazine_slab_count(struct slab_cache *cache, const sy_cache_stats *stats) {
    __atomic_store_n(&cache->nr_slabs, (uint32_t)stats->slabs, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->nr_partial, (uint32_t)stats->partial, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->nr_free, (uint32_t)stats->empty, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->uncounted, 16 + (uint32_t)stats->slabs, __ATOMIC_RELAXED);
}

/* Called on each slow path. A count takes time in proportion to the number of slabs. So one count
 * is made for at least as many slow paths as there are slabs. */
static inline void sy_magazine_slab_count_at_times(struct slab_cache *cache) {
    uint32_t uncounted = __atomic_load_n(&cache->uncounted, __ATOMIC_RELAXED);
    sy_cache_stats stats;
    if (uncounted > 0)
        __atomic_store_n(&cache->uncounted, uncounted - 1, __ATOMIC_RELAXED);
    else if (sy_cache_get_stats(cache->cache, &stats) == 0)
        sy_magazine_slab_count(cache, &stats);
}

static inline int sy_magazine_slab_construct(void *object, void *arg) {
    ((struct slab_cache *)arg)->ctor(object);
    return 0;
}

static inline void sy_magazine_slab_destruct(void *object, void *arg) {
    ((struct slab_cache *)arg)->dtor(object);
}

/* Sets the fields that describe how Slabyard laid out the cache. */
static inline void sy_magazine_slab_describe(struct slab_cache *cache) {
    sy_cache_stats stats;
    (void)sy_cache_get_stats(cache->cache, &stats);
    cache->obj_size = stats.slot_size;
    cache->align = stats.align;
    cache->slab_size = stats.slab_bytes;
    cache->objs_per_slab = (uint16_t)stats.slots_per_slab;
    sy_magazine_slab_count(cache, &stats);
}

/* Returns Slabyard's flags for these. If one is unknown, sy_cache_create refuses the result. */
static inline unsigned sy_magazine_slab_flags(uint32_t flags) {
    unsigned known = SLAB_DEBUG | SLAB_NO_MAGAZINES | SLAB_QUARANTINE | SLAB_POOL_TAGS;
    unsigned result = SY_COLOUR;
    if (flags & ~known) result = ~0u;
    if (flags & SLAB_RED_ZONE) result |= SY_REDZONE;
    if (flags & SLAB_POISON) result |= SY_POISON;
    if (flags & SLAB_QUARANTINE || (flags & SLAB_DEBUG) == SLAB_DEBUG) result |= SY_QUARANTINE;
    if (flags & SLAB_NO_MAGAZINES) result |= SY_CHECKED;
    return result;
}

/* Returns the alignment of objects for which the program asks for none. */
static inline size_t sy_magazine_slab_align(size_t size) {
    return size % 16 ? SLAB_ALIGN_DEFAULT : 16;
}

/* As slab_cache_create, with objects in `memory` (NULL: the operating system's). */
static inline struct slab_cache *sy_magazine_slab_create(const char *name, size_t size,
                                                         size_t align, uint32_t flags,
                                                         void (*ctor)(void *), void (*dtor)(void *),
                                                         struct sy_memory *memory) {
    struct slab_cache *cache = (struct slab_cache *)sy_malloc(sizeof *cache);
    sy_cache_config config;
    if (!cache) return NULL;
    memset(&config, 0, sizeof config);
    config.name = name;
    config.size = size;
    config.align = align ? align : sy_magazine_slab_align(size);
    config.construct = ctor ? sy_magazine_slab_construct : NULL;
    config.destruct = dtor ? sy_magazine_slab_destruct : NULL;
    config.arg = cache;
    config.flags = sy_magazine_slab_flags(flags);
    config.memory = memory;
    cache->ctor = ctor;
    cache->dtor = dtor;
    cache->cache = sy_cache_create(&config);
    if (!cache->cache) {
        sy_free(cache);
        return NULL;
    }
    cache->name = name;
    cache->raw_size = size;
    cache->flags = flags;
    sy_magazine_slab_describe(cache);
    return cache;
}

/* Creates a cache of objects of `size` bytes at `align` (0: SLAB_ALIGN_DEFAULT, or 16 if the size
 * is a multiple of 16). The caller owns it until slab_cache_destroy. Returns NULL with errno EINVAL
 * (also for an unknown flag) or ENOMEM. */
static inline struct slab_cache *slab_cache_create(const char *name, size_t size, size_t align,
                                                   uint32_t flags, void (*ctor)(void *),
                                                   void (*dtor)(void *)) {
    return sy_magazine_slab_create(name, size, align, flags, ctor, dtor, NULL);
}

/* Destroys a cache without live objects. No other thread may be using it. NULL is allowed and does
 * nothing. */
static inline void slab_cache_destroy(struct slab_cache *cache) {
    if (!cache) return;
    if (sy_cache_destroy(cache->cache) != 0) {
        fprintf(stderr, "slab: cache destroyed with %zu live objects: they stay\n",
                sy_cache_in_use(cache->cache));
        return;
    }
    cache->cache = NULL; /* a use of a destroyed cache does not reach the next cache's objects */
    sy_free(cache);
}

/* The slow paths of slab_alloc and slab_free: the thread's magazine is empty or full, or the cache
 * uses none. They are never inlined, so that the fast paths need no stack. */
static SY_COLD __attribute__((unused)) void *sy_magazine_slab_alloc_slow(struct slab_cache *cache) {
    void *object = sy_cache_alloc(cache->cache);
    sy_magazine_slab_count_at_times(cache);
    return object;
}

static SY_COLD __attribute__((unused)) void sy_magazine_slab_free_slow(struct slab_cache *cache,
                                                                       void *obj) {
    sy_cache_free(cache->cache, obj);
    sy_magazine_slab_count_at_times(cache);
}

/* Allocates an object. Its content is undefined; with a constructor, it is as constructed, or as it
 * was freed. Any thread. Returns NULL with ENOMEM, and NULL if `cache` is NULL. */
static inline void *slab_alloc(struct slab_cache *cache) {
    if (!cache) return NULL;
#ifndef SY_NO_INLINE
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache->cache), &object))) return (void *)object;
#endif
    return sy_magazine_slab_alloc_slow(cache);
}

/* Frees an object. Either argument may be NULL; the function then does nothing. Any thread. */
static inline void slab_free(struct slab_cache *cache, void *obj) {
    if (!cache || !obj) return;
#ifndef SY_NO_INLINE
    if (SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache->cache), (uintptr_t)obj))) return;
#endif
    sy_magazine_slab_free_slow(cache, obj);
}

/* Returns free memory to the operating system. Returns the number of slabs that were released as a
 * whole; 0 for NULL. */
static inline uint32_t slab_cache_shrink(struct slab_cache *cache) {
    sy_cache_stats before, after;
    if (!cache || sy_cache_get_stats(cache->cache, &before) != 0) return 0;
    sy_cache_trim(cache->cache);
    (void)sy_cache_get_stats(cache->cache, &after);
    sy_magazine_slab_count(cache, &after);
    return (uint32_t)(after.slabs_released - before.slabs_released);
}

/* Writes the cache's statistics to stderr and counts its slabs. NULL is allowed and does
 * nothing. */
static inline void slab_cache_stats(const struct slab_cache *cache) {
    sy_cache_stats stats;
    if (!cache || sy_cache_get_stats(cache->cache, &stats) != 0) return;
    sy_magazine_slab_count((struct slab_cache *)(uintptr_t)cache, &stats);
    fprintf(stderr,
            "cache %s: objects of %zu bytes: %zu live, %zu free in magazines, %zu free in slabs; "
            "%zu slabs of %zu bytes: %zu full, %zu partial, %zu empty\n",
            stats.name, stats.object_size, stats.in_use, stats.in_depot + stats.in_loaded,
            stats.free, stats.slabs, stats.slab_bytes, stats.full, stats.partial, stats.empty);
}

/* Does nothing: the first cache needs no preparation. */
static inline void slab_system_init(void) {}

/* Returns free memory to the operating system. Call it after the last cache was destroyed. */
static inline void slab_system_fini(void) { sy_trim(); }

/* ---- memory of any size ---- */

/* Allocates `size` bytes. Returns NULL with ENOMEM, also for more than 4096 bytes. */
static inline void *slab_kmalloc(size_t size) {
    if (size <= (size_t)1 << SLAB_KMALLOC_MAX_SHIFT) return sy_malloc(size);
    errno = ENOMEM;
    return NULL;
}

/* Returns true if both sizes round up to the same power of two, which is the class that they have
 * in magazine-slab. All sizes up to 8 have one class. */
static inline bool sy_magazine_slab_same_class(size_t size, size_t other) {
    size_t least = (size_t)1 << SLAB_KMALLOC_MIN_SHIFT;
    size_t smaller = size < other ? size : other, larger = size < other ? other : size;
    if (smaller < least) smaller = least;
    if (larger <= smaller) return true;
    return __builtin_clzll(smaller - 1) == __builtin_clzll(larger - 1);
}

/* Frees memory of slab_kmalloc; pass the size that was asked for, or one that rounds up to the same
 * power of two. NULL is allowed and does nothing. */
static inline void slab_kfree(void *ptr, size_t size) {
    size_t room;
#ifndef SY_NO_INLINE
    if (SY_LIKELY(size <= SY_CLASS_SIZE_MAX && sy_class_at_object(ptr) == sy_class_of(size)) &&
        SY_LIKELY(sy_loaded_push_once(&sy_abi_1[sy_class_of(size)], (uintptr_t)ptr)))
        return;
#endif
    room = sy_usable_size(ptr);
    if (room && sy_magazine_slab_same_class(size, room))
        sy_free(ptr);
    else
        sy_free_sized(ptr, size);
}

SY_END_DECLS

#endif
