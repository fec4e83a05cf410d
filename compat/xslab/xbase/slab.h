/*
 * xbase/slab.h: the pools of xslab, over Slabyard's.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/xslab -lslabyard
 *
 * It is included as <xbase/slab.h>, as the document of xslab says, or as <x/base/slab.h>, as the
 * programs in its repository do.
 *
 * xSlab is a pool of one thread: the slot freed last is the next one given, exactly. xSlabMt is an
 * object cache: any thread allocates and frees, with no lock in common, and a thread is given again
 * what it freed last.
 *
 * Where the document of xslab left a choice, contradicts itself, or was not kept:
 *   - alignment: any power of two up to 2 MiB holds exactly; others are refused (NULL, EINVAL).
 *     Slots are whole words: an object of 12 bytes at an alignment of 4 takes 16 bytes, where it
 *     took 12, and xSlabSlotSize says so. All of a slot may be written;
 *   - sizes that overflow are refused (NULL), instead of a division by zero later; what no system
 *     has is refused by xSlabMtAlloc at the latest;
 *   - it says of xSlabMt that it has a spinlock, and that it has none: here there is none, nor an
 *     atomic operation for each slot;
 *   - it says that no slot may be live at xSlabReset, and resets pools with live ones: they may be,
 *     and are invalid after it. It touches no slot: it takes the same time for one as for millions;
 *   - xSlabInUse is exact, and counts the free slots for that: it is for tests and reports;
 *   - xSlabMt gives free memory back to the system before it is destroyed too (slabyard/reclaim.h),
 *     and chooses how much it takes at a time: `chunk_bytes` says nothing to it;
 *   - misuse is found with SLABYARD=check (slabyard/checks.h); for xSlab compile with SY_NO_INLINE.
 */
#ifndef SLABYARD_COMPAT_XBASE_SLAB_H
#define SLABYARD_COMPAT_XBASE_SLAB_H

#include <errno.h>
#include <string.h>

#include <slabyard/cache.h>
#include <slabyard/pool.h>

SY_BEGIN_DECLS

#define XSLAB_DEFAULT_ALIGN       SY_CAST(size_t, 16)
#define XSLAB_DEFAULT_CHUNK_BYTES SY_CAST(size_t, 64 * 1024)

typedef struct xSlab xSlab;     /* a sy_pool */
typedef struct xSlabMt xSlabMt; /* a sy_cache */

/* Bytes of a slot, all of which are the program's; 0, which is refused, if there are no so many. */
static inline size_t sy_xslab_slot_size(size_t size, size_t align) {
    size_t step = align > sizeof(void *) ? align : sizeof(void *);
    return (size + step - 1) / step * step;
}

/* ---- one thread ---- */

/* Slots of `obj_size` bytes at `obj_align` (0: 16), from chunks of `chunk_bytes` (0: 64 KiB) and
 * more. NULL with errno EINVAL or ENOMEM. */
static inline xSlab *xSlabCreate(size_t obj_size, size_t obj_align, size_t chunk_bytes) {
    sy_pool_config config;
    if (obj_align > SY_CACHE_ALIGN_MAX) {
        errno = EINVAL;
        return NULL;
    }
    memset(&config, 0, sizeof config);
    config.align = obj_align ? obj_align : XSLAB_DEFAULT_ALIGN;
    config.size = sy_xslab_slot_size(obj_size, config.align);
    config.chunk_bytes = chunk_bytes ? chunk_bytes : XSLAB_DEFAULT_CHUNK_BYTES;
    config.name = "xSlab";
    return (xSlab *)sy_pool_create(&config);
}

/* All slots and all memory go. NULL is a no-op. */
static inline void xSlabDestroy(xSlab *s) { sy_pool_destroy((sy_pool *)s); }

/* A slot, its content undefined; NULL: no memory, or no pool. */
static inline void *xSlabAlloc(xSlab *s) { return s ? sy_pool_alloc((sy_pool *)s) : NULL; }

/* Gives a slot back; NULL is a no-op, for either. */
static inline void xSlabFree(xSlab *s, void *p) {
    if (s) sy_pool_free((sy_pool *)s, p);
}

/* All slots are free again, those in use too; all memory stays. NULL is a no-op. */
static inline void xSlabReset(xSlab *s) {
    if (s) sy_pool_reset((sy_pool *)s);
}

/* Slots given and not freed; 0 for NULL. */
static inline size_t xSlabInUse(const xSlab *s) {
    return s ? sy_pool_in_use((const sy_pool *)s) : 0;
}

/* Bytes of a slot: the size, rounded up to the alignment and to 8. All of them may be written. 0
 * for NULL. */
static inline size_t xSlabSlotSize(const xSlab *s) {
    return s ? sy_pool_slot_size((const sy_pool *)s) : 0;
}

/* ---- any thread ---- */

/* The same, for all threads; NULL does the same, too. */
static inline xSlabMt *xSlabMtCreate(size_t obj_size, size_t obj_align, size_t chunk_bytes) {
    sy_cache_config config;
    (void)chunk_bytes;
    memset(&config, 0, sizeof config);
    config.align = obj_align ? obj_align : XSLAB_DEFAULT_ALIGN;
    config.size = sy_xslab_slot_size(obj_size, config.align);
    config.name = "xSlabMt";
    return (xSlabMt *)sy_cache_create(&config);
}

/* All slots and all memory go; nobody uses it any more. NULL is a no-op. */
static inline void xSlabMtDestroy(xSlabMt *s) {
    if (!s) return;
    sy_cache_destroy_all((sy_cache *)s);
    sy_trim();
}

static inline void *xSlabMtAlloc(xSlabMt *s) { return s ? sy_cache_alloc((sy_cache *)s) : NULL; }

static inline void xSlabMtFree(xSlabMt *s, void *p) {
    if (s) sy_cache_free((sy_cache *)s, p);
}

static inline size_t xSlabMtSlotSize(const xSlabMt *s) {
    return s ? sy_cache_slot_size((const sy_cache *)s) : 0;
}

SY_END_DECLS

#endif
