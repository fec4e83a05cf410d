/*
 * linux_thread.h: what the files linux*.c share about threads: the calling thread's thread pointer,
 * which is the address of the C library's structure for the thread; its stack; and failures on
 * demand.
 */
#ifndef SY_OS_LINUX_THREAD_H
#define SY_OS_LINUX_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether sy_os_set_failing's function lets this call fail; then errno is ENOMEM. */
bool sy_linux_made_to_fail(const char *call);

/* Whether the system tells that all pages of the range can be read, as it does from Linux 5.14 on.
 * Pages that have no memory yet may get some. May change errno. */
bool sy_linux_is_readable(uintptr_t start, size_t bytes);

/* A frame on the stack that the thread has left for the library's own (sy_os_on_own_stack);
 * `frame`, if this is on another stack. */
uintptr_t sy_linux_left(uintptr_t frame);

static inline const char *sy_linux_thread_pointer(void) {
#if defined(__x86_64__)
    const char *pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return (const char *)__builtin_thread_pointer();
#endif
}

#endif
