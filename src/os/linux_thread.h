/*
 * linux_thread.h: where the C library keeps what is a thread's own. Of linux.c and its kin.
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
