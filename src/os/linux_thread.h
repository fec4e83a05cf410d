/*
 * linux_thread.h: the calling thread's thread pointer and stack, for linux*.c. The thread pointer
 * is the address of the C library's structure for the thread.
 */
#ifndef SY_OS_LINUX_THREAD_H
#define SY_OS_LINUX_THREAD_H

#include <stdint.h>

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
