/*
 * callback.h: calls of the program's functions, and what is done about one that does not return.
 *
 * A function of the program's can be left in three ways: it returns; it is unwound, by a C++
 * exception or by the end of its thread (pthread_exit, pthread_cancel); or longjmp jumps over it
 * and its callers. Only a constructor may be unwound: its callers put their state right in
 * cleanups. Everything else would leave counts or memory behind, so it is reported and the process
 * ends: at once after unwinding, at a later slow path of the thread after longjmp.
 *
 * Each call is noted with the address and the return address of its caller's frame. While the
 * caller waits, frames of later calls are lower, and its return address stays as it is. If a slow
 * path finds this not to be so, longjmp has jumped over the noted frame. Or the program is on a
 * second stack now: then nothing is reported.
 *
 * Cleanups run only where the compiler is told -fexceptions. Without it an exception is reported as
 * longjmp is.
 *
 * Below: report.h, os/. Used by every layer that calls the program.
 */
#ifndef SY_WATCH_CALLBACK_H
#define SY_WATCH_CALLBACK_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stdint.h>

/* Who is called: the destructor of cache "order". */
typedef struct sy_callee {
    const char *function;
    const char *of;   /* "cache", "arena"; NULL: it is of nothing that has a name */
    const char *name; /* as long as that exists */
    bool may_unwind;
} sy_callee;

/* The innermost call that a thread is in. */
typedef struct sy_callback_note {
    const uintptr_t *frame; /* of the caller; NULL: there is no call */
    uintptr_t returns_to;
    sy_callee callee;
} sy_callback_note;

typedef struct sy_callback {
    bool returned;
    sy_callback_note outer; /* the call within which this one is */
} sy_callback;

extern SY_HIDDEN SY_TLS sy_callback_note sy_callback_now;

__attribute__((nothrow)) void sy_callback_jumped(uintptr_t frame);
__attribute__((nothrow)) void sy_callback_unwound(void);
__attribute__((nothrow)) bool sy_callback_returns_elsewhere(uintptr_t frame);

#define SY_FRAME ((const uintptr_t *)__builtin_frame_address(0))

/* Where a frame returns to: 0 if it is not known where that is kept. */
static inline __attribute__((always_inline)) uintptr_t sy_callback_return(const uintptr_t *frame) {
#if defined(__x86_64__) || defined(__aarch64__)
    return frame[1];
#else
    return (void)frame, 0;
#endif
}

/* At the beginning of what is a slow path anyhow: whether longjmp has left a call. */
static inline __attribute__((always_inline)) void sy_callback_check(void) {
    const uintptr_t *noted = sy_callback_now.frame;
    if (SY_LIKELY(!noted)) return;
    if (noted <= SY_FRAME || sy_callback_returns_elsewhere((uintptr_t)noted))
        sy_callback_jumped((uintptr_t)SY_FRAME);
}

/* A signal's handler finds the whole note, or none. */
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

/* Before a call, and to the end of the scope:
 * SY_CALLBACK(call, "destructor", "cache", cache->name, false); then the call itself, and then
 * call.returned = true. */
#define SY_CALLBACK(call, ...)                    \
    sy_callback call SY_CLEANUP(sy_callback_end); \
    sy_callback_begin(&(call), (sy_callee){__VA_ARGS__})

#endif
