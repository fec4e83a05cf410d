/*
 * base.h: what every public header of Slabyard shares. Nothing here allocates, and nothing here is
 * a door; programs include it through the others.
 *
 * Above: every header in this folder. Below: the compiler (gcc or clang, C11 or C++11 and later).
 *
 * A door that has an inline form is written three times, always in this shape:
 *
 *     static inline void *sy_pool_alloc_inline(sy_pool *pool) { ... }     the body, in the header
 *     static inline void *sy_pool_alloc(sy_pool *pool) { the body }       without SY_NO_INLINE
 *     SY_API void *sy_pool_alloc(sy_pool *pool);                          with SY_NO_INLINE
 *
 * and a file calls.c of its layer, which defines SY_NO_INLINE before it includes the header, gives
 * the exported function that the third line declares. So whoever cannot inline C (another
 * language, a program that must outlive a change of layout) has a function of the same name.
 *
 * Functions that you give to Slabyard (constructors, destructors, handlers, visitors and so on) are
 * called without a lock held, and must return. There is one exception: a C++ exception, or the end
 * of its thread (pthread_exit, pthread_cancel), may leave the constructor of a cache
 * (sy_cache_config.construct). Everything else is reported with the name of the function and of its
 * cache, and ends the process: at once if it is an exception or the end of a thread, at one of the
 * thread's next calls if it is longjmp. In such a function, do not switch to another stack on which
 * Slabyard is called.
 *
 * What an inline body calls when it is out of luck carries the number of the layout in its symbol
 * (SY_ABI_NAME): a program compiled against one layout does not link with a library of another.
 */
#ifndef SLABYARD_BASE_H
#define SLABYARD_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#    define SY_BEGIN_DECLS       extern "C" {
#    define SY_END_DECLS         }
#    define SY_CAST(type, value) static_cast<type>(value)
#else
#    define SY_BEGIN_DECLS
#    define SY_END_DECLS
#    define SY_CAST(type, value) ((type)(value))
#endif

/* A function that the shared library exports; everything else is hidden. Whoever compiles the
 * library as a part of his own can say otherwise. */
#ifndef SY_API
#    define SY_API __attribute__((visibility("default")))
#endif

/* A variable of the library's own: reached without the detour for what a program may replace. */
#define SY_HIDDEN __attribute__((visibility("hidden")))

/* A variable of each thread at a fixed distance from the thread pointer: one load, no call. The
 * library therefore takes its place in the static TLS block and is loaded at program start, or by
 * dlopen while the C library has surplus left. With SY_DLOPEN it is wherever the loader finds room,
 * at any time, and a call finds it: so is libslabyard-dlopen.so compiled, and so has to be what
 * uses that library's inline functions (docs/platforms.md). */
#ifdef SY_DLOPEN
#    define SY_TLS __thread
#else
#    define SY_TLS __thread __attribute__((tls_model("initial-exec")))
#endif

/* The same, where the program says that it links the static library into an executable: one
 * instruction less on every fast path. Elsewhere it does not link. */
#if defined(SY_STATIC) && defined(SY_DLOPEN)
#    error "SY_STATIC is for executables, SY_DLOPEN for what is loaded as they run"
#elif defined(SY_STATIC)
#    define SY_TLS_DOOR __thread __attribute__((tls_model("local-exec")))
#else
#    define SY_TLS_DOOR SY_TLS
#endif

#define SY_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SY_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A slow path: never inlined, laid out away from the code that runs. */
#define SY_COLD __attribute__((cold, noinline))

#define SY_MUST_USE     __attribute__((warn_unused_result))
#define SY_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))

/* The number of the layout that inline bodies know: structures, and the meaning of their fields.
 * It changes when one of them does, together with the names made here. */
#define SY_ABI            1
#define SY_ABI_NAME(name) name##_abi_1

#endif
