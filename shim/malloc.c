/*
 * malloc.c: the drop-in malloc: the C library's functions over the heap (slabyard/heap.h). With
 * them Slabyard is the malloc of a program that was not written for it. The work is done in
 * src/heap.
 *
 * The functions differ from slabyard/heap.h where programs rely on glibc: every address is a
 * multiple of 16, an object of 0 bytes has an address of its own, and realloc(p, 0) frees.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "magazine/sleepers.h"
#include "shim/shim.h"

#define NAME __attribute__((visibility("default")))

/* malloc and free are calls. Functions of slabyard's headers that a program has inlined begin each
 * operation with sy_loaded_begin. */
bool sy_threads_may_be_reached(void) { return true; }

/* ---- allocation ---- */

NAME void *malloc(size_t size) { return sy_shim_alloc(size); }

NAME void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (SY_UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) bytes = SIZE_MAX;
    return sy_calloc_counted(sy_shim_size(bytes));
}

NAME void free(void *object) { sy_shim_free(object); }

NAME void *realloc(void *object, size_t size) {
    if (!object) return sy_shim_alloc(size);
    if (!size) {
        sy_shim_free(object);
        return NULL;
    }
    if (sy_shim_is_misaligned(object)) {
        sy_free_misaligned(object);
        errno = EINVAL;
        return NULL;
    }
    return sy_realloc_counted(object, sy_shim_size(size));
}

NAME void *reallocarray(void *object, size_t count, size_t size) {
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(object, bytes);
    errno = ENOMEM;
    return NULL;
}

/* ---- alignment ---- */

static bool is_power_of_two(size_t value) { return value && !(value & (value - 1)); }

/* As glibc: an alignment that is no power of two is rounded up to one. */
NAME void *memalign(size_t align, size_t size) {
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = SY_SHIM_ALIGN;
    while (power < align) power *= 2;
    return sy_shim_alloc_aligned(size, power);
}

NAME void *aligned_alloc(size_t align, size_t size) {
    if (is_power_of_two(align)) return sy_shim_alloc_aligned(size, align);
    errno = EINVAL;
    return NULL;
}

NAME int posix_memalign(void **object, size_t align, size_t size) {
    if (!is_power_of_two(align) || align % sizeof(void *)) return EINVAL;
    int error = errno;
    void *got = sy_shim_alloc_aligned(size, align);
    errno = error;
    if (!got) return ENOMEM;
    *object = got;
    return 0;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

NAME void *valloc(size_t size) { return sy_shim_alloc_aligned(size, page_size()); }

NAME void *pvalloc(size_t size); /* musl's headers do not declare it */
NAME void *pvalloc(size_t size) {
    size_t page = page_size();
    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    size_t pages = size ? (size + page - 1) / page : 1;
    return sy_shim_alloc_aligned(pages * page, page);
}

/* ---- sizes ---- */

NAME size_t malloc_usable_size(void *object) { return sy_usable_size(object); }

NAME size_t malloc_good_size(size_t size);
NAME size_t malloc_good_size(size_t size) { return sy_good_size(sy_shim_size(size)); }

NAME int malloc_should_move(const void *object);
NAME int malloc_should_move(const void *object) { return sy_should_move(object); }

NAME void *malloc_try_move(void *object);
NAME void *malloc_try_move(void *object) { return sy_try_move(object); }

NAME void free_sized(void *object, size_t size);
NAME void free_sized(void *object, size_t size) { sy_shim_free_sized(object, size); }

NAME void free_aligned_sized(void *object, size_t align, size_t size);
NAME void free_aligned_sized(void *object, size_t align, size_t size) {
    sy_shim_free_aligned_sized(object, align, size);
}

/* ---- glibc's second names ---- */

/* glibc exports its malloc under these names too, and programs call them. Without these definitions
 * such a program would pass blocks of glibc to this file's free. Old programs call cfree, which
 * glibc's headers no longer declare. In musl the names are internal. */
#ifdef __GLIBC__

#    define SECOND_NAME(type, name, parameters) \
        NAME type name parameters;              \
        NAME type name parameters

SECOND_NAME(void *, __libc_malloc, (size_t size)) { return malloc(size); }
SECOND_NAME(void *, __libc_calloc, (size_t count, size_t size)) { return calloc(count, size); }
SECOND_NAME(void *, __libc_realloc, (void *object, size_t size)) { return realloc(object, size); }
SECOND_NAME(void *, __libc_memalign, (size_t align, size_t size)) { return memalign(align, size); }
SECOND_NAME(void *, __libc_valloc, (size_t size)) { return valloc(size); }
SECOND_NAME(void *, __libc_pvalloc, (size_t size)) { return pvalloc(size); }
SECOND_NAME(void, __libc_free, (void *object)) { free(object); }
SECOND_NAME(void, cfree, (void *object)) { free(object); }

#endif
