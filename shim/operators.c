/*
 * operators.c: C++'s operators new and delete over the heap. They are written in C, because the
 * preloaded library also serves C programs, in which there is no C++ library.
 *
 * A program may replace some of these operators and leave the others. By the C++ standard
 * ([new.delete]), an operator that it leaves calls one that it replaced: sized delete calls delete,
 * new[] calls new, and so on. So each operator here that is based on another one first asks whether
 * that one is still this file's. All are weak: in a statically linked program its own operators
 * come first.
 */
#include <stdint.h>

#include <slabyard/slabyard.h>

#include "os/os.h"
#include "shim/shim.h"

#define OPERATOR(type, name, mangled, parameters)                                       \
    __attribute__((weak, visibility("default"))) type name parameters __asm__(mangled); \
    type name parameters

/* ---- functions of the C++ library, if there is one ---- */

typedef void new_handler(void);

#define OF_LIBRARY(mangled) __asm__(mangled) __attribute__((weak, visibility("default")))

extern new_handler *std_get_new_handler(void) OF_LIBRARY("_ZSt15get_new_handlerv");
extern void std_throw_bad_alloc(void) OF_LIBRARY("_ZSt17__throw_bad_allocv");
extern void libcxx_throw_bad_alloc(void) OF_LIBRARY("_ZNSt3__117__throw_bad_allocEv");

static _Noreturn SY_COLD void throw_bad_alloc(void) {
    if (std_throw_bad_alloc) std_throw_bad_alloc();
    if (libcxx_throw_bad_alloc) libcxx_throw_bad_alloc();
    sy_os_abort("slabyard: new has no memory, and the C++ library cannot throw bad_alloc\n");
}

/* ---- new ---- */

/* Tries again as long as the program's new_handler makes room. The handler may throw. */
static SY_COLD void *new_again(size_t size, size_t align) {
    for (;;) {
        new_handler *handler = std_get_new_handler ? std_get_new_handler() : NULL;
        if (!handler) throw_bad_alloc();
        /* cppcheck-suppress nullPointer ; throw_bad_alloc does not return */
        handler();
        void *object = sy_shim_alloc_aligned(size, align);
        if (object) return object;
    }
}

static void *new_object(size_t size) {
    void *object = sy_shim_alloc(size);
    return SY_LIKELY(object != NULL) ? object : new_again(size, SY_SHIM_ALIGN);
}

static void *new_aligned_object(size_t size, size_t align) {
    void *object = sy_shim_alloc_aligned(size, align);
    return SY_LIKELY(object != NULL) ? object : new_again(size, align);
}

/* All other operators new are based on these two. */
extern void *op_new(size_t size) __asm__("_Znwm")
    __attribute__((weak, visibility("default"), alias("new_object")));
extern void *op_new_aligned(size_t size, size_t align) __asm__("_ZnwmSt11align_val_t")
    __attribute__((weak, visibility("default"), alias("new_aligned_object")));

OPERATOR(void *, op_new_array, "_Znam", (size_t size)) {
    return SY_LIKELY(op_new == new_object) ? new_object(size) : op_new(size);
}

OPERATOR(void *, op_new_array_aligned, "_ZnamSt11align_val_t", (size_t size, size_t align)) {
    return op_new_aligned(size, align);
}

/* The C++ library's nothrow operators call op_new and catch exceptions. C cannot do that. */
typedef void *new_nothrow(size_t size, const void *nothrow);
typedef void *new_aligned_nothrow(size_t size, size_t align, const void *nothrow);

/* For a statically linked program, which has no next library. There the handler, or the program's
 * own operator new, must not throw. */
static void *new_or_null(size_t size, size_t align) {
    void *object = NULL;
    new_handler *handler;
    while (!object && std_get_new_handler && (handler = std_get_new_handler()) != NULL) {
        handler();
        object = sy_shim_alloc_aligned(size, align);
    }
    return object;
}

static SY_COLD void *next_nothrow(size_t size, const void *nothrow) {
    new_nothrow *next = (new_nothrow *)(uintptr_t)sy_shim_next("_ZnwmRKSt9nothrow_t");
    if (next) return next(size, nothrow);
    return op_new == new_object ? new_or_null(size, SY_SHIM_ALIGN) : op_new(size);
}

static SY_COLD void *next_aligned_nothrow(size_t size, size_t align, const void *nothrow) {
    new_aligned_nothrow *next =
        (new_aligned_nothrow *)(uintptr_t)sy_shim_next("_ZnwmSt11align_val_tRKSt9nothrow_t");
    if (next) return next(size, align, nothrow);
    bool ours = op_new_aligned == new_aligned_object;
    return ours ? new_or_null(size, align) : op_new_aligned(size, align);
}

OPERATOR(void *, op_new_nothrow, "_ZnwmRKSt9nothrow_t", (size_t size, const void *nothrow)) {
    void *object = op_new == new_object ? sy_shim_alloc(size) : NULL;
    return SY_LIKELY(object != NULL) ? object : next_nothrow(size, nothrow);
}

OPERATOR(void *, op_new_array_nothrow, "_ZnamRKSt9nothrow_t", (size_t size, const void *nothrow)) {
    return op_new_nothrow(size, nothrow);
}

OPERATOR(void *, op_new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",
         (size_t size, size_t align, const void *nothrow)) {
    void *object = op_new_aligned == new_aligned_object ? sy_shim_alloc_aligned(size, align) : NULL;
    return SY_LIKELY(object != NULL) ? object : next_aligned_nothrow(size, align, nothrow);
}

OPERATOR(void *, op_new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",
         (size_t size, size_t align, const void *nothrow)) {
    return op_new_aligned_nothrow(size, align, nothrow);
}

/* ---- delete ---- */

static void delete_object(void *object) { sy_shim_free(object); }

static void delete_aligned_object(void *object, size_t align) {
    (void)align;
    sy_shim_free(object);
}

extern void op_delete(void *object) __asm__("_ZdlPv")
    __attribute__((weak, visibility("default"), alias("delete_object")));
extern void op_delete_aligned(void *object, size_t align) __asm__("_ZdlPvSt11align_val_t")
    __attribute__((weak, visibility("default"), alias("delete_aligned_object")));

static void delete_array_object(void *object) { op_delete(object); }

static void delete_aligned_array_object(void *object, size_t align) {
    op_delete_aligned(object, align);
}

extern void op_delete_array(void *object) __asm__("_ZdaPv")
    __attribute__((weak, visibility("default"), alias("delete_array_object")));
extern void op_delete_array_aligned(void *object, size_t align) __asm__("_ZdaPvSt11align_val_t")
    __attribute__((weak, visibility("default"), alias("delete_aligned_array_object")));

OPERATOR(void, op_delete_sized, "_ZdlPvm", (void *object, size_t size)) {
    if (SY_UNLIKELY(op_delete != delete_object))
        op_delete(object);
    else
        sy_shim_free_sized(object, size);
}

/* The compiler passes the size of the whole allocation, with the count of elements before it. */
OPERATOR(void, op_delete_array_sized, "_ZdaPvm", (void *object, size_t size)) {
    if (SY_UNLIKELY(op_delete_array != delete_array_object || op_delete != delete_object))
        op_delete_array(object);
    else
        sy_shim_free_sized(object, size);
}

OPERATOR(void, op_delete_nothrow, "_ZdlPvRKSt9nothrow_t", (void *object, const void *nothrow)) {
    (void)nothrow;
    op_delete(object);
}

OPERATOR(void, op_delete_array_nothrow, "_ZdaPvRKSt9nothrow_t",
         (void *object, const void *nothrow)) {
    (void)nothrow;
    op_delete_array(object);
}

OPERATOR(void, op_delete_sized_aligned, "_ZdlPvmSt11align_val_t",
         (void *object, size_t size, size_t align)) {
    if (SY_UNLIKELY(op_delete_aligned != delete_aligned_object))
        op_delete_aligned(object, align);
    else
        sy_shim_free_aligned_sized(object, align, size);
}

OPERATOR(void, op_delete_array_sized_aligned, "_ZdaPvmSt11align_val_t",
         (void *object, size_t size, size_t align)) {
    if (SY_UNLIKELY(op_delete_array_aligned != delete_aligned_array_object ||
                    op_delete_aligned != delete_aligned_object))
        op_delete_array_aligned(object, align);
    else
        sy_shim_free_aligned_sized(object, align, size);
}

OPERATOR(void, op_delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",
         (void *object, size_t align, const void *nothrow)) {
    (void)nothrow;
    op_delete_aligned(object, align);
}

OPERATOR(void, op_delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",
         (void *object, size_t align, const void *nothrow)) {
    (void)nothrow;
    op_delete_array_aligned(object, align);
}
