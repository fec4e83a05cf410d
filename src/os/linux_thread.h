/*
 * linux_thread.h: the calling thread's thread pointer, for linux*.c: the address of the C library's
 * structure for the thread.
 */
#ifndef SY_OS_LINUX_THREAD_H
#define SY_OS_LINUX_THREAD_H

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
