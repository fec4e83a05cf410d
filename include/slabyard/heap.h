/**
 * slabyard/heap.h: memory of any size: the malloc family over size-class caches and large spans.
 *
 * Sizes up to 128 KiB come from size classes; above 128 bytes, rounding up to a class wastes at
 * most an eighth. Larger sizes are spans of 64 KiB units. Functions that fail return NULL and set
 * errno.
 *
 * Threads: any thread may call these functions, and any thread may free memory that another
 * allocated. Do not call them in a signal handler.
 */
#ifndef SLABYARD_HEAP_H
#define SLABYARD_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include <slabyard/loaded.h>

SY_BEGIN_DECLS

/**
 * Allocates `size` bytes, aligned to 16 (to 8 for sizes up to 8). The content is undefined. Size 0
 * gives a unique pointer. The caller frees the memory with sy_free or sy_free_sized. The allocation
 * is inlined if the compiler knows the size.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 */
SY_API void *sy_malloc(size_t size);

/**
 * Allocates `count` times `size` bytes, all zero.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory, or the product overflows
 *
 *     long *counts = sy_calloc(1024, sizeof *counts);   1,024 times 0
 *     ...
 *     sy_free(counts);
 */
SY_API void *sy_calloc(size_t count, size_t size);

/**
 * Allocates `size` bytes, all zero.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     ENOMEM    no memory
 *
 *     struct session *fresh = sy_zalloc(sizeof *fresh);   all bytes are 0
 *     ...
 *     sy_free(fresh);
 */
SY_API void *sy_zalloc(size_t size);

/**
 * Changes the size of an object to `size` bytes. The first min(old, new) bytes keep their content.
 * NULL as `object` acts as sy_malloc. With size 0 a minimal object stays allocated. An address that
 * is no object of the heap is reported to the fault handler (slabyard/fault.h).
 *
 * Returns the object's address, which may be new; the old pointer is then invalid. On failure NULL
 * with errno, and the old object stays as it is.
 *
 * Errors:
 *     EINVAL    the address is no object of the heap, and the fault handler returned
 *     ENOMEM    no memory
 */
SY_API void *sy_realloc(void *object, size_t size);

/**
 * Changes the size of an object to `count` times `size` bytes, as sy_realloc.
 *
 * Returns the object's address, which may be new. On failure NULL with errno, and the old object
 * stays as it is.
 *
 * Errors:
 *     EINVAL    the address is no object of the heap, and the fault handler returned
 *     ENOMEM    no memory, or the product overflows
 *
 *     struct order *list = sy_calloc(100, sizeof *list);
 *     struct order *longer = sy_reallocarray(list, 200, sizeof *list);
 *     if (longer) list = longer;
 */
SY_API void *sy_reallocarray(void *object, size_t count, size_t size);

/**
 * Changes the size of an object to `size` bytes if it can stay where it is; else does nothing. An
 * object of up to 128 KiB can stay only if its size class is that of the new size. A larger one can
 * usually shrink to any size above 128 KiB, and grow if the memory behind it is free and no limit
 * (slabyard/limit.h) is reached. With checks (slabyard/checks.h) only the same size succeeds. An
 * address that is no object of the heap is reported to the fault handler (slabyard/fault.h). errno
 * is kept.
 *
 * Returns true if the object has the new size: `size` bytes may be used, and sy_free_sized takes
 * this size. False if the object is as it was; also for NULL.
 *
 * A buffer with pointers into it grows without moving, or not at all:
 *
 *     if (sy_expand(buffer, 2 * room)) room *= 2;
 */
SY_API bool sy_expand(void *object, size_t size);

/**
 * Allocates `size` bytes at a multiple of `align`. The caller frees the memory with sy_free.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    `align` is no power of two
 *     ENOMEM    no memory
 */
SY_API void *sy_aligned_alloc(size_t align, size_t size);

/**
 * Allocates `count` times `size` bytes, all zero, at a multiple of `align`. The caller frees the
 * memory with sy_free.
 *
 * Returns the memory, or NULL with errno.
 *
 * Errors:
 *     EINVAL    `align` is no power of two
 *     ENOMEM    no memory, or the product overflows
 *
 *     float *row = sy_aligned_calloc(64, 1000, sizeof *row);   for vector code; 1,000 times 0
 *     ...
 *     sy_free(row);
 */
SY_API void *sy_aligned_calloc(size_t align, size_t count, size_t size);

/** Frees an object of this heap: of sy_malloc, sy_calloc, sy_realloc, sy_aligned_alloc and so on.
 * NULL is allowed and does nothing. errno is kept. A pointer that the heap did not return is
 * reported to the fault handler (slabyard/fault.h), and nothing is freed. */
SY_API void sy_free(void *object);

/**
 * Frees an object whose size you know, as sy_free: the bytes that were asked of sy_malloc,
 * sy_calloc, sy_realloc or sy_expand last, or of sy_aligned_alloc with an `align` of up to 16. A
 * size of another class is reported at once. A wrong size of the same class is reported if the
 * option `check` is on. If the compiler knows the size, sy_free_sized is inlined. Otherwise it
 * takes a few instructions more than sy_free, because the heap finds the class from the address
 * and compares the size with this class.
 *
 *     struct order *list = sy_malloc(50 * sizeof *list);
 *     ...
 *     sy_free_sized(list, 50 * sizeof *list);
 */
SY_API void sy_free_sized(void *object, size_t size);

/**
 * Frees an object whose alignment and size you know, as sy_free: `size` bytes at a multiple of
 * `align` from sy_aligned_alloc or sy_aligned_calloc. A wrong size or alignment is reported in the
 * same cases as by sy_free_sized. NULL is allowed and does nothing.
 *
 *     char *page = sy_aligned_alloc(4096, 10000);
 *     ...
 *     sy_free_aligned_sized(page, 4096, 10000);
 */
SY_API void sy_free_aligned_sized(void *object, size_t align, size_t size);

/**
 * Tells how large an object of `size` bytes from sy_malloc really is. A container that grows to
 * this size wastes nothing.
 *
 * Returns the number of bytes of such an object that may be used: at least `size`. If `size` is too
 * large for any object, returns `size`.
 *
 * A buffer that grows by half uses the whole of its size class:
 *
 *     size_t larger = sy_good_size(room + room / 2);
 *     char *moved = sy_realloc(buffer, larger);
 *     if (moved) {
 *         buffer = moved;
 *         room = larger;
 *     }
 */
SY_API size_t sy_good_size(size_t size);

/**
 * Tells how large an object is.
 *
 * Returns the number of bytes that may be used at `object`: at least as many as were asked for. 0
 * for NULL and for an address that is not the heap's.
 *
 *     char *text = sy_malloc(100);
 *     size_t bytes = sy_usable_size(text);   112: the size class of 100 bytes
 *     ...
 *     sy_free(text);
 */
SY_API size_t sy_usable_size(const void *object);

/* --- Sizes that the compiler knows ---------------------------------------------------------- */

/*
 * sy_malloc(sizeof *order) finds its size class when it is compiled: then it is inlined, and takes
 * an object from this thread's loaded slot as a cache does. sy_free_sized(order, sizeof *order)
 * also reads the class of the address, to see a wrong size at once. All else is a call.
 *
 * The numbers of the classes and the layout of the window are a part of the layout SY_ABI.
 */
enum {
    SY_CLASS_SIZE_MAX = 128 << 10, /* the largest size that has a class */
    SY_CLASS_16 = 2,               /* the first class with steps of 16 */
    SY_CLASS_128 = 9,              /* the last class with steps of 16 before the doublings */
};

/* The class with the smallest slots that hold `size` bytes, up to SY_CLASS_SIZE_MAX. */
static inline unsigned sy_class_of(size_t size) {
    if (size <= 8) return 1;
    if (size <= 128) return SY_CAST(unsigned, (size + 15) / 16) + SY_CLASS_16 - 1;
    unsigned highest = 63u - SY_CAST(unsigned, __builtin_clzll(size - 1));
    unsigned step = SY_CAST(unsigned, (size - 1) >> (highest - 3)) - 8;
    return SY_CLASS_128 + 1 + (highest - 7) * 8 + step;
}

/* The window of the library's map from addresses to classes: a byte for each unit of 64 KiB in the
 * 64 GiB from `start` on, or in all addresses if these have 32 bits. */
struct sy_class_window {
    uintptr_t start;
    const unsigned char *classes;
};

enum { SY_CLASS_WINDOW_UNITS = UINTPTR_MAX == UINT32_MAX ? 1 << 16 : 1 << 20 };

/* A program must not refer to the struct itself, unless it is linked statically: its linker could
 * make a copy of it. */
extern SY_API const struct sy_class_window *const sy_class_window_1;

#ifndef SY_NO_INLINE

#    ifdef SY_STATIC
extern SY_HIDDEN const struct sy_class_window sy_the_window;
#        define SY_CLASS_WINDOW (&sy_the_window)
#    else
#        define SY_CLASS_WINDOW sy_class_window_1
#    endif

/* The class of the slab at an address; 0: none, or the address is outside of the window. */
static inline unsigned sy_class_at_object(const void *object) {
    const struct sy_class_window *window = SY_CLASS_WINDOW;
    uintptr_t start = __atomic_load_n(&window->start, __ATOMIC_RELAXED);
    uintptr_t unit = (SY_AS(uintptr_t, object) - start) >> 16;
    if (SY_UNLIKELY(unit >= SY_CLASS_WINDOW_UNITS)) return 0;
    return __atomic_load_n(&window->classes[unit], __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) void *sy_malloc_inline(size_t size) {
    if (__builtin_constant_p(size) && size <= SY_CLASS_SIZE_MAX) {
        uintptr_t object;
        if (SY_LIKELY(sy_loaded_pop(&sy_abi_1[sy_class_of(size)], &object)))
            return SY_AS(void *, object);
    }
    return sy_malloc(size);
}

static inline __attribute__((always_inline)) void sy_free_sized_inline(void *object, size_t size) {
    if (__builtin_constant_p(size) && size <= SY_CLASS_SIZE_MAX) {
        unsigned class_number = sy_class_of(size);
        if (SY_LIKELY(sy_class_at_object(object) == class_number &&
                      sy_loaded_push_once(&sy_abi_1[class_number], SY_AS(uintptr_t, object))))
            return;
    }
    sy_free_sized(object, size);
}

/* Macros, so that the exported functions have the same names: (sy_malloc)(size) calls one, and
 * &sy_malloc is its address. */
#    define sy_malloc(size)             sy_malloc_inline(size)
#    define sy_free_sized(object, size) sy_free_sized_inline(object, size)

#endif

SY_END_DECLS

#endif
