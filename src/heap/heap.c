/*
 * heap.c: the malloc family: a size comes in, a class's cache or a span answers.
 *
 *     sy_malloc(size) -> class -> this thread's loaded slot for it     (the fast path)
 *                              -> sy_cache_alloc_slow of the class     (magazines, slabs)
 *                     -> sy_limit_take_span                            (more than 128 KiB)
 *     sy_free(p)      -> class map -> loaded slot | cache | span | a fault
 *
 * Below: cache/, chunk/.
 */
#include <slabyard/heap.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cache/cache.h"
#include "cache/limit.h"
#include "heap/classes.h"
#include "keep/reclaim.h"
#include "keep/start.h"
#include "watch/fault.h"

static sy_cache classes[SY_CLASSES];        /* opened at first use, for ever */
static _Atomic bool class_open[SY_CLASSES]; /* written under the lock of the start */

static void name_class(char *name, size_t size) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "heap-");
    sy_text_add_number(&text, size);
    memcpy(name, text.bytes, text.length);
    name[text.length] = 0;
}

static int open_locked(unsigned class_number) {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size = sy_class_size(class_number), align = size & (~size + 1);
    sy_cache_config config = {.name = name, .size = size};
    config.align = align < SY_UNIT_BYTES ? align : SY_UNIT_BYTES;
    name_class(name, size);
    return sy_cache_open(&classes[class_number], &config, class_number);
}

/* The cache of a class, or NULL with ENOMEM. */
static sy_cache *cache_of_class(unsigned class_number) {
    if (SY_LIKELY(atomic_load_explicit(&class_open[class_number], memory_order_acquire)))
        return &classes[class_number];
    if (sy_start() != 0) {
        sy_limit_no_memory();
        return NULL;
    }
    sy_start_lock();
    bool open = atomic_load_explicit(&class_open[class_number], memory_order_relaxed);
    if (!open && open_locked(class_number) == 0) {
        atomic_store_explicit(&class_open[class_number], true, memory_order_release);
        open = true;
    }
    sy_start_unlock();
    if (open) return &classes[class_number];
    sy_limit_no_memory();
    errno = ENOMEM;
    return NULL;
}

/* ---- spans ---- */

static void *span_alloc(size_t size, size_t align, size_t room, bool *clean) {
    if (sy_start() != 0) {
        sy_limit_no_memory();
        return NULL;
    }
    sy_slab *span = sy_limit_take_span(size, align, room, clean);
    if (!span) return NULL;
    span->first = span->start;
    int error = errno;
    sy_reclaim_turn();
    errno = error;
    return (void *)span->start;
}

/* The span that begins at `object`, or NULL. */
static sy_slab *span_of(const void *object) {
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab && !slab->owner && slab->first == (uintptr_t)object ? slab : NULL;
}

/* ---- allocation ---- */

static SY_COLD void *malloc_slow(size_t size) {
    bool clean;
    if (size > SY_CLASS_SIZE_MAX) return span_alloc(size, SY_UNIT_BYTES, 0, &clean);
    sy_cache *cache = cache_of_class(sy_class_of(size));
    return cache ? sy_cache_alloc_slow(cache) : NULL;
}

static inline void *alloc(size_t size) {
    unsigned class_number;
    if (SY_LIKELY(size <= SY_CLASS_TABLE_MAX))
        class_number = sy_class_table[(size + 7) / 8];
    else if (SY_LIKELY(size <= SY_CLASS_SIZE_MAX))
        class_number = sy_class_of(size);
    else
        return malloc_slow(size);
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(&sy_abi_1[class_number], &object))) return (void *)object;
    return malloc_slow(size);
}

void *sy_malloc(size_t size) { return alloc(size); }

void *sy_calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        sy_limit_no_memory();
        errno = ENOMEM;
        return NULL;
    }
    bool clean = false;
    void *object =
        bytes > SY_CLASS_SIZE_MAX ? span_alloc(bytes, SY_UNIT_BYTES, 0, &clean) : alloc(bytes);
    if (object && !clean) memset(object, 0, bytes);
    return object;
}

void *sy_aligned_alloc(size_t align, size_t size) {
    bool clean;
    if (!sy_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    if (align <= 8 || (align == 16 && size > 8)) return alloc(size);
    if (size <= SY_CLASS_SIZE_MAX && align <= SY_UNIT_BYTES) {
        unsigned class_number = sy_class_of(size > align ? size : align);
        while (class_number < SY_CLASSES && sy_class_size(class_number) % align) class_number++;
        if (class_number < SY_CLASSES) return alloc(sy_class_size(class_number));
    }
    return span_alloc(size ? size : 1, align, 0, &clean);
}

/* ---- free ---- */

static void raise_fault(sy_fault_kind kind, const void *object, const char *found) {
    sy_fault_raise(
        &(sy_fault){.kind = kind, .cache = "heap", .address = object, .found_cache = found});
}

/* Frees what is of no class: a span, or nothing that can be freed here. */
static void free_unclassed(void *object) {
    sy_slab *span = span_of(object);
    if (span) {
        span->first = 0; /* a second free finds no span */
        sy_quota_give_run(&sy_quota_process, span);
        sy_reclaim_turn();
        return;
    }
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? slab->owner : NULL;
    if (!slab)
        raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
    else if (cache)
        raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
    else
        raise_fault(slab->first ? SY_FAULT_MISALIGNED_POINTER : SY_FAULT_DOUBLE_FREE, object, NULL);
}

static SY_COLD void free_slow(void *object, unsigned class_number) {
    int error = errno;
    if (class_number && atomic_load_explicit(&class_open[class_number], memory_order_acquire))
        sy_cache_free_slow(&classes[class_number], object);
    else if (object)
        free_unclassed(object);
    errno = error;
}

static inline void free_to_class(void *object, unsigned class_number) {
    if (SY_UNLIKELY(!sy_loaded_push(&sy_abi_1[class_number], (uintptr_t)object)))
        free_slow(object, class_number);
}

void sy_free(void *object) { free_to_class(object, sy_class_at((uintptr_t)object)); }

void sy_free_sized(void *object, size_t size) {
    if (SY_LIKELY(object && size <= SY_CLASS_TABLE_MAX))
        free_to_class(object, sy_class_table[(size + 7) / 8]);
    else if (object && size <= SY_CLASS_SIZE_MAX)
        free_to_class(object, sy_class_of(size));
    else
        sy_free(object);
}

size_t sy_usable_size(const void *object) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (class_number) return sy_class_size(class_number);
    const sy_slab *span = object ? span_of(object) : NULL;
    return span ? span->bytes : 0;
}

/* ---- realloc ---- */

/* Whether the object can stay where it is at the new size: in its class exactly, so that a sized
 * free finds it there. */
static bool fits_in_place(void *object, size_t have, size_t size) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (class_number) return size <= SY_CLASS_SIZE_MAX && sy_class_of(size) == class_number;
    /* A large span may be longer than what is in it; what grows needs that again soon. */
    bool large = have > SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES;
    if (large && size <= have && size > have / 2) return true;
    return size > SY_CLASS_SIZE_MAX && sy_limit_resize_span(span_of(object), size);
}

/* What has grown beyond its space once will do so again: as much address space more. */
static void *alloc_growing(size_t size) {
    bool clean;
    return span_alloc(size, SY_UNIT_BYTES, size * 2, &clean);
}

/* Of a large span the memory is moved, if that can be: it takes as long for more, and the growing
 * part of the new one may have memory already. */
static void move_content(const void *from, void *to, size_t bytes) {
    const sy_slab *source = bytes > SY_CLASS_SIZE_MAX ? span_of(from) : NULL;
    const sy_slab *target = source ? span_of(to) : NULL;
    if (!target || !sy_run_move(source, target, sy_round_up(bytes, SY_UNIT_BYTES)))
        memcpy(to, from, bytes);
}

void *sy_realloc(void *object, size_t size) {
    if (!object) return alloc(size);
    size_t have = sy_usable_size(object);
    if (!have) {
        raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
        errno = EINVAL;
        return NULL;
    }
    if (fits_in_place(object, have, size)) return object;
    void *moved = size > have && size > SY_CLASS_SIZE_MAX ? alloc_growing(size) : alloc(size);
    if (!moved) return NULL;
    move_content(object, moved, have < size ? have : size);
    sy_free(object);
    return moved;
}
