/*
 * thread.h: what the files of this folder share about threads: the calling thread's thread pointer,
 * which is the address of the C library's structure for the thread; its stack; and threads of which
 * the C library does not know.
 */
#ifndef SY_OS_LINUX_THREAD_H
#define SY_OS_LINUX_THREAD_H

#include <slabyard/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/platform.h"

/* Whether the system tells that all pages of the range can be read, as it does from Linux 5.14 on.
 * Pages that have no memory yet may get some. May change errno. */
bool sy_linux_is_readable(uintptr_t start, size_t bytes);

/* A frame on the stack that the thread has left for the library's own (sy_os_on_own_stack);
 * `frame`, if this is on another stack. */
uintptr_t sy_linux_left(uintptr_t frame);

/* ---- threads of which the C library does not know (hidden.c) ---- */

/* The memory of such threads, of one at a time. It is made at the first start, and kept. */
typedef struct sy_linux_room {
    char *start; /* NULL: not made yet */
    size_t bytes;
    void *(*body)(void *);
    void *arg;
} sy_linux_room;

/* Whether this process can have such threads. */
bool sy_linux_can_hide(void);

/* Starts one, with all signals blocked. Waits until the last one in this room has ended. */
int sy_linux_start_hidden(sy_linux_room *room, size_t stack, void *(*body)(void *), void *arg);

/* Waits until the thread in the room has ended; then its memory can be given back. */
void sy_linux_await_hidden(const sy_linux_room *room);
void sy_linux_clear_room(const sy_linux_room *room);

/* In the child of a fork: no thread is in the room. */
void sy_linux_forget_hidden(const sy_linux_room *room);

/* The calling thread is one. */
extern SY_HIDDEN SY_TLS bool sy_linux_is_hidden;

/* The argument of its hook (sy_os_at_thread_exit): the C library does not see its end. */
extern SY_HIDDEN SY_TLS void *sy_linux_hidden_arg;

/* Called by such a thread at its end: runs its hook (sy_os_at_thread_exit). */
void sy_linux_end_hidden(void);

#if SY_PLATFORM_LINUX

static inline const char *sy_linux_thread_pointer(void) {
#    if defined(__x86_64__)
    const char *pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
#    elif defined(__powerpc64__) /* gcc before 13 has no such function there */
    const char *pointer;
    __asm__("mr %0, 13" : "=r"(pointer));
    return pointer;
#    else
    return (const char *)__builtin_thread_pointer();
#    endif
}

#endif

#endif
