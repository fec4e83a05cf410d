/*
 * callback.h: notes each call of one of the program's functions, and reports a function that does
 * not return.
 *
 * A function of the program can be left in three ways: it returns; it is unwound, by a C++
 * exception or by the end of its thread (pthread_exit, pthread_cancel); or longjmp jumps over it
 * and its callers. Only a constructor, and a visitor of sy_handle_each or sy_cache_each, may be
 * unwound: their callers restore their state in cleanups.
 * Any other function that is left without a return would leave wrong counts or lost memory behind.
 * So this is reported, and the process ends: after unwinding at once, after longjmp at a later slow
 * path of the thread.
 *
 * Each call is noted with the address of its caller's frame and the return address in it. While the
 * caller waits, frames of later calls are lower, and the return address stays the same. If a slow
 * path finds a frame that is not lower, or another return address, longjmp has jumped over the
 * noted frame. Or the program has switched to a second stack: then nothing is reported.
 *
 * Cleanups run only in code compiled with -fexceptions. In code without it, an exception is
 * reported as longjmp is.
 *
 * Below: tell.h, os/. Used by every layer that calls functions of the program.
 */
#ifndef SY_DEBUG_CALLBACK_H
#define SY_DEBUG_CALLBACK_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

/* The function that is called, for example the destructor of cache "order". */
typedef struct sy_callee {
    const char *function;
    const char *of;   /* "cache", "arena"; NULL: the function belongs to nothing that has a name */
    const char *name; /* valid as long as the cache or arena exists */
    bool may_unwind;
} sy_callee;

/* The innermost call in which a thread is. */
typedef struct sy_callback_note {
    const uintptr_t *frame; /* of the caller; NULL: no call is running */
    uintptr_t returns_to;
    sy_callee callee;
} sy_callback_note;

typedef struct sy_callback {
    bool returned;
    sy_callback_note outer; /* the call within which this call was made */
} sy_callback;

extern SY_HIDDEN SY_TLS sy_callback_note sy_callback_now;

__attribute__((nothrow)) void sy_callback_jumped(uintptr_t frame);
__attribute__((nothrow)) void sy_callback_unwound(void);
__attribute__((nothrow)) bool sy_callback_returns_elsewhere(uintptr_t frame);

#define SY_FRAME ((const uintptr_t *)__builtin_frame_address(0))

/* The return address of a frame; 0 where the place of return addresses is not known. */
static inline __attribute__((always_inline)) uintptr_t sy_callback_return(const uintptr_t *frame) {
    return sy_cpu_return_follows_frame() && !SY_PLATFORM_WINDOWS ? frame[1] : 0;
}

/* Called at the start of slow paths: finds out whether longjmp has left a noted call. */
static inline __attribute__((always_inline)) void sy_callback_check(void) {
    const uintptr_t *noted = sy_callback_now.frame;
    if (SY_LIKELY(!noted)) return;
    if (noted <= SY_FRAME || sy_callback_returns_elsewhere((uintptr_t)noted))
        sy_callback_jumped((uintptr_t)SY_FRAME);
}

/* In this order, so that a signal handler finds the whole note, or no call. */
static inline void sy_callback_set(const sy_callback_note *note) {
    sy_callback_now.frame = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sy_callback_now.returns_to = note->returns_to;
    sy_callback_now.callee = note->callee;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sy_callback_now.frame = note->frame;
}

static inline __attribute__((always_inline)) void sy_callback_begin(sy_callback *call,
                                                                    sy_callee callee) {
    sy_callback_check();
    call->returned = false;
    call->outer = sy_callback_now;
    sy_callback_set(&(sy_callback_note){SY_FRAME, sy_callback_return(SY_FRAME), callee});
}

static inline void sy_callback_end(const sy_callback *call) {
    if (SY_UNLIKELY(!call->returned && !sy_callback_now.callee.may_unwind)) sy_callback_unwound();
    sy_callback_set(&call->outer);
}

#define SY_CLEANUP(function) __attribute__((cleanup(function), unused))

/*
 * Notes a call from here to the end of the scope:
 *
 *     SY_CALLBACK(call, "destructor", "cache", cache->name, false);
 *     cache->destruct(object, cache->arg);
 *     call.returned = true;
 */
#define SY_CALLBACK(call, ...)                    \
    sy_callback call SY_CLEANUP(sy_callback_end); \
    sy_callback_begin(&(call), (sy_callee){__VA_ARGS__})

#endif
