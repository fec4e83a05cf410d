/*
 * malloc.c: the drop-in malloc on Windows. A program that is linked with this file and the static
 * library has its malloc, calloc, realloc and free from the heap (slabyard/heap.h).
 *
 * The C library is a DLL there (ucrtbase.dll), and so are others. Only the program's own objects
 * call these functions: a DLL goes on to call the C library's. So the program may get memory from
 * the C library (strdup, getcwd, _fullpath) and free it here: what is not an object of the heap is
 * passed on to the C library. The other way round, a DLL that frees what the program allocated
 * calls the C library with memory that it does not know. Such DLLs exist for few interfaces, since
 * they would fail between C libraries of two versions too.
 */
#define _CRTIMP /* what is defined here is imported from no DLL */

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "shim/shim.h"

/* ---- the C library's ---- */

typedef void free_function(void *object);
typedef void *realloc_function(void *object, size_t size);
typedef size_t size_function(void *object);

/* The C library that the program's compiler uses. */
static void *find(const char *name) {
    static const char *const libraries[] = {"ucrtbase.dll", "msvcrt.dll"};
    void *found = NULL;
    for (size_t i = 0; i < 2 && !found; i++) found = sy_os_symbol(sy_os_load(libraries[i]), name);
    if (!found) sy_os_abort("slabyard: the C library is an unknown one\n");
    return found;
}

static bool is_foreign(const void *object) { return object && sy_usable_size(object) == 0; }

static SY_COLD void free_foreign(void *object) { ((free_function *)find("free"))(object); }

static SY_COLD void *realloc_foreign(void *object, size_t size) {
    return ((realloc_function *)find("realloc"))(object, size);
}

static SY_COLD size_t size_of_foreign(void *object) {
    return ((size_function *)find("_msize"))(object);
}

/* Caches that pass objects on (SY_PASSED) get them from the C library. Its functions for aligned
 * blocks are not replaced. */
void *sy_os_block(size_t bytes, size_t align) {
    int saved = errno;
    void *block = _aligned_malloc(bytes, align < SY_SHIM_ALIGN ? SY_SHIM_ALIGN : align);
    errno = block ? saved : ENOMEM;
    return block;
}

void sy_os_block_free(void *block) { _aligned_free(block); }

/* ---- the program's ---- */

SY_COLD void *sy_shim_alloc_due(size_t size, size_t align) {
    void *object = sy_malloc_sampled(size, align);
    if (object) return object;
    return align <= SY_SHIM_ALIGN ? sy_malloc(size) : sy_aligned_alloc(align, size);
}

void *malloc(size_t size) { return sy_shim_alloc(size); }

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    return sy_calloc(1, sy_shim_size(bytes));
}

void free(void *object) {
    if (!sy_shim_is_misaligned(object) && SY_LIKELY(sy_fast_free(object))) return;
    if (is_foreign(object))
        free_foreign(object);
    else
        sy_free(object);
}

void *realloc(void *object, size_t size) {
    if (!object) return sy_shim_alloc(size);
    if (is_foreign(object)) return realloc_foreign(object, size);
    if (size) return sy_realloc(object, sy_shim_size(size));
    sy_free(object);
    return NULL;
}

size_t _msize(void *object) {
    return is_foreign(object) ? size_of_foreign(object) : sy_usable_size(object);
}

void *_recalloc(void *object, size_t count, size_t size) {
    size_t bytes, before = object ? _msize(object) : 0;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    char *now = realloc(object, bytes);
    if (now && bytes > before) memset(now + before, 0, bytes - before);
    return now;
}

/* The headers declare the last two as functions of a DLL, so the program calls them by these
 * addresses. */
size_t (*const sy_imported_msize)(void *) __asm__("__imp__msize") = _msize;
void *(*const sy_imported_recalloc)(void *, size_t, size_t) __asm__("__imp__recalloc") = _recalloc;
