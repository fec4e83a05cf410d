/*
 * xbase/slab.h: the pools of xslab, implemented by Slabyard's.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/xslab -lslabyard
 *
 * Include it as <xbase/slab.h>, as the document of xslab says, or as <x/base/slab.h>, as the
 * programs in xslab's repository do.
 *
 * xSlab is a pool for one thread: the slot that was freed last is always the next one allocated.
 * xSlabMt is an object cache: any thread allocates and frees, without a common lock, and a thread
 * that allocates gets the slot that it freed last.
 *
 * In these points the document of xslab leaves a choice or contradicts itself, or xslab does not do
 * what it says. Here:
 *   - Alignment: any power of two up to 2 MiB is kept exactly; others are refused (NULL, EINVAL).
 *     Slots are whole words: an object of 12 bytes at an alignment of 4 takes 16 bytes (12 in
 *     xslab), and xSlabSlotSize says so. All of a slot may be written.
 *   - Sizes that overflow are refused (NULL); in xslab they cause a division by zero later. A size
 *     that no system can supply is refused by xSlabMtAlloc at the latest.
 *   - The document says of xSlabMt both that it has a spinlock and that it has none. Here it has
 *     none, nor an atomic operation for each slot.
 *   - The document says that no slot may be live at xSlabReset, and also resets pools with live
 *     slots. Here slots may be live, and are invalid afterwards. The reset touches no slot, so it
 *     takes the same time for one as for millions.
 *   - xSlabInUse reads a number that xSlabAlloc and xSlabFree keep, as in xslab. Where the program
 *     is compiled with SY_NO_INLINE it counts the slots instead, since a free may then be refused.
 *   - xSlabMt returns free memory to the operating system also before it is destroyed, as long as
 *     threads take slow paths or a background thread runs (slabyard/reclaim.h). It chooses itself
 *     how much memory it takes at a time and ignores `chunk_bytes`.
 *   - Misuse is found with SLABYARD=check (slabyard/checks.h); for xSlab, compile with
 *     SY_NO_INLINE.
 */
#ifndef SLABYARD_COMPAT_XBASE_SLAB_H
#define SLABYARD_COMPAT_XBASE_SLAB_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "../x/base/base.h"

#include <slabyard/cache.h>
#include <slabyard/pool.h>

SY_BEGIN_DECLS

#define XSLAB_DEFAULT_ALIGN       SY_CAST(size_t, 16)
#define XSLAB_DEFAULT_CHUNK_BYTES SY_CAST(size_t, 64 * 1024)

typedef struct xSlab xSlab;     /* a sy_pool, whose word is the number of live slots */
typedef struct xSlabMt xSlabMt; /* a sy_cache */

/* Returns the bytes of a slot, all of which the program may use. Returns 0, which is refused, if
 * the size overflows. */
static inline size_t sy_xslab_slot_size(size_t size, size_t align) {
    size_t step = align > sizeof(void *) ? align : sizeof(void *);
    return (size + step - 1) / step * step;
}

/* ---- pools for one thread ---- */

/* Creates a pool with slots of `obj_size` bytes at `obj_align` (0: 16). It takes memory in chunks
 * of at least `chunk_bytes` (0: 64 KiB). The caller owns it until xSlabDestroy. Returns NULL with
 * errno EINVAL or ENOMEM. */
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

/* Destroys a pool with all its slots and releases all its memory. NULL is allowed and does
 * nothing. */
static inline void xSlabDestroy(xSlab *s) { sy_pool_destroy((sy_pool *)s); }

/* Allocates a slot with undefined content. Returns NULL if there is no memory, or if `s` is
 * NULL. */
static inline void *xSlabAlloc(xSlab *s) {
    void *slot = s ? sy_pool_alloc((sy_pool *)s) : NULL;
    if (SY_LIKELY(slot != NULL)) ++*sy_pool_word((sy_pool *)s);
    return slot;
}

/* Frees a slot. Either argument may be NULL; the function then does nothing. */
static inline void xSlabFree(xSlab *s, void *p) {
    const void *newest;
    if (!s || !p) return;
    newest = ((sy_pool *)s)->free;
    sy_pool_free((sy_pool *)s, p);
    if (SY_LIKELY(p != newest)) --*sy_pool_word((sy_pool *)s); /* else the free was refused */
}

/* Frees all slots, also live ones, and keeps all memory. NULL is allowed and does nothing. */
static inline void xSlabReset(xSlab *s) {
    if (!s) return;
    sy_pool_reset((sy_pool *)s);
    *sy_pool_word((sy_pool *)s) = 0;
}

/* Returns the number of live slots; 0 for NULL. A slot that was freed twice, unnoticed, counts
 * twice; the number is never below 0. */
static inline size_t xSlabInUse(const xSlab *s) {
    if (!s) return 0;
#ifdef SY_NO_INLINE
    return sy_pool_in_use((const sy_pool *)s);
#else
    uintptr_t live = *sy_pool_word((sy_pool *)s);
    return live <= PTRDIFF_MAX ? live : 0;
#endif
}

/* Returns the bytes of a slot: the size, rounded up to the alignment and to 8. All of them may be
 * written. Returns 0 for NULL. */
static inline size_t xSlabSlotSize(const xSlab *s) {
    return s ? sy_pool_slot_size((const sy_pool *)s) : 0;
}

/* ---- caches for any thread ---- */

/* The same functions for all threads. NULL is allowed as above. */
static inline xSlabMt *xSlabMtCreate(size_t obj_size, size_t obj_align, size_t chunk_bytes) {
    sy_cache_config config;
    (void)chunk_bytes;
    memset(&config, 0, sizeof config);
    config.align = obj_align ? obj_align : XSLAB_DEFAULT_ALIGN;
    config.size = sy_xslab_slot_size(obj_size, config.align);
    config.name = "xSlabMt";
    return (xSlabMt *)sy_cache_create(&config);
}

/* Destroys a cache with all its slots and releases all its memory. No other thread may be using it.
 * NULL is allowed and does nothing. */
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
