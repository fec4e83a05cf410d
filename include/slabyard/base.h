/*
 * base.h: definitions that every public header of Slabyard needs. Programs include it through the
 * other headers. It declares no function.
 *
 * Above: every header in this folder. Below: the compiler (gcc or clang, C11 or C++11 and later).
 *
 * A function that has an inline form is written three times, always in this shape:
 *
 *     static inline void *sy_pool_alloc_inline(sy_pool *pool) { ... }     the body, in the header
 *     static inline void *sy_pool_alloc(sy_pool *pool) { the body }       without SY_NO_INLINE
 *     SY_API void *sy_pool_alloc(sy_pool *pool);                          with SY_NO_INLINE
 *
 * The third line declares an exported function. The file calls.c of the function's layer defines
 * this function: the file defines SY_NO_INLINE before it includes the header. Some programs cannot
 * inline C, because they are written in another language or must keep working when the layout
 * changes. They call this function, which has the same name.
 *
 * Functions that you give to Slabyard (constructors, destructors, handlers, visitors and so on) are
 * called without a lock held, and must return. There is one exception: a C++ exception, or the end
 * of its thread (pthread_exit, pthread_cancel), may leave the constructor of a cache
 * (sy_cache_config.construct) and the visitors of sy_handle_each and sy_cache_each. If any other
 * function of yours does not return, Slabyard reports the name of the function and of its cache,
 * and ends the process. For an exception or the end of a thread, the report comes at once. For
 * longjmp, it comes at one of the thread's next calls. In such a function, do not switch to another
 * stack on which Slabyard is called.
 *
 * A later version may add fields at the end of the structs that Slabyard fills or passes to a
 * function of yours. Programs that were compiled before keep running, for two reasons:
 *
 *   - A function that fills a struct (sy_cache_get_stats) is inline, and passes the size of the
 *     struct in its caller's headers to an exported function (sy_cache_get_stats_sized). This
 *     function fills so many bytes, and sets those to 0 that a newer program has beyond the
 *     library's struct. It fails with EINVAL if the size is less than the struct's first version
 *     had. Programs in other languages call it with the size of their own struct.
 *   - A struct that a function of yours gets by pointer (sy_cache_account, sy_tag_stats, sy_leak,
 *     sy_fault, sy_option and so on) is one struct, never an array. Read its fields, or copy it as
 *     a whole.
 *
 * Structs that your program fills (sy_cache_config, sy_limit) have the field `reserved` for later
 * fields. It has to be 0.
 *
 * The functions that an inline body calls on its slow path carry the number of the layout in their
 * symbols (SY_ABI_NAME). So a program compiled for one layout does not link with a library of
 * another.
 */
#ifndef SLABYARD_BASE_H
#define SLABYARD_BASE_H

#if !defined(__GNUC__) && !defined(__clang__)
#    error "Slabyard needs gcc or clang: its headers use their extensions (docs/platforms.md)"
#endif

#include <stddef.h>
#include <stdint.h>

/* The version of these headers (sy_version is the library's). SY_VERSION can be compared: 10203 is
 * 1.2.3. */
#define SY_VERSION_MAJOR 0
#define SY_VERSION_MINOR 3
#define SY_VERSION_PATCH 0
#define SY_VERSION       (SY_VERSION_MAJOR * 10000 + SY_VERSION_MINOR * 100 + SY_VERSION_PATCH)

#if defined(__cplusplus)
#    define SY_BEGIN_DECLS       extern "C" {
#    define SY_END_DECLS         }
#    define SY_CAST(type, value) static_cast<type>(value)
#    define SY_AS(type, value)   reinterpret_cast<type>(value) /* of addresses and pointers */
#else
#    define SY_BEGIN_DECLS
#    define SY_END_DECLS
#    define SY_CAST(type, value) ((type)(value))
#    define SY_AS(type, value)   ((type)(value))
#endif

/* A program that uses the library as a DLL of Windows defines SY_DLL. The thread-local variable of
 * the inline functions cannot be imported from a DLL, so this program calls functions instead. */
#if defined(SY_DLL) && !defined(SY_NO_INLINE)
#    define SY_NO_INLINE
#endif

/* A function that the shared library exports; all others are hidden. If you compile the library as
 * a part of your own program, you can define SY_API differently. */
#if defined(SY_API)
#elif defined(SY_DLL)
#    define SY_API __declspec(dllimport)
#else
#    define SY_API __attribute__((visibility("default")))
#endif

/* The same for a thread-local variable. */
#ifdef _WIN32
#    define SY_API_THREAD
#else
#    define SY_API_THREAD SY_API
#endif

/* A variable that the library alone uses. It is reached directly, without the indirection that a
 * variable needs if a program can replace it. */
#ifdef _WIN32
#    define SY_HIDDEN
#else
#    define SY_HIDDEN __attribute__((visibility("hidden")))
#endif

/* A thread-local variable at a fixed distance from the thread pointer: reading it takes one load
 * and no call. The library therefore needs space in the static TLS block. It must be loaded when
 * the program starts, or by dlopen while the C library has static TLS space left. With SY_DLOPEN
 * the loader may place the variable anywhere, so the library can be loaded at any time, but a call
 * is needed to find the variable. libslabyard-dlopen.so is compiled with SY_DLOPEN, and so must be
 * every program that uses the inline functions of that library (docs/platforms.md). */
#ifdef SY_DLOPEN
#    define SY_TLS __thread
#else
#    define SY_TLS __thread __attribute__((tls_model("initial-exec")))
#endif

/* The same, for a program that links the static library into an executable and defines SY_STATIC:
 * every fast path is then one instruction shorter. Other programs that define SY_STATIC do not
 * link. */
#if defined(SY_STATIC) && defined(SY_DLOPEN)
#    error "SY_STATIC is for executables, SY_DLOPEN for what is loaded as they run"
#elif defined(SY_STATIC)
#    define SY_TLS_INLINE __thread __attribute__((tls_model("local-exec")))
#else
#    define SY_TLS_INLINE SY_TLS
#endif

#define SY_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SY_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A slow path: never inlined, and placed away from the code that runs often. */
#define SY_COLD __attribute__((cold, noinline))

#define SY_MUST_USE     __attribute__((warn_unused_result))
#define SY_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))

/*
 * Deprecated: former names. Functions that call a visitor are called sy_..._each now. They visit
 * the elements of their first argument (the objects of a cache with handles, of a heap; the parts
 * of an arena); without such an argument, all that there are in the process (caches, tags, options,
 * leaks, epochs).
 */
#define sy_each_cache  sy_cache_each
#define sy_each_tag    sy_tag_each
#define sy_each_option sy_option_each
#define sy_each_leak   sy_leak_each
#define sy_vmem_walk   sy_vmem_each

/* The number of the layout that inline bodies depend on: the structures, and the meaning of their
 * fields. The number changes when one of them changes, and the names made here change with it. */
#define SY_ABI            1
#define SY_ABI_NAME(name) name##_abi_1

#endif
