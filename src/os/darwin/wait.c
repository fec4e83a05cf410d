/*
 * wait.c: the part of os.h for waiting, by the calls of macOS: since 14.4 public ones, before those
 * that the C++ library uses (ulock).
 */
#include "os/os.h"

#if SY_PLATFORM_DARWIN

#    include <errno.h>

/* From <os/os_sync_wait_on_address.h>, which older systems lack. */
#    define FROM_14_4 __attribute__((weak_import, visibility("default")))

FROM_14_4 extern int os_sync_wait_on_address(void *address, uint64_t value, size_t size,
                                             uint32_t flags);
FROM_14_4 extern int os_sync_wait_on_address_with_timeout(void *address, uint64_t value,
                                                          size_t size, uint32_t flags,
                                                          uint32_t clock, uint64_t ns);
FROM_14_4 extern int os_sync_wake_by_address_any(void *address, size_t size, uint32_t flags);
FROM_14_4 extern int os_sync_wake_by_address_all(void *address, size_t size, uint32_t flags);

enum { CLOCK_MACH = 32 }; /* OS_CLOCK_MACH_ABSOLUTE_TIME */

#    define OF_KERNEL __attribute__((visibility("default")))

OF_KERNEL extern int __ulock_wait(uint32_t operation, void *address, uint64_t value,
                                  uint32_t microseconds);
OF_KERNEL extern int __ulock_wake(uint32_t operation, void *address, uint64_t value);

enum { COMPARE_AND_WAIT = 1, WAKE_ALL = 0x100 };

static const uint64_t NS_PER_MICROSECOND = 1000;

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    int saved = errno;
    if (os_sync_wait_on_address)
        os_sync_wait_on_address((void *)word, expected, sizeof *word, 0);
    else
        __ulock_wait(COMPARE_AND_WAIT, (void *)word, expected, 0);
    errno = saved;
}

/* To the kernel 0 microseconds mean without an end. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    int saved = errno;
    uint64_t microseconds = ns / NS_PER_MICROSECOND + 1;
    if (os_sync_wait_on_address_with_timeout)
        os_sync_wait_on_address_with_timeout((void *)word, expected, sizeof *word, 0, CLOCK_MACH,
                                             ns ? ns : 1);
    else
        __ulock_wait(COMPARE_AND_WAIT, (void *)word, expected,
                     microseconds < UINT32_MAX ? (uint32_t)microseconds : UINT32_MAX);
    errno = saved;
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    int saved = errno;
    if (os_sync_wake_by_address_any && count == 1)
        os_sync_wake_by_address_any((void *)word, sizeof *word, 0);
    else if (os_sync_wake_by_address_all)
        os_sync_wake_by_address_all((void *)word, sizeof *word, 0);
    else
        __ulock_wake(COMPARE_AND_WAIT | (count == 1 ? 0 : WAKE_ALL), (void *)word, 0);
    errno = saved;
}

#endif
