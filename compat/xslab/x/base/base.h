/*
 * x/base/base.h: the macros of xslab's base header, which its slab.h includes. A program that has
 * this header from xslab's repository may use it instead: the guard is the same.
 */
#ifndef XBASE_BASE_H
#define XBASE_BASE_H

#include <stddef.h>
#ifndef __cplusplus
#    include <stdbool.h>
#endif

/* Declares a function or a variable with C linkage: XCAPI(int) count(void); */
#ifdef __cplusplus
#    define XCAPI(type)        extern "C" type
#    define XCAPI_INLINE(type) extern "C" inline type
#else
#    define XCAPI(type)        extern type
#    define XCAPI_INLINE(type) static inline type
#endif

/* Begin the definition of a struct with a type name, and of an enum whose values are ints:
 * XDEF_STRUCT(point) { int x, y; }; NOLINTBEGIN(bugprone-macro-parentheses): these are names */
#define XDEF_STRUCT(name)     \
    typedef struct name name; \
    struct name
#define XDEF_ENUM(name) \
    typedef int name;   \
    enum

/* Declare a type for pointers to what only a library knows. */
#define XDEF_HANDLE(name)          typedef void *name
#define XDEF_HANDLE_EXPLICIT(name) typedef struct name *name
/* NOLINTEND(bugprone-macro-parentheses) */

/* The struct of `type` whose `member` has the address `pointer`. */
#define xContainerOf(pointer, type, member) \
    ((type *)((char *)(pointer)-offsetof(type, member))) /* NOLINT(bugprone-casting-through-void) */

#endif
