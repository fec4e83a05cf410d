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
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chunk/map.h"
#include "debug/guard.h"
#include "os/os.h"
#include "shim/shim.h"

/* ---- the C library's ---- */

typedef void free_function(void *object);
typedef void *realloc_function(void *object, size_t size);
typedef size_t size_function(void *object);

/* Of the C library that the program's compiler uses: the DLL is loaded already. */
#if defined(_UCRT)
#    define C_LIBRARY "ucrtbase.dll"
#else
#    define C_LIBRARY "msvcrt.dll"
#endif

/* Each function is looked for once: to load a library takes the loader's lock. */
static void *find(const char *name, _Atomic(void *) *known) {
    void *found = atomic_load_explicit(known, memory_order_relaxed);
    if (found) return found;
    found = sy_os_symbol(sy_os_load(C_LIBRARY), name);
    if (!found) sy_os_abort("slabyard: the C library is an unknown one\n");
    atomic_store_explicit(known, found, memory_order_relaxed);
    return found;
}

/* An address in Slabyard's memory is not the C library's, whatever is wrong with it. */
static bool is_foreign(const void *object) {
    uintptr_t address = (uintptr_t)object;
    return object && sy_usable_size((void *)address) == 0 && !sy_owner_at(address) &&
           !sy_guard_owns(address);
}

static SY_COLD void free_foreign(void *object) {
    static _Atomic(void *) known;
    ((free_function *)find("free", &known))(object);
}

static SY_COLD void *realloc_foreign(void *object, size_t size) {
    static _Atomic(void *) known;
    return ((realloc_function *)find("realloc", &known))(object, size);
}

static SY_COLD size_t size_of_foreign(void *object) {
    static _Atomic(void *) known;
    return ((size_function *)find("_msize", &known))(object);
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

void *malloc(size_t size) { return sy_shim_alloc(size); }

/* Zeroes what an object has beyond the bytes that were asked for, because _recalloc may grow it in
 * place. */
static void *zero_tail(void *object, size_t bytes) {
    if (object) memset((char *)object + bytes, 0, sy_usable_size(object) - bytes);
    return object;
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    return zero_tail(sy_calloc(1, sy_shim_size(bytes)), bytes);
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

/* The object is of calloc or _recalloc, so it is zero beyond what was asked for. Of one of malloc,
 * bytes up to its usable size stay as they are. */
void *_recalloc(void *object, size_t count, size_t size) {
    size_t bytes, before = object ? _msize(object) : 0;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    bool foreign = is_foreign(object);
    char *now = realloc(object, bytes);
    if (now && bytes > before) memset(now + before, 0, bytes - before);
    return foreign ? now : zero_tail(now, bytes);
}

/* The headers declare the last two as functions of a DLL, so the program calls them by these
 * addresses. */
size_t (*const sy_imported_msize)(void *) __asm__("__imp__msize") = _msize;
void *(*const sy_imported_recalloc)(void *, size_t, size_t) __asm__("__imp__recalloc") = _recalloc;
