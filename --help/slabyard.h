/*
 * slabyard.h: all interfaces of Slabyard 0.2.0, whose code is slabyard.c beside it. For C11, and
 * for C++11 and later; slabyard.hpp, beside it too, is for C++17.
 *
 *     cc -O2 -c slabyard.c         and in the program: #include "slabyard.h"; it links with -pthread
 *
 * The copy is the program's, or the shared object's, that it is compiled into: others do not see it,
 * and may have one of their own. These can be defined, alike for all that include this file:
 *
 *     SY_DLOPEN    for a shared object that is loaded as the program runs: it needs no room in the
 *                  static block of thread-local storage. Link that object with -Wl,-z,nodelete:
 *                  threads come back to it when they end.
 *     SY_API       what stands before each function; __attribute__((visibility("default"))) shows
 *                  them to other shared objects.
 */
/*
 * MIT License
 *
 * Copyright (c) 2026 The Slabyard authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to deal
 * in the Software without restriction, including without limitation the rights
 * to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
 * copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all
 * copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
 * SOFTWARE.
 */
#ifndef SY_API
#    define SY_API __attribute__((visibility("hidden")))
#    if !defined(SY_STATIC) && !defined(SY_DLOPEN) && (!defined(__PIC__) || defined(__PIE__))
#        define SY_STATIC /* it is of an executable, and so are its callers */
#    endif
#endif

#ifndef SLABYARD_SLABYARD_H
#define SLABYARD_SLABYARD_H

/*
 * slabyard/audit.h: allocation tags, the last operations of a cache, and leaks.
 *
 * These functions report about caches and heaps with SY_AUDIT (slabyard/checks.h), or about all
 * with SLABYARD=audit. Any thread may call them. Visitors get a copy of the state at one moment.
 * `visit` is called without any lock held and may use Slabyard.
 */
#ifndef SLABYARD_AUDIT_H
#define SLABYARD_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * slabyard/fault.h: reports and handlers for misuse that would corrupt memory.
 *
 * By default Slabyard reports the misuse and ends the process. The report goes to stderr, or to the
 * place that the option `report` names. All kinds have the same format: what happened, in which
 * cache, at which address, who allocated or freed the object, and what to do next. A handler of
 * your own can take the place of the report.
 */
#ifndef SLABYARD_FAULT_H
#define SLABYARD_FAULT_H

#include <stddef.h>
#include <stdint.h>

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
 * The third line declares an exported function. A file calls.c of the function's layer defines it:
 * the file defines SY_NO_INLINE before it includes the header. So a program that cannot inline C
 * (because it is written in another language, or must keep working when the layout changes) has a
 * function of the same name.
 *
 * Functions that you give to Slabyard (constructors, destructors, handlers, visitors and so on) are
 * called without a lock held, and must return. There is one exception: a C++ exception, or the end
 * of its thread (pthread_exit, pthread_cancel), may leave the constructor of a cache
 * (sy_cache_config.construct). If any other function of yours does not return, Slabyard reports the
 * name of the function and of its cache, and ends the process. It does so at once for an exception
 * or the end of a thread, and at one of the thread's next calls for longjmp. In such a function, do
 * not switch to another stack on which Slabyard is called.
 *
 * The functions that an inline body calls on its slow path carry the number of the layout in their
 * symbols (SY_ABI_NAME). So a program compiled for one layout does not link with a library of
 * another.
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

/* A function that the shared library exports; all others are hidden. If you compile the library as
 * a part of your own program, you can define SY_API differently. */
#ifndef SY_API
#    define SY_API __attribute__((visibility("default")))
#endif

/* A variable that the library alone uses. It is reached directly, without the indirection that a
 * variable needs if a program can replace it. */
#define SY_HIDDEN __attribute__((visibility("hidden")))

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

/* The same, for a program that links the static library into an executable and says so by defining
 * SY_STATIC: every fast path is one instruction shorter. Other programs do not link with it. */
#if defined(SY_STATIC) && defined(SY_DLOPEN)
#    error "SY_STATIC is for executables, SY_DLOPEN for what is loaded as they run"
#elif defined(SY_STATIC)
#    define SY_TLS_DOOR __thread __attribute__((tls_model("local-exec")))
#else
#    define SY_TLS_DOOR SY_TLS
#endif

#define SY_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define SY_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A slow path: never inlined, and placed away from the code that runs often. */
#define SY_COLD __attribute__((cold, noinline))

#define SY_MUST_USE     __attribute__((warn_unused_result))
#define SY_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))

/* The number of the layout that inline bodies depend on: the structures, and the meaning of their
 * fields. The number changes when one of them changes, and the names made here change with it. */
#define SY_ABI            1
#define SY_ABI_NAME(name) name##_abi_1

#endif

SY_BEGIN_DECLS

typedef enum sy_fault_kind {
    SY_FAULT_NONE,               /* no fault; a handler is never called with it */
    SY_FAULT_FOREIGN_POINTER,    /* freed, but not memory of Slabyard, or not in use */
    SY_FAULT_MISALIGNED_POINTER, /* inside a slab of the cache, but not the start of an object */
    SY_FAULT_WRONG_CACHE,        /* an object of another cache, or of the heap */
    SY_FAULT_DOUBLE_FREE,        /* an object that is free already */
    SY_FAULT_WRONG_SIZE,         /* a sized free with a size of another class */
    SY_FAULT_NOT_ALLOCATED,      /* freed to an arena that has no segment allocated there */
    SY_FAULT_SEGMENT_SIZE,       /* freed to an arena with another size than allocated */
    SY_FAULT_OVERFLOW,           /* the red zone behind an object was written to */
    SY_FAULT_UNDERFLOW,          /* the red zone before an object was written to */
    SY_FAULT_WRITE_AFTER_FREE,   /* a free object was written to */
    SY_FAULT_SLAB_EDGE,          /* the edge of a slab was written to, far from any object */
    SY_FAULT_GUARD_OVERFLOW,     /* an access hit the guard page behind an object */
    SY_FAULT_GUARD_UNDERFLOW,    /* an access hit the guard page before an object */
    SY_FAULT_USE_AFTER_FREE,     /* an access to a guarded object after it was freed */
    SY_FAULT_NOT_PINNED,         /* an unpin of a handle that has no pin */
    SY_FAULT_FREED_POINTER,      /* an access through a pointer read from a free object */
    SY_FAULT_UNWRITTEN_POINTER,  /* the same, from an object unwritten since its allocation */
} sy_fault_kind;

typedef enum sy_access { SY_ACCESS_UNKNOWN, SY_ACCESS_READ, SY_ACCESS_WRITE } sy_access;

/* The stack of an allocation or a free. It is recorded with SY_AUDIT or the option `audit`, and for
 * guarded objects. */
typedef struct sy_trace {
    const void *const *frames; /* return addresses, the innermost first; always valid */
    size_t depth;              /* number of frames; 0: not recorded */
    unsigned thread;           /* the system's number of the thread; 0: not recorded */
    uint64_t age;              /* nanoseconds since the allocation or free */
} sy_trace;

typedef struct sy_fault {
    sy_fault_kind kind;
    const char *cache;         /* name of the cache, heap or arena asked to free; "heap": sy_free;
                                * "": not known: the pointer was read from a pattern */
    size_t object_size;        /* bytes of its objects; 0: a heap. Of an arena: the size passed */
    const void *address;       /* the address that was freed, or the first byte that was damaged or
                                * accessed, or the pointer that was followed */
    const char *found_cache;   /* SY_FAULT_WRONG_CACHE: its cache; else NULL */
    size_t found_size;         /* size asked for, of the object concerned or of the segment that is
                                * allocated there; 0: not known */
    size_t told_size;          /* SY_FAULT_WRONG_SIZE: the size passed; 0: none, or not known */
    const void *object;        /* start of the object concerned; NULL: not known */
    ptrdiff_t offset;          /* bytes from `object` to `address` */
    const void *damage;        /* the bytes found there now; NULL: nothing was damaged */
    size_t damage_bytes;       /* from the first damaged byte to the last */
    sy_trace allocated, freed; /* the last allocation and the last free */
    sy_access access;          /* read or write, if the processor reported it */
    const char *held_in;       /* SY_FAULT_..._POINTER: the register that holds it; else NULL */
} sy_fault;

/*
 * A fault handler. It is called without any lock held, in the thread that found the fault, which
 * may not be the thread that caused it. It must return or end the process (base.h).
 *
 * If it returns, the bad pointer is ignored or the damage is repaired, and the program continues.
 * After SY_FAULT_GUARD_..., SY_FAULT_USE_AFTER_FREE, SY_FAULT_FREED_POINTER and
 * SY_FAULT_UNWRITTEN_POINTER it does not simply continue: the access is repeated, outside of
 * Slabyard.
 *
 * The handler may call functions of Slabyard. Everything that the fault points to is valid until
 * the handler returns.
 */
typedef void (*sy_fault_handler)(const sy_fault *fault);

/* Sets the fault handler of the process and returns the previous one. NULL: report and abort, or
 * continue if the option on-fault says so. Any thread. */
SY_API sy_fault_handler sy_set_fault_handler(sy_fault_handler handler);

/* Writes the report of a fault to the place where it would go without a handler. It is meant for
 * handlers that add to the report. It takes no memory from Slabyard. Any thread; errno is kept. */
SY_API void sy_report_fault(const sy_fault *fault);

SY_END_DECLS

#endif

SY_BEGIN_DECLS

struct sy_cache;

/* ---- tags: allocations by the part of the program that makes them ---- */

typedef unsigned sy_tag; /* 0: none */

enum { SY_TAG_NAME_MAX = 31, SY_TAGS_MAX = 255 };

/* Returns the tag of a name: always the same for the same name, and 0 for "". SY_TAG_NAME_MAX bytes
 * of the name are kept. A tag exists until the process ends. Returns 0 with ENOMEM if there are
 * SY_TAGS_MAX tags already. */
SY_API sy_tag sy_tag_open(const char *name);

/* From now on the allocations of the calling thread have this tag. A number that is no tag acts as
 * 0. Returns the tag before. */
SY_API sy_tag sy_tag_set(sy_tag tag);

typedef struct sy_tag_stats {
    sy_tag tag;
    char name[SY_TAG_NAME_MAX + 1];
    uint64_t allocations, frees;
    size_t live;                   /* number of objects */
    size_t live_bytes, peak_bytes; /* bytes asked for */
} sy_tag_stats;

/* Calls `visit` for each tag, beginning with untagged allocations (0), until `visit` returns a
 * value other than 0. Returns that value, or 0. */
SY_API int sy_each_tag(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg);

/* ---- the last operations of a cache ---- */

typedef struct sy_operation {
    bool freed; /* else it was allocated */
    const void *object;
    size_t size; /* bytes asked for */
    sy_trace trace;
} sy_operation;

/* Calls `visit` for the last operations of the cache, the latest first. The option `audit=N` sets
 * how many are kept. Stops and returns as sy_each_tag; -1 with ENOMEM. */
SY_API int sy_cache_history(struct sy_cache *cache,
                            int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* ---- leaks ---- */

enum {
    /*
     * Only objects that the program cannot reach any more. An object is reachable if an aligned
     * pointer to any of its bytes, or its handle, is found in one of these places:
     *
     *   - the writable memory of the process that it shares with no other process
     *   - a register of the calling thread
     *   - an object that is reachable itself
     *   - an object without audit
     *
     * The search is conservative, as in findleaks of illumos' mdb and in LeakSanitizer. It does not
     * see the registers of other threads, so call it while they are idle or waiting. The time
     * depends on the size of the process. The search runs in a copy of the process, made as fork
     * would make it but without hooks, and the program continues meanwhile.
     */
    SY_LEAKS_UNREACHABLE = 1,
};

/* Live objects of one cache that were allocated with the same stack. */
typedef struct sy_leak {
    const char *cache;       /* its name, valid during the visit */
    size_t objects, bytes;   /* number of objects; bytes asked for */
    uint64_t oldest, newest; /* nanoseconds since their allocation */
    const void *example;     /* the oldest object */
    sy_trace allocated;      /* the allocation of that object */
} sy_leak;

/* Calls `visit` for each group of leaked objects, the one with the most bytes first. `cache`:
 * search this cache alone; NULL: all. `flags`: 0 for all live objects, or SY_LEAKS_UNREACHABLE.
 * Stops and returns as sy_each_tag; -1 with EINVAL (unknown flags), or with ENOMEM (no memory, or
 * the system does not tell which memory the process has). */
SY_API int sy_each_leak(struct sy_cache *cache, unsigned flags,
                        int (*visit)(void *arg, const sy_leak *leak), void *arg);

/* Writes the same as a report (slabyard/fault.h). Returns the number of objects in it. If there are
 * none, it writes nothing. With the option `leaks` this is done when a cache is destroyed, and at
 * the end of the process. Objects that Rust's runtime allocated before main, or keeps until the
 * process ends, are left out if its functions have names in the program's symbol table. */
SY_API size_t sy_report_leaks(struct sy_cache *cache, unsigned flags);

SY_END_DECLS

#endif
/*
 * slabyard/cache.h: object caches.
 *
 * A cache allocates objects of one kind: fixed size, fixed alignment, optionally kept constructed
 * while they are free. Any thread may allocate from it and any thread may free to it. The usual
 * allocation takes an object from the calling thread's magazine: ten or eleven instructions,
 * inlined into the caller, without a lock, an atomic read-modify-write or a call.
 *
 *     sy_cache *orders = sy_cache_create(
 *         &(sy_cache_config){.name = "order", .size = sizeof(struct order)});
 *     struct order *order = sy_cache_alloc(orders);
 *     ...
 *     sy_cache_free(orders, order);
 *     sy_cache_destroy(orders);
 *
 * Functions that fail return NULL or -1 and set `errno`. Do not call them in a signal handler.
 * After a fork, parent and child each have their own copy of every cache.
 *
 * Misuse that would corrupt memory (a double free, a pointer that is not an object of the cache) is
 * reported with the cache's name to the fault handler (slabyard/fault.h), which aborts by default.
 * If a thread frees the object that it freed last, the report comes at once (unless
 * SY_NO_DOUBLE_FREE_CHECK of slabyard/loaded.h is defined). Other misuse is reported when the
 * object reaches the slow path: late, or never if the object is allocated again before. With
 * SY_CHECKED every free is examined at once.
 */
#ifndef SLABYARD_CACHE_H
#define SLABYARD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * slabyard/checks.h: flags with which caches, heaps and pools look for mistakes or keep secrets.
 *
 * Set a flag in the `flags` of a configuration. Or set the option of the same name for all caches,
 * heaps and pools, without recompiling anything (slabyard/options.h). A flag that is off costs
 * nothing. A flag that must see each operation shuts the fast path of its cache, so that operations
 * are function calls. docs/checks.md says which flag finds which mistake, when, and at what cost.
 */
#ifndef SLABYARD_CHECKS_H
#define SLABYARD_CHECKS_H

#include <stddef.h>

SY_BEGIN_DECLS

enum {
    /* Validates every free: foreign or misaligned pointer, object of another cache, double free,
     * wrong size. Option `check`. The next four flags include it. */
    SY_CHECKED = 1u << 7,
    /* Puts red zones before and behind each object: bytes with a pattern of the cache's own. They
     * are verified when the object is freed, and by sy_verify. Option `redzone`: how many bytes. */
    SY_REDZONE = 1u << 8,
    /* Fills each freed object with a pattern. The whole object is verified before it is allocated
     * again, and once more when the process ends (option `exit-check`). With this flag objects are
     * destructed when they are freed, and constructed again when they are allocated. Option
     * `poison`. */
    SY_POISON = 1u << 9,
    /* Keeps freed objects back until many others were freed; they are then reused in random order.
     * Option `quarantine`: how many objects are kept back. */
    SY_QUARANTINE = 1u << 10,
    /* Records for each object which code allocated it and which freed it, and when: for reports,
     * leaks and tags. Option `audit`. */
    SY_AUDIT = 1u << 11,
    /* Allocates slots in random order. Option `random`. The fast path stays open. */
    SY_RANDOM = 1u << 12,
    /* Puts a pattern at both ends of each slab. It is verified when the slab is released, and by
     * sy_verify. Option `edges`. The fast path stays open. */
    SY_EDGES = 1u << 13,
    /*
     * Now and then places an object on pages of its own, with inaccessible pages beside them. After
     * the object is freed its pages stay inaccessible until they are reused. Option `guard`: how
     * often. The fast path of allocation stays open; each free is a function call. With a
     * constructor, a guarded object is constructed when it is allocated and destructed when it is
     * freed.
     *
     * Never guarded: objects that have handles, are locked, are kept out of core dumps, or lie in
     * memory of your own; spans, unless they are checked; objects that sy_thread_reserve has
     * reserved.
     */
    SY_GUARD = 1u << 14,
    /* Fills objects with zeroes when they are freed. Option `zero`. */
    SY_ZERO = 1u << 15,
    /* Keeps the memory of objects out of core dumps. Option `dump=no`. */
    SY_NO_DUMP = 1u << 16,
    /* Locks the memory of objects, so that it is never written to swap. An allocation fails if its
     * memory cannot be locked. Option `lock`. */
    SY_LOCKED = 1u << 17,

    SY_CHECK_FLAGS = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_RANDOM |
                     SY_EDGES | SY_GUARD | SY_ZERO | SY_NO_DUMP | SY_LOCKED, /* all of them */
};

/* Examines the whole process, pools included. Returns the number of violated invariants of the
 * library and of damaged objects: 0 if all is well. Each damaged object is reported as a fault that
 * does not end the process, each other violation by a line. Any thread, at any time; it is slow.
 * Other threads may use their pools meanwhile, but may not destroy a pool. */
SY_API size_t sy_verify(void);

SY_END_DECLS

#endif
/*
 * slabyard/loaded.h: the part of the magazine layer that is compiled into programs: the free
 * objects that a thread has at hand. Included by slabyard/cache.h. Programs call only
 * sy_thread_idle and sy_thread_flush.
 */
#ifndef SLABYARD_LOADED_H
#define SLABYARD_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/* Tells the library that the calling thread expects to be idle. Until its next operation, other
 * threads may take the free objects in its magazines. The thread's next operation ends this
 * state. */
SY_API void sy_thread_idle(void);

/* Returns the free objects in the calling thread's magazines to their slabs. */
SY_API void sy_thread_flush(void);

/*
 * A thread's loaded slot for one client of the layer (a cache, a size class). `base <= top <=
 * limit` delimit the free items of a magazine; the newest item is top[-1]. `top <= base` shuts
 * allocation and `top >= limit` shuts free: the operation then takes the slow path, which decides
 * everything else.
 *
 * Only the thread itself writes its slot; other threads may read it. The words that the fast path
 * uses are at +32 to +55 of a cache line, where objects do not begin. Otherwise a store to a new
 * object with the same page offset could delay the loads of these words.
 */
typedef struct sy_loaded_slot {
    uintptr_t reserved[4];
    uintptr_t *top, *base, *limit;
    uintptr_t reserved_too;
} sy_loaded_slot;

/* This thread's loaded slots, indexed by client number. The name carries the number of the layout,
 * so that a program and a library with different layouts do not link. */
extern SY_API SY_TLS_DOOR sy_loaded_slot *sy_abi_1;

/* Takes the newest item. Returns false if allocation is shut. */
static inline bool sy_loaded_pop(sy_loaded_slot *slot, uintptr_t *item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top <= slot->base)) return false;
    *item = top[-1];
    __atomic_store_n(&slot->top, top - 1, __ATOMIC_RELAXED);
    return true;
}

/* Stores an item at `top`, where there is room. A signal handler, a fork or a reader of statistics
 * between the two stores sees one item too few, and nothing worse. */
static inline void sy_loaded_store(sy_loaded_slot *slot, uintptr_t *top, uintptr_t item) {
    __atomic_store_n(top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&slot->top, top + 1, __ATOMIC_RELAXED);
}

/* Puts an item in. Returns false if free is shut. */
static inline bool sy_loaded_push(sy_loaded_slot *slot, uintptr_t item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= slot->limit)) return false;
    sy_loaded_store(slot, top, item);
    return true;
}

/*
 * The same, but also returns false if the item is the newest in the slot already, because it was
 * freed twice in a row. The slow path then reports the double free. The word before the items of a
 * magazine is 0, so the comparison may also read an empty magazine.
 *
 * SY_NO_DOUBLE_FREE_CHECK, defined before Slabyard's headers are included, removes this comparison
 * from the inline frees of caches and pools. It is their only check.
 */
static inline bool sy_loaded_push_once(sy_loaded_slot *slot, uintptr_t item) {
    uintptr_t *top = slot->top;
    if (SY_UNLIKELY(top >= slot->limit)) return false;
#ifndef SY_NO_DOUBLE_FREE_CHECK
    if (SY_UNLIKELY(top[-1] == item)) return false;
#endif
    sy_loaded_store(slot, top, item);
    return true;
}

SY_END_DECLS

#endif
/*
 * slabyard/reclaim.h: return of free memory to the operating system: all of it on request, some of
 * it within a time, or automatically what was unused for a while. Included by slabyard/cache.h.
 *
 *     sy_trim();                            everything that can go, however long it takes
 *     sy_trim_some(16 << 20, 200000);       16 MiB, or as much as 0.2 ms are enough for
 *     sy_set_decay(1000);                   the default: memory unused for 2 to 4 s goes back
 *     sy_maintenance_start();               by a background thread rather than on slow paths
 *
 * Automatic return: now and then a thread that is on a slow path does a step of the work, which
 * takes some tens of microseconds. The steps release, in this order, free objects in unused
 * magazines, empty slabs, unused pages of slabs, and units of chunks. So a program that allocates
 * stays small. In a program that does nothing, nothing happens, unless the maintenance thread runs
 * (a background thread, see sy_maintenance_start). When a cache grows, other caches release the
 * free objects in their unused magazines, so that the growing cache can use the memory.
 *
 * Some steps call functions of yours: in caches with a destructor, in caches over your own memory,
 * and in quantum caches of arenas. Slow paths leave these steps to the background thread and to
 * trims, because a thread on a slow path may hold locks of your program.
 *
 * The free objects in the magazines of a running thread are released at its next slow path. A
 * thread that is going to wait for long should call sy_thread_idle first.
 *
 * Memory that sy_cache_reserve has reserved is released by trims alone (sy_trim, sy_trim_some,
 * sy_cache_trim, sy_heap_trim), never automatically.
 *
 * Thread rule: any thread, except where a comment says otherwise.
 */
#ifndef SLABYARD_RECLAIM_H
#define SLABYARD_RECLAIM_H

#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/* Returns the free memory of all caches, of the heap and of the library itself to the operating
 * system, as sy_cache_trim does for one cache. Returns the number of bytes. */
SY_API size_t sy_trim(void);

/*
 * The same, until `bytes` have been returned or `budget_ns` nanoseconds have passed. It stops at
 * the end of a step, and a step takes some tens of microseconds. Each call continues where the last
 * one stopped. Returns the number of bytes. If these are fewer than asked for and the time was not
 * used up, the only free memory left is in magazines of running threads and in words of handles
 * (slabyard/handle.h). sy_trim returns the latter.
 */
SY_API size_t sy_trim_some(size_t bytes, uint64_t budget_ns);

/* Sets the decay time. Free memory that is not used is returned within two to four times
 * `milliseconds`, because it moves in steps from magazines to slabs to the operating system. 0:
 * never. The default is 1000. */
SY_API void sy_set_decay(uint64_t milliseconds);

/*
 * Starts the maintenance thread, a background thread that does the steps in place of the slow
 * paths, once every decay time. Returns 0, also if it is running already; or -1 with errno EAGAIN
 * or ENOMEM. In the child of a fork it does not run until the child starts it.
 */
SY_API int sy_maintenance_start(void);

/* Stops the background thread and waits until it has done its last step (the thread itself may end
 * a moment later). Do not call it in a callback of Slabyard or while a thread ends. If a callback
 * calls it on the background thread itself, it does not wait. */
SY_API void sy_maintenance_stop(void);

SY_END_DECLS

#endif

SY_BEGIN_DECLS

typedef struct sy_cache sy_cache;

/* Flags of a cache. slabyard/checks.h has more, for example SY_CHECKED. */
enum {
    /* The first objects of successive slabs begin at different cache lines. If the slots fill a
     * slab exactly, this costs a slot, or as many as fill a cache line. (A slab with bytes to spare
     * uses these for the purpose, with or without the flag.) */
    SY_COLOUR = 1u << 1,
    /* `limit` counts live objects exactly, because no free object waits in a magazine. Each
     * operation takes a lock. */
    SY_LIMIT_EXACT = 1u << 2,
    /* Objects have handles (slabyard/handle.h), which cost 8 bytes for each object. */
    SY_HANDLES = 1u << 3,
    /* Objects of an epoch (slabyard/epoch.h) lie in slabs of their own. A free is a function call,
     * and a freed object is allocated again only after it was returned to its slab. */
    SY_EPOCHS = 1u << 4,
};

enum {
    SY_CACHE_ALIGN_MAX = 2 << 20, /* bytes; the largest `align` of a cache */
    SY_CACHE_NAME_MAX = 31,       /* bytes of the name that are kept */
    SY_CACHES_MAX = 15000,        /* at least as many caches can exist at a time */
};

/* The configuration of a cache. Every field but `size` may be zero. */
typedef struct sy_cache_config {
    const char *name; /* for reports and statistics; copied. NULL: "cache" */
    size_t size;      /* bytes of an object: 1 up to half the address space */
    size_t align; /* bytes: a power of two up to 2 MiB, or 0: 16 (8 for objects of up to 8 bytes) */
    /*
     * The constructor. It is called with `arg` once for each object, before the object is allocated
     * for the first time; the object then stays constructed while it is free. If it returns a value
     * other than 0, the allocation fails, with the errno that the constructor left. No lock is
     * held. The constructor may use other caches, and may destroy this one. It may not allocate
     * from this cache or free to it, nor call sy_thread_idle or sy_thread_flush.
     *
     * The constructor may throw a C++ exception, and its thread may end in it. The memory of the
     * object then returns to the cache, and the exception reaches the caller of the allocation. The
     * constructor must not be left by longjmp.
     */
    int (*construct)(void *object, void *arg);
    /* The destructor. It is called with `arg` once for each constructed object before its memory is
     * released. It may free objects, also of this cache. It may not call sy_thread_idle or
     * sy_thread_flush, and it must return (base.h). */
    void (*destruct)(void *object, void *arg);
    void *arg;
    size_t limit;   /* of live objects; 0: none. Without SY_LIMIT_EXACT an allocation can fail when
                     * seven eighths are live: the rest can be in other threads' magazines */
    unsigned flags; /* SY_CHECKED ... */
    struct sy_memory *memory; /* memory of your own for the objects (memory.h), which has to exist
                                 for longer than the cache; NULL: the system's */
    /* With SY_HANDLES: called with `arg` for each object that is freed, by the thread that held it
     * last, before the object can be allocated again (slabyard/handle.h). It may call any function,
     * and must return (base.h). sy_cache_destroy_all does not call it. */
    void (*dispose)(void *object, void *arg);
    uintptr_t reserved[6]; /* zero */
} sy_cache_config;

/*
 * Creates a cache. The caller owns it until sy_cache_destroy. Returns NULL with errno
 *
 *     EINVAL    size is 0 or over half the address space; align is no power of two or above
 *               SY_CACHE_ALIGN_MAX; a flag is unknown; reserved is not zero; SY_LIMIT_EXACT without
 *               limit; dispose without SY_HANDLES
 *     ENOMEM    no memory, or too many caches
 */
SY_API sy_cache *sy_cache_create(const sy_cache_config *config);

/*
 * Destroys a cache without live objects: calls the destructors and releases all its memory. No
 * other thread may be using the cache. NULL is allowed and does nothing. Returns 0, or -1 with
 * errno and nothing changed: EBUSY, objects are live; EINVAL, the cache belongs to a heap.
 *
 * A function that Slabyard calls (construct, destruct, dispose, discard, import, release, the
 * callback of a limit, a fault handler) may destroy any cache, also the one that it is called for.
 * If a function of the cache is running at that moment, further up the stack or in a trim by
 * another thread, the call returns 0 at once, and the last thread that leaves the cache's functions
 * destroys it. If an object is live then, the cache is not destroyed.
 */
SY_API int sy_cache_destroy(sy_cache *cache);

/* The same for a cache with live objects: they are destructed and become invalid. */
SY_API void sy_cache_destroy_all(sy_cache *cache);

/* Allocates an object, as sy_cache_alloc, and sets all its bytes to 0. Returns NULL with errno as
 * sy_cache_alloc, or EINVAL if the cache has a constructor. */
SY_API void *sy_cache_zalloc(sy_cache *cache);

/*
 * Frees `object` and returns true if it is a live object of this cache; else returns false and does
 * nothing. Any address may be passed. If several threads call it for one live object at the same
 * time, it returns true in exactly one of them. errno is kept.
 *
 * The function takes locks and searches all magazines of the cache, which is slow. With SY_CHECKED
 * or SY_HANDLES it is quick and always exact. Without these flags there is one exception: while
 * another thread moves a magazine (because it allocates from this cache, frees to it, or begins or
 * ends an epoch), a free object in that magazine is taken for a live one.
 */
SY_API bool sy_cache_try_free(sy_cache *cache, void *object);

/* Allocates up to `count` objects and writes their addresses to the front of `objects`. Returns how
 * many; if fewer than `count`, errno is set as by sy_cache_alloc. */
SY_API size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count);

/* Frees `count` objects. A NULL among them is skipped. */
SY_API void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count);

/*
 * Reserves memory for `count` objects more than are live. The next `count` allocations then succeed
 * without a call of the operating system, whichever threads make them, also threads that start
 * later. The memory is populated: its pages are resident.
 *
 * To keep this promise, the cache also holds slabs for the magazines of all threads, and adds some
 * for each thread that starts to use the cache later. If there is no memory for these, such a
 * thread works without magazines until the `count` allocations were made. The promise does not
 * cover objects that a limit leaves to other threads' magazines (sy_cache_config.limit), nor those
 * that a constructor refuses.
 *
 * A later trim ends the promise and releases the unused part. Returns 0, or -1 with errno ENOMEM;
 * the memory that was reserved until then stays.
 */
SY_API int sy_cache_reserve(sy_cache *cache, size_t count);

/*
 * The same for the next `count` allocations of the calling thread. These also take no lock and call
 * no function of yours, because the objects are in the thread's magazines already. They stay there
 * until a trim, the close of an epoch, or an allocation that reaches a limit takes them.
 *
 * At most two magazines of objects can be reserved (sy_cache_stats.magazine_items each); with
 * SY_EPOCHS one magazine, until the thread begins or ends an epoch. Returns 0, or -1 with errno
 * EINVAL (`count` is more than that) or ENOMEM.
 */
SY_API int sy_thread_reserve(sy_cache *cache, size_t count);

/*
 * Returns free memory of the cache to the operating system, page by page, also in slabs with live
 * objects. Free objects in the magazines of idle (sy_thread_idle) and ended threads are included.
 * Those in the magazines of other running threads leave them at the thread's next exchange of
 * magazines; a later trim then returns their memory. Returns the number of bytes.
 */
SY_API size_t sy_cache_trim(sy_cache *cache);

/* The number of live objects. It is exact while no other thread uses the cache or returns memory
 * (slabyard/reclaim.h); else it is a snapshot. */
SY_API size_t sy_cache_in_use(const sy_cache *cache);

/* The bytes from one object to the next: the size rounded up to the alignment, at least 8. In a
 * cache with red zones, which lie between the objects: the size. */
SY_API size_t sy_cache_slot_size(const sy_cache *cache);

/* --- The inline fast path ------------------------------------------------------------------- */

/* The part of a cache that the inline functions read. */
struct sy_cache_head {
    uintptr_t reserved[5];
    size_t loaded_offset; /* bytes from sy_abi_1 to this cache's loaded slot */
    uintptr_t reserved_too[2];
};

SY_API void *sy_cache_alloc_slow(sy_cache *cache);
SY_API void sy_cache_free_slow(sy_cache *cache, void *object);

static inline sy_loaded_slot *sy_cache_loaded(sy_cache *cache) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + ((struct sy_cache_head *)cache)->loaded_offset);
}

static inline void *sy_cache_alloc_inline(sy_cache *cache) {
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return (void *)object;
    return sy_cache_alloc_slow(cache);
}

static inline void sy_cache_free_inline(sy_cache *cache, void *object) {
    if (!object || SY_LIKELY(sy_loaded_push_once(sy_cache_loaded(cache), (uintptr_t)object)))
        return;
    sy_cache_free_slow(cache, object);
}

/*
 * Allocates an object of the cache's size and alignment. Its content is undefined; if the cache has
 * a constructor, the object is as constructed, or as it was freed. Any thread. Returns NULL with
 * errno ENOMEM (no memory, or the limit is reached), or with the errno that the constructor left.
 */
#ifdef SY_NO_INLINE
SY_API void *sy_cache_alloc(sy_cache *cache);
#else
static inline void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }
#endif

/* Frees an object of this cache. NULL is allowed and does nothing. Any thread. errno is kept. */
#ifdef SY_NO_INLINE
SY_API void sy_cache_free(sy_cache *cache, void *object);
#else
static inline void sy_cache_free(sy_cache *cache, void *object) {
    sy_cache_free_inline(cache, object);
}
#endif

SY_END_DECLS

#endif
/*
 * slabyard/epoch.h: objects of one phase in slabs of their own, so that the memory comes back when
 * the phase ends.
 *
 * Objects that live and die together (those of one request, one frame, one connection, one
 * generation of a table) lie among others in the slabs of ordinary caches. There, a few long-lived
 * objects hold slabs whose other objects were freed long ago. In an epoch the allocations of a
 * phase are taken from slabs of its own. When the phase is over and its objects are freed, these
 * slabs are empty, and their memory can be used for anything else.
 *
 *     sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = 200, .flags = SY_EPOCHS});
 *     sy_epoch *request = sy_epoch_create("request");
 *     sy_epoch_begin(request);
 *     void *object = sy_cache_alloc(cache);           from the slabs of the epoch
 *     sy_epoch_end(request);
 *     sy_cache_free(cache, object);                   any time, by any thread
 *     sy_epoch_close(request);                        releases its empty slabs at once
 *
 * An epoch covers all caches with SY_EPOCHS, and any number of threads may be in it. There may be
 * any number of epochs. A thread may be in several, one within the other; it then allocates from
 * the innermost. An epoch frees no object: you free the objects one by one, before or after the
 * epoch is closed.
 *
 * Costs: in a cache with SY_EPOCHS an allocation is as fast as in others. A free is a function call
 * that puts the object into the thread's outbox. From there objects return to their slabs a whole
 * magazine at a time, and they are not allocated again before. Beginning or ending an epoch returns
 * the free objects that the thread has at hand for other epochs, which takes some tens of
 * nanoseconds for each cache.
 *
 * Thread rule: any thread, except where a comment says otherwise. A thread must end the epochs that
 * it is in before it ends itself. In the child of a fork the other threads are in no epoch.
 */
#ifndef SLABYARD_EPOCH_H
#define SLABYARD_EPOCH_H

SY_BEGIN_DECLS

enum {
    SY_EPOCH_NAME_MAX = 31, /* bytes of the name that are kept */
    SY_EPOCH_DEPTH_MAX = 32 /* epochs that a thread can be in at a time */
};

typedef struct sy_epoch sy_epoch;

/* Creates an epoch, which is open. The caller owns it until sy_epoch_close. `name` is copied; NULL:
 * "epoch". Returns NULL with errno ENOMEM. */
SY_API sy_epoch *sy_epoch_create(const char *name);

/*
 * From now on the calling thread allocates from the epoch, until the matching sy_epoch_end. With
 * NULL it allocates from no epoch, as outside of all epochs. Returns 0; or -1 with errno EINVAL
 * (the epoch is closed) or EAGAIN (the thread is in SY_EPOCH_DEPTH_MAX epochs already). Do not call
 * it in a constructor or a destructor.
 */
SY_API int sy_epoch_begin(sy_epoch *epoch);

/* Ends the innermost epoch of the calling thread. Returns 0; or -1 with EINVAL and nothing changed
 * if `epoch` is not the innermost. */
SY_API int sy_epoch_end(sy_epoch *epoch);

/* Returns the innermost epoch of the calling thread, or NULL. */
SY_API sy_epoch *sy_epoch_current(void);

/*
 * Closes the epoch when its phase is over. From then on no thread can begin it, and the caller no
 * longer owns it. Threads that are in the epoch may finish.
 *
 * Slabs without live objects become available to all caches at once; a trim returns them to the
 * operating system (slabyard/reclaim.h). Each other slab follows when its last live object is
 * freed. Free objects that other running threads have at hand or in their outboxes count as live
 * until those threads reach a slow path.
 *
 * Returns the number of objects that count as live. NULL is allowed and does nothing.
 */
SY_API size_t sy_epoch_close(sy_epoch *epoch);

/* ---- epochs that do not end ---- */

typedef struct sy_epoch_stats {
    char name[SY_EPOCH_NAME_MAX + 1];
    uint64_t number;              /* in order of creation */
    uint64_t age_ns, closed_ns;   /* since creation; since the epoch was closed, 0: it is open */
    unsigned threads;             /* in the epoch; one that is in it twice counts twice */
    size_t objects, slabs, bytes; /* objects: live, as sy_epoch_close counts; bytes: of slabs */
} sy_epoch_stats;

/* Called for each epoch, without any lock held. A return value other than 0 ends the iteration. */
typedef int (*sy_epoch_visit)(void *arg, const sy_epoch_stats *stats);

/* Calls `visit` for the open epochs, and for closed ones that still have slabs or threads, in order
 * of creation. Returns 0, or the value with which `visit` ended the iteration. */
SY_API int sy_epoch_each(sy_epoch_visit visit, void *arg);

/*
 * Writes a line to stderr for each stuck epoch: one that was closed at least `ns` nanoseconds ago
 * and still has slabs or threads. The line gives its name, its live objects and their caches, and
 * the number of threads that never ended it. Returns the number of stuck epochs.
 */
SY_API size_t sy_epoch_report_stuck(uint64_t ns);

SY_END_DECLS

#endif
/*
 * slabyard/fail.h: allocation failures on request, to test how a program handles them.
 *
 *     SLABYARD=fail=order:7 ./server        the 7th allocation of the cache "order" fails
 *
 * `slabyard faults -- ./server` runs a program once for each of its allocations and shows the first
 * failure that the program does not survive; docs/faults.md is the guide.
 *
 * A specification is one rule, or several with + between. Each rule says which allocations fail,
 * and when:
 *
 *     rule:  [WHO:]WHEN
 *     WHO:   NAME           allocations of caches of this name, with * and ? standing for any text
 *                           and any byte, and | between several names; without WHO: all
 *            os:CALL        calls to the system, by their names in src/os/os.h: os:commit, os:*
 *     WHEN:  N              the N-th of them, once
 *            every:N        each N-th
 *            random:P:SEED  each with probability P (0.01; nine digits at most), the same ones
 *                           for the same seed as long as they come in the same order
 *            size>N         each of more than N bytes; not with os:
 *
 * An allocation is one object that is requested from a cache or heap, through any function that
 * returns objects. Each object of a batch counts as one. It makes no difference whether the object
 * has a handle, is in an epoch, or was reserved. A realloc that needs a new place counts too.
 * Slabs, magazines and other memory of the library itself are no allocations. Those of pools and
 * arenas do not count either; only the system calls that they make can fail, by os: rules.
 *
 * The size classes of sy_malloc are caches named "heap-64", and larger objects belong to "heap".
 * While sy_malloc is checked, and in separate heaps, larger objects have size classes too:
 * "heap-196608", "tenant-64". The size of an allocation is the object size of the cache, or the
 * size that was asked of the heap.
 *
 * An allocation that is made to fail returns NULL with ENOMEM, as if there were no memory, and
 * changes nothing. It is reported on stderr, or where the option `report` says, with the count of
 * the rule:
 *
 *     slabyard: made allocation 7 of cache "order" (64 bytes) fail
 *     slabyard: made call 3 of sy_os_commit fail
 *
 * If a rule names a cache when the cache is created, its fast path is shut, so that every
 * allocation is seen. In a cache that no rule named then, and that has no checks, no allocation is
 * ever counted. So set the specification before you create the cache, or set it by the option. The
 * child of a fork continues with its own counts, which start from the parent's.
 */
#ifndef SLABYARD_FAIL_H
#define SLABYARD_FAIL_H

#include <stdint.h>

SY_BEGIN_DECLS

/* Sets the specification, in place of the one before, and starts all counts again. NULL or "": no
 * allocation is made to fail. Any thread. Returns 0; or -1 with EINVAL and nothing changed: the
 * text is no specification, is longer than 255 bytes, or has more than 16 rules. */
SY_API int sy_set_failures(const char *specification);

/* Returns how many allocations and calls were made to fail since the specification was set. Any
 * thread. */
SY_API uint64_t sy_failures(void);

SY_END_DECLS

#endif
/*
 * slabyard/handle.h: objects by handle: 64-bit names that stay invalid once their object is freed.
 *
 * A handle is an ordinal and a generation. The ordinal is the number of a place for an object. The
 * generation says which of the objects that were there is meant. When an object is freed its handle
 * becomes stale, and it stays stale whatever object is placed there later. So handles can be kept
 * in messages, queues, other processes, and tables that are never cleaned up.
 *
 *     sy_cache *sessions = sy_cache_create(
 *         &(sy_cache_config){.name = "session", .size = 200, .flags = SY_HANDLES});
 *     sy_handle handle;
 *     struct session *session = sy_handle_alloc(sessions, &handle);
 *     ...
 *     session = sy_handle_get(sessions, handle);      NULL once it is freed
 *     sy_handle_free(sessions, handle);               true; a second time false
 *
 * You may pass any 64 bits as a handle: they are compared, never used as an address. 0 is never a
 * valid handle. A handle of another cache is refused. When a place has used all its generations,
 * 2^32 - 1 of them, it is retired with its slot (sy_cache_stats.retired).
 *
 * Two functions look up an object. sy_handle_get costs a few loads. Use it in the code that owns
 * the object, so that no other thread can free it meanwhile. Use sy_handle_pin everywhere else:
 * between pin and unpin the object stays. If it is freed meanwhile, its handle becomes stale at
 * once, and the object is freed at the last unpin. The cache's `dispose` function is called by the
 * thread that held the object last: the one that frees it, or that unpins it last.
 *
 * In a cache with SY_HANDLES, sy_cache_alloc and sy_cache_free work too, but are slower. All
 * objects of the cache have handles (sy_handle_of).
 *
 * Thread rule: any thread, at any time. After a fork, the pins that other threads held stay in the
 * child, so the objects that they pinned are never freed there.
 */
#ifndef SLABYARD_HANDLE_H
#define SLABYARD_HANDLE_H

SY_BEGIN_DECLS

typedef uint64_t sy_handle;

/* The largest number of pins that an object can have at a time. */
enum { SY_HANDLE_PINS_MAX = (1 << 16) - 1 };

/*
 * sy_handle_prepare allocates an object that no other thread can see while you initialise it. Its
 * handle is refused, and sy_handle_each does not visit it. Returns NULL with errno as
 * sy_handle_alloc.
 *
 * sy_handle_publish makes the object live. sy_handle_cancel frees it instead, without calling
 * `dispose`. Call exactly one of the two, once. Any other use is reported as an unpin without a
 * pin.
 */
SY_API void *sy_handle_prepare(sy_cache *cache, sy_handle *handle);
SY_API void sy_handle_publish(sy_cache *cache, sy_handle handle);
SY_API void sy_handle_cancel(sy_cache *cache, sy_handle handle);

/* Pins the object of a live handle of this cache and returns it. The object stays until it is
 * unpinned. Pins are counted. Returns NULL for any other handle, or NULL with errno EAGAIN if the
 * object has SY_HANDLE_PINS_MAX pins. */
SY_API void *sy_handle_pin(sy_cache *cache, sy_handle handle);

/* Ends one pin, also if the handle has become stale since. If the object was freed while it was
 * pinned, the last unpin frees it. A handle that is not pinned is the fault SY_FAULT_NOT_PINNED
 * (fault.h), and nothing changes. */
SY_API void sy_handle_unpin(sy_cache *cache, sy_handle handle);

/* Returns the handle of a live object. Returns 0 if no live object of a cache with SY_HANDLES
 * begins at this address. Any address may be passed. */
SY_API sy_handle sy_handle_of(const void *object);

/* Called for each object, which is pinned during the call. A return value other than 0 ends the
 * iteration. */
typedef int (*sy_handle_visit)(void *arg, sy_handle handle, void *object);

/*
 * Calls `visit` for the live objects of the cache: for all that were live during the whole call,
 * and for some of those that were allocated or freed meanwhile. Objects with SY_HANDLE_PINS_MAX
 * pins are skipped. `visit` may allocate, get and free, also in this cache. Returns 0; or the value
 * with which `visit` ended the iteration; or -1 with errno: EINVAL (the cache has no SY_HANDLES),
 * ENOMEM.
 */
SY_API int sy_handle_each(sy_cache *cache, sy_handle_visit visit, void *arg);

/*
 * Lists the ordinals of a cache, for programs that read the words below themselves. The objects of
 * a slab have consecutive ordinals. The function writes the first ordinal of each slab that the
 * cache has at this moment to `firsts`, if `room` entries are enough for all of them; else it
 * writes none. It sets *slots to the number of objects in a slab. Returns the number of slabs; 0
 * for a cache without SY_HANDLES. An ordinal may belong to another cache by the time that you use
 * it; its word then says so.
 */
SY_API size_t sy_handle_slabs(sy_cache *cache, uint32_t *firsts, size_t room, uint32_t *slots);

/* --- The inline fast paths ------------------------------------------------------------------ */

/*
 * The word of an ordinal:
 *
 *     63         32 31       18 17        2  1 0
 *     | generation | cache     | pins      |state|
 *
 * state: free (0), live (1), dying (2: freed while it was pinned). An ordinal without a slab has a
 * word of zeros. The number of the cache is in the word as long as the ordinal has a slab.
 *
 * A program that changes words itself may set the state dying with 0 pins. The object then belongs
 * to the thread that stored the word, and no function here changes it. The thread ends this state
 * by storing a free word and putting the ordinal back.
 */
#define SY_HANDLE_LIVE       UINT64_C(1)
#define SY_HANDLE_DYING      UINT64_C(2)
#define SY_HANDLE_STATE      UINT64_C(3)
#define SY_HANDLE_PIN        UINT64_C(4)
#define SY_HANDLE_PINS       (UINT64_C(0xffff) << 2)
#define SY_HANDLE_CACHE      18
#define SY_HANDLE_GENERATION 32

#ifndef SY_HANDLE_GENERATIONS_MAX
#    define SY_HANDLE_GENERATIONS_MAX UINT32_MAX /* tests define a smaller number */
#endif

/* The part of a cache with SY_HANDLES that the inline functions read, in place of sy_cache_head. */
struct sy_handle_head {
    uint64_t *words;   /* indexed by ordinal */
    uintptr_t *places; /* the address of the first of each 64 ordinals, indexed by ordinal / 64 */
    uint64_t limit;    /* all ordinals of this cache are smaller; grows */
    uint64_t live;     /* the lower half of the word of a live, unpinned object of this cache */
    size_t slot;       /* bytes from one object to the next */
    size_t loaded_offset; /* for sy_cache_alloc and sy_cache_free: of a slot that is always shut */
    size_t names_offset;  /* bytes from sy_abi_1 to this cache's loaded slot of free ordinals */
    uint64_t plain;       /* `live`, if a free changes only the word; else no word's value */
};

SY_API void *SY_ABI_NAME(sy_handle_alloc_slow)(sy_cache *cache, sy_handle *handle);
SY_API bool SY_ABI_NAME(sy_handle_free_slow)(sy_cache *cache, sy_handle handle);

/* sy_handle_take_slow takes a free ordinal. It belongs to the caller, which either makes the object
 * live and frees it later, or puts the ordinal back with sy_handle_put_slow. Returns false with
 * errno as sy_handle_alloc. */
SY_API bool SY_ABI_NAME(sy_handle_take_slow)(sy_cache *cache, uint32_t *ordinal);
SY_API bool SY_ABI_NAME(sy_handle_put_slow)(sy_cache *cache, uint32_t ordinal);

static inline struct sy_handle_head *sy_handle_head_of(const sy_cache *cache) {
    return (struct sy_handle_head *)(uintptr_t)cache;
}

static inline sy_loaded_slot *sy_handle_loaded(const struct sy_handle_head *head) {
    return (sy_loaded_slot *)(void *)((char *)sy_abi_1 + head->names_offset);
}

static inline void *sy_handle_place(const struct sy_handle_head *head, uint64_t ordinal) {
    uintptr_t first = __atomic_load_n(&head->places[ordinal / 64], __ATOMIC_RELAXED);
    return (void *)(first + ordinal % 64 * head->slot);
}

/* The word that a live, unpinned object with this handle has. */
static inline uint64_t sy_handle_expected(const struct sy_handle_head *head, sy_handle handle) {
    return (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->live;
}

/* Whether the ordinal of any 64 bits can be one of this cache. A cache without SY_HANDLES has the
 * limit 0. */
static inline bool sy_handle_in_range(const struct sy_handle_head *head, sy_handle handle) {
    return (uint32_t)handle < __atomic_load_n(&head->limit, __ATOMIC_RELAXED);
}

/* Makes the object of a free ordinal live. No other thread changes a free word. */
static inline void *sy_handle_enliven(const struct sy_handle_head *head, uint64_t ordinal,
                                      sy_handle *handle) {
    uint64_t *word = &head->words[ordinal];
    uint64_t live = __atomic_load_n(word, __ATOMIC_RELAXED) + (UINT64_C(1) << SY_HANDLE_GENERATION);
    live |= SY_HANDLE_LIVE;
    __atomic_store_n(word, live, __ATOMIC_RELEASE);
    *handle = (live >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | ordinal;
    return sy_handle_place(head, ordinal);
}

static inline void *sy_handle_alloc_inline(sy_cache *cache, sy_handle *handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    uintptr_t ordinal;
    if (SY_LIKELY(sy_loaded_pop(sy_handle_loaded(head), &ordinal)))
        return sy_handle_enliven(head, ordinal, handle);
    return SY_ABI_NAME(sy_handle_alloc_slow)(cache, handle);
}

static inline void *sy_handle_get_inline(const sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return NULL;
    uint64_t word = __atomic_load_n(&head->words[(uint32_t)handle], __ATOMIC_ACQUIRE);
    if (SY_UNLIKELY((word & ~SY_HANDLE_PINS) != sy_handle_expected(head, handle))) return NULL;
    return sy_handle_place(head, (uint32_t)handle);
}

static inline bool sy_handle_free_inline(sy_cache *cache, sy_handle handle) {
    const struct sy_handle_head *head = sy_handle_head_of(cache);
    if (SY_UNLIKELY(!sy_handle_in_range(head, handle))) return false;
    uint64_t live = (handle >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION) | head->plain;
    uint64_t free_word = live & ~SY_HANDLE_STATE;
    bool spent = handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX;
    if (SY_UNLIKELY(spent ||
                    !__atomic_compare_exchange_n(&head->words[(uint32_t)handle], &live, free_word,
                                                 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
        return SY_ABI_NAME(sy_handle_free_slow)(cache, handle);
    if (SY_LIKELY(sy_loaded_push(sy_handle_loaded(head), (uint32_t)handle))) return true;
    return SY_ABI_NAME(sy_handle_put_slow)(cache, (uint32_t)handle);
}

/*
 * sy_handle_alloc: allocates an object and writes its handle to *handle. Returns NULL with errno as
 * sy_cache_alloc, or EINVAL for a cache without SY_HANDLES; *handle is then unchanged.
 *
 * sy_handle_get: returns the object of a live handle of this cache, else NULL; errno is kept. If
 * another thread may free the object while you use it, call sy_handle_pin instead.
 *
 * sy_handle_free: frees the object. Returns true once for each handle; false for a handle that is
 * stale, forged, 0, or of another cache. A pinned object stays until its last pin ends.
 */
#ifdef SY_NO_INLINE
SY_API void *sy_handle_alloc(sy_cache *cache, sy_handle *handle);
SY_API void *sy_handle_get(const sy_cache *cache, sy_handle handle);
SY_API bool sy_handle_free(sy_cache *cache, sy_handle handle);
#else
static inline void *sy_handle_alloc(sy_cache *cache, sy_handle *handle) {
    return sy_handle_alloc_inline(cache, handle);
}
static inline void *sy_handle_get(const sy_cache *cache, sy_handle handle) {
    return sy_handle_get_inline(cache, handle);
}
static inline bool sy_handle_free(sy_cache *cache, sy_handle handle) {
    return sy_handle_free_inline(cache, handle);
}
#endif

SY_END_DECLS

#endif
/*
 * slabyard/heap.h: memory of any size: the malloc family over size-class caches and large spans.
 *
 * Sizes up to 128 KiB come from size classes; above 128 bytes, rounding up to a class wastes at
 * most an eighth. Larger sizes are spans of 64 KiB units. Any thread may call these functions, and
 * any thread may free memory that another allocated. Functions that fail return NULL and set errno.
 * Do not call them in a signal handler.
 */
#ifndef SLABYARD_HEAP_H
#define SLABYARD_HEAP_H

#include <stddef.h>

SY_BEGIN_DECLS

/* Allocates `size` bytes, aligned to 16 (to 8 for sizes up to 8). The content is undefined. Size 0
 * gives a unique pointer. The caller frees the memory with sy_free. Returns NULL with ENOMEM. */
SY_API void *sy_malloc(size_t size);

/* Allocates `count` times `size` bytes, all zero. Returns NULL with ENOMEM, also if the product
 * overflows. */
SY_API void *sy_calloc(size_t count, size_t size);

/*
 * Changes the size of an object to `size` bytes. The first min(old, new) bytes keep their content.
 * Returns the object's address, which may be new; the old pointer is then invalid. NULL as `object`
 * acts as sy_malloc. With size 0 a minimal object stays allocated. On failure it returns NULL with
 * ENOMEM, and the old object stays as it is. An address that is no object of the heap is reported;
 * if the fault handler returns, the result is NULL with EINVAL.
 */
SY_API void *sy_realloc(void *object, size_t size);

/* Allocates `size` bytes at a multiple of `align`. Returns NULL with EINVAL if `align` is no power
 * of two, or with ENOMEM. */
SY_API void *sy_aligned_alloc(size_t align, size_t size);

/* Frees an object that one of the functions above returned. NULL is allowed and does nothing. errno
 * is kept. A pointer that the heap did not return is reported to the fault handler
 * (slabyard/fault.h), and nothing is freed. */
SY_API void sy_free(void *object);

/* The same for an object whose size you know: `size` bytes from sy_malloc, sy_calloc or sy_realloc,
 * or from sy_aligned_alloc with an `align` of up to 16. A size of another class is reported at
 * once. A wrong size of the same class is reported if the option `check` is on. This takes a few
 * instructions more than sy_free, because the heap finds the class from the address and compares
 * the size with it. */
SY_API void sy_free_sized(void *object, size_t size);

/* Returns the number of bytes that may be used at `object`: at least as many as were asked for.
 * Returns 0 for NULL and for an address that is not the heap's. */
SY_API size_t sy_usable_size(const void *object);

SY_END_DECLS

#endif
/*
 * slabyard/heaps.h: separate heaps: memory of any size that is counted, limited and released
 * together, for example that of a tenant, a request, a plug-in, or a level of a game.
 *
 *     sy_heap *tenant = sy_heap_create(
 *         &(sy_heap_config){.name = "tenant", .limit = {.hard = 64 << 20}});
 *     char *text = sy_heap_alloc(tenant, 100);
 *     ...
 *     sy_heap_free(tenant, text);
 *     sy_heap_destroy_all(tenant);        frees all that is still live in it
 *
 * A heap has caches for the size classes of sy_malloc, created when they are first needed. Beyond
 * 128 KiB it has further classes: 8 for each doubling of the size, in whole 64 KiB. In faults and
 * statistics these caches are named after heap and size, "tenant-112". In a heap with SY_HANDLES
 * all objects have handles.
 *
 * Functions that fail return NULL or -1 and set errno; sy_last_refusal (limit.h) gives the reason.
 * Any thread may use a heap at any time, except while it is destroyed. After a fork, parent and
 * child each have their own copy.
 *
 * Misuse is reported as for caches (cache.h). A pointer of another heap, of a cache or of sy_malloc
 * is reported at once, as is a pointer that is not the start of an object. A double free is
 * reported at once if the object is the one that the thread freed last; otherwise when the object
 * reaches the slow path. With SY_CHECKED a double free is always reported at once.
 */
#ifndef SLABYARD_HEAPS_H
#define SLABYARD_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * slabyard/limit.h: limits in bytes, for the process and for heaps (heaps.h), and why an allocation
 * was refused.
 *
 * A limit counts the memory of slabs and of large objects, in units of 64 KiB, from the moment when
 * a cache or heap takes it until it is released. Free slots in a slab and free objects in a
 * magazine count too. Free units of chunks, descriptors, magazines and other tables do not count
 * (sy_stats reports them). The memory of a heap counts for the heap and for the process. Memory of
 * your own (memory.h) counts for the heap alone, not for the process.
 */
#ifndef SLABYARD_LIMIT_H
#define SLABYARD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/* The callback of a limit. `used`: bytes in use now, which have reached `soft`, or leave no room
 * below `hard` for an allocation. `soft`: sy_limit.soft. The callback must return (base.h). */
typedef void (*sy_limit_callback)(void *arg, size_t used, size_t soft);

/* The limit of an owner: the process, or a heap. Values are in bytes; 0: no limit. */
typedef struct sy_limit {
    /*
     * The owner never takes more than this: an allocation that needs more fails with ENOMEM. Before
     * it fails, Slabyard tries to make room:
     *
     *   - It releases empty slabs of the same owner's caches (except those of sy_cache_reserve),
     *     with the free objects in depots and in the magazines of this thread and of idle threads.
     *   - It calls `callback`.
     *   - It tries the allocation once more.
     *
     * If `hard` is set below the memory in use, nothing is taken away.
     */
    size_t hard;
    /*
     * `callback` is called when the memory in use reaches this value. It is called again when the
     * memory in use has fallen more than an eighth below the value and reaches it again.
     */
    size_t soft;
    /*
     * Called with `arg`, the bytes in use and `soft`. NULL: no callback. It runs in a thread that
     * allocates from the owner. For `soft` it runs at the end of the allocation that reached the
     * value. If a constructor or this callback made that allocation, it runs at the end of a later
     * one soon after.
     *
     * No lock is held. The callback may call every function of Slabyard and may free objects of any
     * cache, but it may not destroy the heap whose limit it is. It may run in several threads at a
     * time. While it runs in a thread, it is not called again in that thread.
     */
    sy_limit_callback callback;
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_limit;

/*
 * Sets the limit of the process, in place of the one before. NULL: no limit. If `soft` is reached
 * already, the next allocation that goes beyond its thread's magazines calls the callback. Any
 * thread. Returns 0; or -1 with errno and nothing changed: EINVAL (`soft` above `hard`, `soft`
 * without callback, reserved not zero) or ENOMEM (the library cannot start).
 */
SY_API int sy_set_limit(const sy_limit *limit);

/* Returns the bytes that count for the process now, whether it has a limit or not. Any thread. */
SY_API size_t sy_limit_used(void);

/* The reasons why an allocation is refused. */
typedef enum sy_refusal {
    SY_REFUSAL_NONE = 0,
    SY_REFUSAL_SYSTEM,        /* the system gave no memory, or the program's own is full */
    SY_REFUSAL_CACHE_LIMIT,   /* sy_cache_config.limit is reached */
    SY_REFUSAL_HEAP_LIMIT,    /* sy_heap_config.limit is reached */
    SY_REFUSAL_PROCESS_LIMIT, /* the limit of sy_set_limit is reached */
    SY_REFUSAL_CONSTRUCTOR,   /* a constructor failed */
} sy_refusal;

/*
 * Returns the reason for the last refused allocation of the calling thread from a cache or a heap:
 * one that returned NULL, or a batch that was short. Returns SY_REFUSAL_NONE if there was none yet.
 * An invalid argument (EINVAL) is not a refusal. Refusals inside the callback of a limit are
 * forgotten when it ends. Arenas and pools do not record their refusals.
 */
SY_API sy_refusal sy_last_refusal(void);

/* Returns the reason in English, for messages: a constant string, which you do not free. */
SY_API const char *sy_refusal_text(sy_refusal refusal);

SY_END_DECLS

#endif

SY_BEGIN_DECLS

typedef struct sy_heap sy_heap;

enum { SY_HEAP_NAME_MAX = 15 }; /* bytes of the name that are kept */

/* The configuration of a heap. Every field may be zero. */
typedef struct sy_heap_config {
    const char *name;         /* for reports; copied. NULL: "heap" */
    sy_limit limit;           /* bytes (limit.h) */
    unsigned flags;           /* SY_CHECKED, SY_HANDLES, SY_EPOCHS */
    struct sy_memory *memory; /* memory of your own for the objects (memory.h), which has to
                                 exist for longer than the heap; NULL: the system's */
    uintptr_t reserved[7];    /* zero */
} sy_heap_config;

/*
 * Creates a heap. The caller owns it until sy_heap_destroy or sy_heap_destroy_all. Each size class
 * that is used in it counts towards SY_CACHES_MAX. Returns NULL with errno EINVAL (no config,
 * another flag, a `limit` that sy_set_limit would refuse, reserved not zero) or ENOMEM.
 */
SY_API sy_heap *sy_heap_create(const sy_heap_config *config);

/*
 * Destroys a heap without live objects and releases all its memory. Any thread may call it; no
 * other thread may be using the heap. NULL is allowed and does nothing. Returns 0. Returns -1 with
 * EBUSY and nothing changed if objects are live, or if it is called by a function of yours that the
 * heap has called (the callback of its limit, discard, import, release, a fault handler).
 */
SY_API int sy_heap_destroy(sy_heap *heap);

/* The same for a heap with live objects, pinned ones included. Their addresses become invalid and
 * their handles stay stale. The time depends on the number of slabs, not of objects. If a function
 * of yours calls it that the heap has called, the heap is destroyed later: when the heap's
 * functions have returned. */
SY_API void sy_heap_destroy_all(sy_heap *heap);

/* ---- objects by address ---- */

/* Allocates `size` bytes, aligned to 16 (to 8 for sizes up to 8), with undefined content. Size 0
 * gives a unique pointer. Returns NULL with ENOMEM: no memory, or a limit is reached. */
SY_API void *sy_heap_alloc(sy_heap *heap, size_t size);

/* Allocates `count` times `size` bytes, all zero. Returns NULL with ENOMEM, also if the product
 * overflows. */
SY_API void *sy_heap_calloc(sy_heap *heap, size_t count, size_t size);

/* Allocates `size` bytes at a multiple of `align`, which takes at least `align` bytes. Returns NULL
 * with EINVAL if `align` is no power of two up to SY_CACHE_ALIGN_MAX, or with ENOMEM. */
SY_API void *sy_heap_aligned_alloc(sy_heap *heap, size_t align, size_t size);

/*
 * Changes the size of an object to `size` bytes. The first min(old, new) bytes keep their content.
 * If the size class changes, the object moves: the old pointer becomes invalid and its handle
 * stale. Returns the object's address. NULL as `object` acts as sy_heap_alloc. With size 0 a
 * minimal object stays allocated. Returns NULL with ENOMEM and leaves the old object as it is; or,
 * after a report, NULL with EINVAL if the address is no object of the heap.
 */
SY_API void *sy_heap_realloc(sy_heap *heap, void *object, size_t size);

/* Frees an object of this heap. NULL is allowed and does nothing. errno is kept. */
SY_API void sy_heap_free(sy_heap *heap, void *object);

/* The same for an object from sy_heap_alloc, sy_heap_calloc or sy_heap_realloc whose size you know.
 * A size of another class is reported. */
SY_API void sy_heap_free_sized(sy_heap *heap, void *object, size_t size);

/* Frees `object` and returns true if it is a live object of this heap; else returns false and does
 * nothing. Any address may be passed. Thread rule and cost are those of sy_cache_try_free. */
SY_API bool sy_heap_try_free(sy_heap *heap, void *object);

/* Returns the number of bytes that may be used at `object`: at least as many as were asked for.
 * Returns 0 for NULL, and for an address where no object of the heap can begin. */
SY_API size_t sy_heap_usable_size(const sy_heap *heap, const void *object);

/*
 * Returns the cache from which sy_heap_alloc takes objects of `size` bytes. If you know the size
 * beforehand, call sy_cache_alloc and sy_cache_free on this cache: they are inline. All sizes up to
 * 1 KiB that round up to the same multiple of 8 have the same cache.
 *
 * The cache belongs to the heap and exists as long as the heap: sy_cache_destroy refuses it, and
 * you must not pass it to sy_cache_destroy_all. Its objects belong to the heap too, so both
 * sy_cache_free and sy_heap_free accept them. Checks know the size of the class, not the size that
 * you asked for, so pass the size of the class to sy_heap_free_sized.
 *
 * The cache is created if necessary. Returns NULL with ENOMEM.
 */
SY_API sy_cache *sy_heap_cache_for(sy_heap *heap, size_t size);

/* ---- objects by handle: a heap with SY_HANDLES (handle.h) ---- */

/* Allocates an object of `size` bytes and writes its handle to *handle. Returns NULL with errno as
 * sy_heap_alloc, or EINVAL without SY_HANDLES; *handle is then unchanged. */
SY_API void *sy_heap_alloc_handle(sy_heap *heap, size_t size, sy_handle *handle);

/*
 * As sy_handle_get, sy_handle_free, sy_handle_pin and sy_handle_unpin, for handles of this heap.
 * Any 64 bits may be passed. Handles that are stale or forged, or of another heap or cache, are
 * refused.
 */
SY_API void *sy_heap_get(const sy_heap *heap, sy_handle handle);
SY_API bool sy_heap_free_handle(sy_heap *heap, sy_handle handle);
SY_API void *sy_heap_pin(sy_heap *heap, sy_handle handle);
SY_API void sy_heap_unpin(sy_heap *heap, sy_handle handle);

/* As sy_handle_each, for objects of all sizes. Size classes that `visit` uses for the first time
 * may be left out. */
SY_API int sy_heap_each(sy_heap *heap, sy_handle_visit visit, void *arg);

/* ---- trimming and statistics ---- */

/* Returns free memory of the heap to the operating system, as sy_cache_trim. Returns the number of
 * bytes. */
SY_API size_t sy_heap_trim(sy_heap *heap);

typedef struct sy_heap_stats {
    char name[SY_HEAP_NAME_MAX + 1];
    size_t used;         /* bytes that count for the limit */
    size_t limit;        /* bytes: the hard limit; 0: none */
    size_t soft;         /* bytes; 0: none */
    size_t objects;      /* number of live objects */
    size_t live_bytes;   /* bytes of live objects, each as large as its class */
    size_t caches;       /* number of classes that were used */
    uint64_t limits_hit; /* allocations refused because of this heap's limit */
} sy_heap_stats;

/* Fills `stats`. The figures are exact while no thread uses the heap; else each is a snapshot.
 * Returns 0, or -1 with EINVAL for NULL. */
SY_API int sy_heap_get_stats(const sy_heap *heap, sy_heap_stats *stats);

SY_END_DECLS

#endif
/*
 * slabyard/memory.h: caches over memory of your own: shared memory, huge pages, a file, a device.
 * Caches without it take their memory from the operating system.
 *
 * A memory is an engine instance: its chunks of 4 MiB in your region hold the slabs of the caches
 * and heaps that are created with it (sy_cache_config.memory, sy_heap_config.memory), and nothing
 * else. Slabyard writes into the region: objects, and descriptors in the first 64 KiB of each
 * chunk.
 *
 * Other processes that map the region may read and write the objects; everything else belongs to
 * this process. After a fork, at most one of parent and child may use a memory that they share and
 * its caches. A trim of all caches (sy_trim) is a use too.
 */
#ifndef SLABYARD_MEMORY_H
#define SLABYARD_MEMORY_H

#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

struct sy_vmem;

typedef struct sy_memory sy_memory;

/* The configuration of a memory: either a region, or an arena of addresses. */
typedef struct sy_memory_config {
    const char *name; /* copied; NULL: "memory" */

    /* The region: its start, and its size in bytes. It must be readable and writable as long as the
     * memory exists, may have any content, and must not be memory of Slabyard. Only whole 4 MiB at
     * multiples of 4 MiB are used. A chunk that once held slabs holds only slabs from then on. An
     * object that does not fit in a chunk needs 4 MiB or more that never held slabs. */
    void *start;
    size_t bytes;
    /* Or an arena, from which the memory takes addresses of such memory, 4 MiB and more at a time.
     * The arena may import them (vmem.h), and may serve other users too. Its quantum is 4 MiB at
     * most. It must outlive the memory. While the memory exists, it frees only segments that held
     * large objects. It frees all others when it is destroyed. */
    struct sy_vmem *arena;

    /*
     * Called by trims, and by frees of large objects, for a range of whole pages that holds
     * nothing. The function may return the range's memory to the system, and the content may become
     * anything. It returns 0, or another value if it did not release the memory. NULL: the memory
     * is kept.
     *
     * No lock is held, and no other thread waits until the function ends. While it runs, its range
     * cannot be allocated. So an allocation that finds nothing else free is refused; this includes
     * one that the function itself makes. A trim passes at most 256 KiB of small objects at a time.
     * The function must return (base.h).
     */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    uintptr_t reserved[4]; /* zero */
} sy_memory_config;

/*
 * Creates a memory. The caller owns it until sy_memory_destroy. Any thread. Returns NULL with errno
 *
 *   EINVAL  no config; no region and no arena, or both; less than 4 MiB of use in the region; past
 *           the end of the address space; memory of Slabyard; an arena with a larger quantum; a
 *           reserved field that is not zero
 *   ENOMEM  no memory for the records about it
 */
SY_API sy_memory *sy_memory_create(const sy_memory_config *config);

/* Destroys a memory and frees to the arena all that was taken from it. No other thread may be using
 * the memory. NULL is allowed and does nothing. Returns 0; or -1 with EBUSY and nothing changed if
 * there are caches or heaps over it. */
SY_API int sy_memory_destroy(sy_memory *memory);

/* Bytes: mapped == used + free + headers. */
typedef struct sy_memory_stats {
    size_t chunks;  /* number of chunks, 4 MiB each */
    size_t mapped;  /* of chunks and large objects */
    size_t used;    /* by slabs */
    size_t free;    /* in no slab */
    size_t clean;   /* of free: discarded, or never touched if the system provides it */
    size_t headers; /* 64 KiB for each 4 MiB in use, which hold no objects */
} sy_memory_stats;

/* Fills `stats`. NULL for `memory` means the memory that all other caches and sy_malloc take from
 * the operating system. Any thread. Returns 0, or -1 with EINVAL if `stats` is NULL. */
SY_API int sy_memory_get_stats(const sy_memory *memory, sy_memory_stats *stats);

SY_END_DECLS

#endif
/*
 * slabyard/options.h: options that you set when a program starts, or by a call, without
 * recompiling.
 *
 *     SLABYARD=check,poison,quarantine=1000 ./server
 *
 * The environment variable SLABYARD is read when the library is first used. (It is ignored in
 * programs that run with more rights than their user, AT_SECURE.) It holds options separated by
 * commas, each `name` or `name=value`. Unknown options and values are reported on stderr, and the
 * others apply. The same options can be set by sy_set_options. All options, their values and
 * meanings are in docs/options.md and in sy_each_option().
 *
 * Options that change how objects are laid out apply to a cache when it is created, and to the size
 * classes of sy_malloc when they are first used. So set them before.
 */
#ifndef SLABYARD_OPTIONS_H
#define SLABYARD_OPTIONS_H

#include <stddef.h>

SY_BEGIN_DECLS

typedef struct sy_option {
    const char *name;
    const char *values;  /* the values allowed after `=`, for people: "N, 1 to 64" */
    const char *bare;    /* the meaning of the name alone; NULL: a value is needed */
    const char *initial; /* the value when the option was not set */
    const char *meaning; /* a sentence */
} sy_option;

/* Sets options, written as in SLABYARD. If two contradict each other, the later one applies. Any
 * thread. Returns 0; or -1 with EINVAL and nothing changed: an option is unknown or has no such
 * value. */
SY_API int sy_set_options(const char *text);

/* Writes the value of an option, as it was set last, to `value`, in the form that sy_set_options
 * takes. `room`: bytes at `value`, for the text and its terminating 0. Returns the length of the
 * text; or -1 with EINVAL (no such option) or ERANGE (not enough room). Any thread. */
SY_API int sy_get_option(const char *name, char *value, size_t room);

/* Calls `visit` for each option until `visit` returns a value other than 0. Returns that value, or
 * 0. */
SY_API int sy_each_option(int (*visit)(void *arg, const sy_option *option), void *arg);

SY_END_DECLS

#endif
/*
 * pool.h: objects of one size for one thread.
 *
 * A pool allocates slots of one size. A freed slot goes on top of a list that runs through the free
 * slots themselves. So the object that was freed last is the next one allocated, and is still in
 * the processor's cache. Slots that were never used are carved one by one from the front of
 * untouched memory. There is no lock, no lookup, and no metadata beside the objects.
 *
 * Thread rule: one thread at a time. A pool may move between threads if they synchronise. Different
 * pools share nothing. Do not call these functions in a signal handler.
 *
 * Misuse that a pool finds by default: if the object that was freed last is freed again, a double
 * free is reported at once to the fault handler (fault.h), unless SY_NO_DOUBLE_FREE_CHECK of
 * loaded.h is defined. Other misuse is not found. If other frees come between the two frees of an
 * object, the list becomes a circle, and one slot is allocated to two owners. A write to a freed
 * object overwrites the list. After such a double free sy_pool_in_use() still returns, and its
 * result lies between 0 and the number of slots ever allocated.
 *
 * With SY_CHECKED or another flag of checks.h, or with SLABYARD=check, a pool keeps its records
 * outside the objects and finds all of these mistakes. For this, its functions must be calls. In
 * code compiled with SY_NO_INLINE each free is checked, and with SY_POISON free objects are
 * verified once more when the process ends (option `exit-check`). In code with inline frees, damage
 * around an object is found when the pool is reset or destroyed, and a write to a free object is
 * never found. In a pool without checks, free slots cannot be verified.
 *
 * Memory: the pool takes address space in extents. Each extent is as large as all before it
 * together (1 GiB at most, unless one object needs more), so 8 GiB of objects take about twenty
 * mappings. The memory is returned when the pool is destroyed, or trimmed while no object is live.
 */
#ifndef SLABYARD_POOL_H
#define SLABYARD_POOL_H

SY_BEGIN_DECLS

/* Populate memory with pages before slots are carved from it, so that an allocation never waits for
 * a page. A bounded pool populates all its memory when it is created, an unbounded one each chunk
 * when it grows. */
#define SY_POOL_PREFAULT 1u

/* Ask the operating system for huge pages; chunks are then at least 2 MiB. If the system has no
 * huge pages, this is no error. */
#define SY_POOL_HUGE 2u

enum { SY_POOL_NAME_MAX = 31 }; /* bytes of the name that are kept */

/* The configuration of a pool. Every field but `size` may be zero. */
typedef struct sy_pool_config {
    size_t size;        /* bytes of an object, at least 1 */
    size_t align;       /* bytes: a power of two; 0: 16, or 8 for objects under 16 bytes */
    size_t chunk_bytes; /* least growth in bytes, in whole pages; 0: 64 KiB. Unused if bounded */
    size_t capacity;    /* objects at a time at most, whose memory is taken at once; 0: unbounded */
    unsigned flags;     /* SY_POOL_..., SY_CHECKED and other flags of checks.h */
    const char *name;   /* for reports; copied. NULL: "pool" */
    uintptr_t reserved[3]; /* zero */
} sy_pool_config;

struct sy_pool_extent;

/* Not for callers: the inline functions below need this structure. The words that they use are in
 * the second half of a cache line, where no object begins whose size is a multiple of 64 bytes. The
 * processor compares addresses first by their low 12 bits, so a write to such an object is not
 * mistaken for a write to these words. */
typedef struct sy_pool {
    struct sy_pool_extent *extent; /* the extent that slots are carved from */
    size_t carved_before;          /* slots in the earlier extents */
    size_t capacity;               /* 0: unbounded */
    size_t chunk_bytes;
    size_t stride;        /* bytes from slot to slot */
    void *free;           /* the slot freed last; each holds the address of the next */
    unsigned char *limit; /* end of the last slot that can be carved without growing */
    unsigned char *bump;  /* the next slot to carve */
} sy_pool;

/*
 * Creates an empty pool. The caller owns it until sy_pool_destroy. Returns NULL with errno
 *
 *   EINVAL  no config; size 0 or over half the address space; align not a power of two, or over
 *           half the address space; an unknown flag; a reserved field that is not zero
 *   ENOMEM  not enough memory, for `capacity` slots or for the pool itself
 */
SY_API sy_pool *sy_pool_create(const sy_pool_config *config);

/* Destroys a pool with all its objects and releases all its memory. NULL is allowed and does
 * nothing. */
SY_API void sy_pool_destroy(sy_pool *pool);

/* Frees every object and keeps all memory. The function touches no slot, so it takes the same time
 * for one object as for millions. The next allocations begin again at the first slot, in order of
 * address. */
SY_API void sy_pool_reset(sy_pool *pool) SY_NONNULL(1);

/* Returns the pool's memory to the operating system if no object is live, except the pages that
 * hold the pool itself. If an object is live, it does nothing. Returns the number of bytes,
 * including pages that were never touched. Always returns 0 for a pool with checks or with
 * SY_POOL_PREFAULT. Like sy_pool_in_use, it takes a load for each free slot. The next allocations
 * begin again at the first slot, in order of address. */
SY_API size_t sy_pool_trim(sy_pool *pool) SY_NONNULL(1);

/* Returns the exact number of live objects. It counts the free list, which takes a load for each
 * free slot. */
SY_API SY_MUST_USE size_t sy_pool_in_use(const sy_pool *pool) SY_NONNULL(1);

/* Returns the bytes from one slot to the next: the size rounded up to the alignment, at least 8.
 * All of them may be used. In a pool with checks: the bytes that may be used. */
SY_API SY_MUST_USE size_t sy_pool_slot_size(const sy_pool *pool) SY_NONNULL(1);

/* Returns how many objects fit. For a bounded pool: its capacity. For an unbounded one: the number
 * that it can hold before it grows again, live objects included. */
SY_API SY_MUST_USE size_t sy_pool_capacity(const sy_pool *pool) SY_NONNULL(1);

/* A word of your own in the pool: 0 at first. No other function changes it. */
static inline uintptr_t *sy_pool_word(sy_pool *pool) {
    return SY_CAST(uintptr_t *, SY_CAST(void *, pool + 1));
}

/* Not for callers: the slow path of sy_pool_alloc. The free list is empty and no slot is left to
 * carve, so the pool grows, and one slot is carved. */
SY_API SY_COLD void *SY_ABI_NAME(sy_pool_grow)(sy_pool *pool) SY_NONNULL(1);

/* Not for callers: the slow path of sy_pool_free for the object that was freed last. It reports the
 * double free. */
SY_API SY_COLD void SY_ABI_NAME(sy_pool_freed_twice)(sy_pool *pool, void *object) SY_NONNULL(1);

/* The first word of a free slot. It may be read as this type, whatever type the object had. */
typedef void *sy_pool_link __attribute__((may_alias));

static inline void *sy_pool_alloc_inline(sy_pool *pool) {
    void *object = pool->free;
    if (SY_LIKELY(object != NULL)) {
        pool->free = *SY_CAST(sy_pool_link *, object);
        return object;
    }
    unsigned char *fresh = pool->bump;
    if (SY_LIKELY(fresh != pool->limit)) {
        pool->bump = fresh + pool->stride;
        return fresh;
    }
    return SY_ABI_NAME(sy_pool_grow)(pool);
}

static inline void sy_pool_free_inline(sy_pool *pool, void *object) {
    void *newest = pool->free;
    if (SY_UNLIKELY(object == NULL)) return;
#ifndef SY_NO_DOUBLE_FREE_CHECK /* see loaded.h */
    if (SY_UNLIKELY(object == newest)) {
        SY_ABI_NAME(sy_pool_freed_twice)(pool, object);
        return;
    }
#endif
    *SY_CAST(sy_pool_link *, object) = newest;
    pool->free = object;
}

/*
 * sy_pool_alloc: allocates an object with undefined content. Returns NULL with ENOMEM if the pool
 * is bounded and full, or there is no memory; the pool is then unchanged.
 *
 * sy_pool_free: frees an object of this pool. NULL is allowed and does nothing.
 */
#if defined(SY_NO_INLINE)
SY_API SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) SY_NONNULL(1);
SY_API void sy_pool_free(sy_pool *pool, void *object) SY_NONNULL(1);
#else
static inline SY_MUST_USE void *sy_pool_alloc(sy_pool *pool) { return sy_pool_alloc_inline(pool); }
static inline void sy_pool_free(sy_pool *pool, void *object) { sy_pool_free_inline(pool, object); }
#endif

SY_END_DECLS

#endif
/*
 * slabyard/stats.h: statistics: where the memory is, and how often the slow paths ran.
 *
 * Counting costs the fast paths nothing, because it is done once for each magazine. The figures of
 * a cache are exact while no other thread uses or trims the cache; else each is a snapshot.
 */
#ifndef SLABYARD_STATS_H
#define SLABYARD_STATS_H

#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

typedef struct sy_cache_stats {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t object_size, slot_size, align; /* bytes */
    size_t slab_bytes, slots_per_slab;
    unsigned colours;        /* number of different offsets at which slabs begin */
    unsigned magazine_items; /* most objects that a magazine of the cache holds */

    /* Objects: slots + guarded == in_use + in_depot + in_loaded + in_quarantine + free + retired.
     */
    size_t slots;         /* in all slabs */
    size_t in_use;        /* held by the program */
    size_t in_depot;      /* free, in magazines in the depot */
    size_t in_loaded;     /* free, in magazines of threads */
    size_t guarded;       /* of in_use: on pages of their own, in no slab (checks.h) */
    size_t in_quarantine; /* free, kept back until others were freed (checks.h) */
    size_t free;          /* free, in slabs */
    size_t retired;       /* never used again: all their generations are used up */
    size_t limit;         /* 0: none */

    /* Slabs: slabs == full + partial + empty. */
    size_t slabs, full, partial, empty;

    /* Bytes: mapped == slots * slot_size + tail. */
    size_t mapped;     /* bytes of slabs */
    size_t tail;       /* of slabs: too small for a slot, or used for colouring */
    size_t waste;      /* tail, and the bytes by which slots exceed objects */
    size_t discarded;  /* of mapped: returned to the OS by a trim and not touched since */
    size_t never_used; /* of mapped: slots that were never allocated */

    /* Events since creation. */
    uint64_t refills, flushes;           /* magazines filled from slabs, emptied into slabs */
    uint64_t depot_hits, depot_misses;   /* requests for a full magazine: found, not found */
    uint64_t depot_steals;               /* of the hits: from the shard of another CPU */
    uint64_t slabs_made, slabs_released; /* taken from the chunks, returned to them */
    uint64_t slabs_filled, slabs_opened; /* became full; were full, and are so no longer */
    uint64_t slabs_reused;               /* were empty, and are so no longer */
    uint64_t constructed, destructed;
    uint64_t limits_hit; /* allocations refused for a limit in objects or in bytes (limit.h) */
} sy_cache_stats;

/* Fills `stats`. Any thread. Returns 0, or -1 with EINVAL for NULL. */
SY_API int sy_cache_get_stats(const sy_cache *cache, sy_cache_stats *stats);

/*
 * The memory of the process, in bytes. The first group of fields is address space that may be
 * written. A page of it holds memory from the first write until it is returned. The second group is
 * memory beside it.
 *
 *     mapped == slabs + spans + units_free + chunk_headers
 *     memory held <= mapped - units_clean + magazines + side
 *
 * Not counted here: the words of handles (8 bytes for each object), the tables that lead from an
 * address to its chunk (some pages), guarded objects, and your own pools.
 */
typedef struct sy_stats {
    size_t caches; /* number of, including the size classes of the heap */
    size_t chunks; /* number of */

    size_t mapped;        /* address space of chunks, 4 MiB each, and of large spans */
    size_t slabs;         /* of mapped: in caches; unused parts hold no memory */
    size_t spans;         /* of mapped: large objects */
    size_t units_free;    /* of mapped: units in chunks, in no slab or span, or kept for reuse */
    size_t units_clean;   /* of units_free: those that hold no memory */
    size_t chunk_headers; /* of mapped: 64 KiB for each chunk. They hold no memory, but the chunk's
                             descriptors hold 16 KiB elsewhere, which are counted here */

    size_t magazines; /* memory of magazines, and of each thread's part of them */
    size_t side;      /* memory of caches, of bitmaps that do not fit in descriptors, and of the
                         arena that gives out address space */

    size_t memory_limit; /* bytes that control groups and resource limits grant; 0: no limit */
    unsigned cpus;       /* processors that affinity and control groups let it use at once */
    uint64_t limits_hit; /* allocations refused for the limit of the process (limit.h) */
} sy_stats;

/* Fills `stats`. It reads system files to find the limits of the system. errno is kept. Any
 * thread. */
SY_API void sy_get_stats(sy_stats *stats);

/* ---- every cache ---- */

typedef enum sy_cache_kind {
    SY_CACHE_OF_PROGRAM, /* made by sy_cache_create */
    SY_CACHE_OF_SIZES,   /* a size class of sy_malloc */
    SY_CACHE_OF_HEAP,    /* a size class of a sy_heap: named after the heap and the size */
} sy_cache_kind;

typedef struct sy_cache_account {
    const sy_cache *cache; /* identifies it; another thread may destroy it meanwhile */
    sy_cache_kind kind;
    sy_cache_stats stats;
} sy_cache_account;

/*
 * Calls `visit` for each cache until `visit` returns a value other than 0. Returns that value, or 0
 * at the end; -1 with EINVAL for NULL. Any thread, at any time. A cache that another thread creates
 * or destroys meanwhile may be visited or not. Large objects of sy_malloc (sy_stats.spans) belong
 * to no cache.
 *
 * `visit` gets a copy of the figures, which is valid until it returns. No lock is held, so `visit`
 * may call any function; it may create and destroy caches, also the visited one.
 */
SY_API int sy_each_cache(int (*visit)(void *arg, const sy_cache_account *account), void *arg);

/*
 * Writes a readable account of the process and of each cache to a file descriptor, in lines of at
 * most 80 columns, the caches with the most memory first. The format is made for people and may
 * change. Any thread; the caller must hold no lock that the reader of the descriptor waits for. The
 * function uses neither stdio nor malloc, and takes a few pages of memory until it returns. Returns
 * 0; or -1 with ENOMEM, or with the errno of write(), when a part may have been written. With the
 * option `stats` the account is written to stderr at exit.
 */
SY_API int sy_print_stats(int fd);

SY_END_DECLS

#endif
/*
 * slabyard/vmem.h: arenas, which allocate segments of any resource that is a set of integers:
 * addresses, process ids, ports, disk blocks, offsets in a region shared with a device.
 *
 * An arena has spans: ranges of integers that you added or that it imported. Each span is cut into
 * segments, which are allocated or free. The arena never writes into the resource: its records
 * (boundary tags) are in memory of their own.
 *
 *     span                                        span
 *     | allocated | free    | allocated | free |  | free                  |
 *
 *   - Free neighbours are one segment: segments that were freed one by one can be allocated as one.
 *   - Allocating and freeing take the same short time for ten segments as for ten million: free
 *     segments are in lists by size, allocated ones in a table by value.
 *   - An arena may import spans from another arena, or by functions of yours. It returns each span
 *     once, when all of it is free.
 *   - Small sizes may be kept in quantum caches: magazines of the threads, as fast as those of an
 *     object cache.
 *
 * After Bonwick and Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and
 * Arbitrary Resources", USENIX 2001, section 4.
 *
 * 0 is a valid value. So functions write values through a pointer and return a status: 0, or -1
 * with errno and nothing changed. Sizes are in units of the resource and are rounded up to a
 * multiple of the arena's quantum. Every value is a multiple of the quantum.
 *
 * Thread rule: any thread may call every function at any time, except sy_vmem_destroy. Do not call
 * these functions in a signal handler. Functions of yours are called with no lock held.
 */
#ifndef SLABYARD_VMEM_H
#define SLABYARD_VMEM_H

#include <stddef.h>
#include <stdint.h>

SY_BEGIN_DECLS

/* An arena. The code that created it owns it. */
typedef struct sy_vmem sy_vmem;

enum {
    SY_VMEM_NAME_MAX = 31,    /* bytes of a name that are kept */
    SY_VMEM_CACHED_SIZES = 16 /* largest number of quantum caches: for 1, 2 ... 16 quanta */
};

/*
 * Imports a span of at least `size` units, a multiple of the arena's quantum. The function writes
 * the start of the span to *start and its size to *got (initially `size`), both multiples of the
 * quantum. It returns 0, or another value if it has no span. The span belongs to the arena until it
 * is released. Import and release may use other arenas, but not the arena that they serve, and may
 * not call sy_thread_idle or sy_thread_flush. They must return (base.h).
 */
typedef int (*sy_vmem_import)(sy_vmem *source, void *arg, size_t size, uintptr_t *start,
                              size_t *got);

/* Releases an imported span: all of it, once. It must not fail. */
typedef void (*sy_vmem_release)(sy_vmem *source, void *arg, uintptr_t start, size_t size);

/* The configuration of an arena. Every field may be zero: an arena with the quantum 1 and no
 * span. */
typedef struct sy_vmem_config {
    const char *name;  /* copied; NULL: "arena" */
    uintptr_t base;    /* the start of the first span, as in sy_vmem_add */
    size_t size;       /* the size of the first span; 0: no span */
    size_t quantum;    /* a power of two that divides every value and size; 0: 1 */
    size_t cached_max; /* the largest size, after rounding up, that is kept in quantum caches: at
                          most 16 quanta; 0: none. Free segments of these sizes then wait in
                          magazines until the same size is allocated: up to 127 in a magazine,
                          two magazines a thread, and 4,096 segments or more for each processor.
                          Do not use it for scarce resources, nor if every free must be checked
                          at once */

    /* Where spans come from when the arena has no room. (With instant fit, it has no room if none
     * of the first 64 candidates fits, provided that the source can supply a span.) Set both
     * functions or neither. Without functions, a source serves by sy_vmem_alloc and sy_vmem_free;
     * its quantum must divide the quantum of this arena. */
    sy_vmem_import import;
    sy_vmem_release release;
    sy_vmem *source;   /* passed to the functions, which may do without; must outlive the arena */
    void *arg;         /* passed to the functions */
    size_t import_min; /* smallest import in units; 0: as needed */
    uintptr_t reserved[4]; /* zero */
} sy_vmem_config;

/*
 * Creates an arena. The caller owns it until sy_vmem_destroy. Any thread. Returns NULL with errno
 *
 *   EINVAL  no config; quantum not a power of two; base or size not a multiple of it, or past the
 *           end of the integers; cached_max over 16 quanta; one of import and release without the
 *           other; import_min without either or a source; a source whose quantum is larger; a
 *           reserved field that is not zero
 *   ENOMEM  no memory, or no client number for a quantum cache (16,384 for all caches together)
 */
SY_API sy_vmem *sy_vmem_create(const sy_vmem_config *config);

/* Destroys an arena: releases its imported spans and all its memory. No other thread may be using
 * the arena. NULL is allowed and does nothing. Returns 0; or -1 with EBUSY and nothing changed if a
 * segment is allocated, or if its import or release function is running. */
SY_API int sy_vmem_destroy(sy_vmem *arena);

/*
 * Adds the span [start, start + size), which stays until the arena is destroyed. Returns 0, or -1
 * with errno
 *
 *   EINVAL  size 0; start or size not a multiple of the quantum; past the end of the integers
 *   EEXIST  some of it is in the arena already
 *   ENOMEM  no memory for a tag, or the arena would have more than SIZE_MAX units
 */
SY_API int sy_vmem_add(sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/* Which of the free segments that are large enough is allocated. */
typedef enum sy_vmem_fit {
    SY_VMEM_INSTANT, /* the first segment of a list in which every segment fits: constant time
                        while there is one. Otherwise a segment that fits from the one list in
                        which some may */
    SY_VMEM_BEST,    /* the smallest: searches one list, which may be long */
    SY_VMEM_NEXT,    /* the first one behind the last allocation of this kind, in order of value,
                        starting again at the lowest: no value is used again before all others
                        were used. For ids. An arena has one such position, so use it for one
                        range and one kind of request. The search looks at about the square root
                        of the number of segments at most, unless most of the free ones are too
                        small */
} sy_vmem_fit;

/*
 * Allocates `size` units and writes their first value to *value. Any thread. With SY_VMEM_INSTANT,
 * sizes that have a quantum cache come from it. Returns 0, or -1 with errno
 *
 *   EINVAL  size 0, or so large that rounding it to the quantum overflows; unknown fit
 *   ENOMEM  no free segment is large enough, and nothing can be imported; no memory for a tag
 */
SY_API int sy_vmem_alloc(sy_vmem *arena, size_t size, sy_vmem_fit fit, uintptr_t *value)
    SY_NONNULL(1, 4);

/* Conditions for a segment. Every field may be zero: no condition. */
typedef struct sy_vmem_constraints {
    size_t align;   /* a power of two; 0: the quantum. value is `phase` above a multiple of it */
    size_t phase;   /* less than align, a multiple of the quantum */
    size_t nocross; /* a power of two; 0: none. No multiple of it is in (value, value + size) */
    uintptr_t min;  /* value is not less */
    uintptr_t max;  /* value + size is not more; 0: the end of the integers */
} sy_vmem_constraints;

/*
 * Allocates `size` units under constraints, never from a quantum cache. NULL: no constraints. Any
 * thread. Returns 0, or -1 with errno
 *
 *   EINVAL  as sy_vmem_alloc; align or nocross not a power of two, or less than the quantum; phase
 *           not below align or not a multiple of the quantum; constraints that no value can satisfy
 *           (nocross or max - min less than size, max not above min, an align and phase that cross
 *           everywhere)
 *   ENOMEM  as sy_vmem_alloc. At most one span is imported for the request, and it is released at
 *           once if min and max exclude it
 *
 * align, phase, nocross and a bound that most free segments satisfy cost no more than
 * sy_vmem_alloc. If few or none of the free segments that are large enough lie between min and max,
 * the function looks at all of them before it takes one or fails: the time is proportional to their
 * number.
 */
SY_API int sy_vmem_xalloc(sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                          sy_vmem_fit fit, uintptr_t *value) SY_NONNULL(1, 5);

/*
 * Frees a segment of sy_vmem_alloc; pass the size that was asked for. Any thread. A value that is
 * not allocated, or another size, is a fault (fault.h), reported with the arena's name. If the
 * fault handler returns, the result is -1 with EINVAL and nothing changed. Otherwise the function
 * returns 0 and cannot fail.
 *
 * A size that has a quantum cache goes to the cache. Then only the value that this thread freed
 * last is checked at once. Any other wrong value is found when the cache passes it on: the call has
 * returned 0, and the fault is reported later.
 */
SY_API int sy_vmem_free(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/* The same for a segment of sy_vmem_xalloc. It bypasses the quantum caches and is checked at once.
 * Each of the two functions may free segments of either allocation function. */
SY_API int sy_vmem_xfree(sy_vmem *arena, uintptr_t value, size_t size) SY_NONNULL(1);

/*
 * Changes the size of an allocated segment from `size` to `new_size`; the start stays. Growing
 * takes units from the free segment behind it (a segment in a quantum cache is not free); shrinking
 * adds units to that segment. Any thread. Returns 0, or -1 with errno
 *
 *   EINVAL  new_size as in sy_vmem_alloc; value or size as in sy_vmem_free, after the report
 *   ENOMEM  the segment behind it is not free or too small, or the span ends; no memory for a tag
 */
SY_API int sy_vmem_resize(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size)
    SY_NONNULL(1);

/* Takes free segments out of the quantum caches: those of this thread, of the depot, and of idle
 * and ended threads. Those of other running threads follow at their next exchange of magazines. An
 * allocation that finds no room does this by itself before it fails. Any thread. */
SY_API void sy_vmem_drain(sy_vmem *arena) SY_NONNULL(1);

/* ---- sizes, walks and statistics ---- */

/* What sy_vmem_size counts and sy_vmem_walk visits: any of these together. */
enum {
    SY_VMEM_ALLOCATED = 1, /* segments, including those in quantum caches */
    SY_VMEM_FREE = 2,      /* segments */
    SY_VMEM_SPANS = 4,
};

/* Returns 1 if all of [start, start + size) lies in spans of the arena (neighbouring spans count as
 * one); else 0. */
SY_API int sy_vmem_contains(const sy_vmem *arena, uintptr_t start, size_t size) SY_NONNULL(1);

/* Returns a number of units. SY_VMEM_FREE: the free ones. SY_VMEM_ALLOCATED: the allocated ones
 * without those in quantum caches (exact while no thread uses these caches). Both together: all
 * units of the arena. */
SY_API size_t sy_vmem_size(const sy_vmem *arena, unsigned what) SY_NONNULL(1);

/* Called for each span or segment; `what` is one of the three constants. A return value other than
 * 0 ends the walk. */
typedef int (*sy_vmem_visit)(void *arg, unsigned what, uintptr_t start, size_t size);

/*
 * Calls `visit` for every span and segment in `what`, in rising order of value, a span before its
 * segments. They are visited as they were at one moment. First, free segments are taken out of the
 * quantum caches, as by sy_vmem_drain; those that running threads hold count as allocated. `visit`
 * may use the arena, but not destroy it. Returns 0; or the value with which `visit` ended the walk;
 * or -1 with errno: EINVAL (`what` is 0 or unknown), ENOMEM (no memory for the snapshot).
 */
SY_API int sy_vmem_walk(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg)
    SY_NONNULL(1, 3);

typedef struct sy_vmem_stats {
    char name[SY_VMEM_NAME_MAX + 1];
    size_t quantum;

    /* Units: total == allocated + cached + free. */
    size_t total;
    size_t allocated; /* held by callers */
    size_t cached;    /* free, in quantum caches */
    size_t free;
    size_t imported;     /* of total */
    size_t largest_free; /* of the largest free segment, or of one at most an eighth smaller */

    /* Counts. */
    size_t spans, imported_spans;
    size_t segments_allocated; /* including those in quantum caches */
    size_t segments_free;
    size_t buckets; /* of the table of allocated segments */

    /* Events since creation. Quantum caches allocate and free a magazine at a time, so operations
     * on them are not counted. */
    uint64_t allocs, frees;     /* successful ones */
    uint64_t failures;          /* allocations without room and without an import */
    uint64_t imports, releases; /* of spans that were used */
    uint64_t probes;            /* segments looked at by allocations */
    uint64_t steps;             /* segments looked at by frees and resizing, to find theirs */

    size_t bytes; /* of memory mapped for tags and the table */
} sy_vmem_stats;

/* Fills `stats`. Any thread. Returns 0, or -1 with EINVAL for NULL. */
SY_API int sy_vmem_get_stats(const sy_vmem *arena, sy_vmem_stats *stats);

/* Examines every structure of the arena and returns the number of broken invariants: 0. It is for
 * tests, and holds the arena's lock for the whole time. */
SY_API size_t sy_vmem_verify(const sy_vmem *arena) SY_NONNULL(1);

SY_END_DECLS

#endif

#endif
