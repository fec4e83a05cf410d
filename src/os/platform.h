/*
 * platform.h: which folders of os/ implement os.h on this system, and what the system lacks.
 *
 *     folder       implements os.h on
 *     linux/       Linux, with glibc, musl or bionic
 *     posix/       what Linux, Darwin and the BSDs share; alone, any POSIX system, if SY_POSIX is
 *                  defined
 *     darwin/      macOS and its relatives
 *     bsd/         FreeBSD, OpenBSD, NetBSD
 *     windows/     Windows
 *     portable/    any system with malloc, if SY_PORTABLE is defined; WebAssembly
 *     absent.c     every system, for the services that it does not have
 *
 * Each file of these folders begins and ends with a condition on its platform. So all of src/ is
 * compiled everywhere, and no build has to choose files.
 *
 * Lowest header: it includes no other.
 */
#ifndef SY_OS_PLATFORM_H
#define SY_OS_PLATFORM_H

#define SY_PLATFORM_PORTABLE 0
#define SY_PLATFORM_LINUX    0
#define SY_PLATFORM_DARWIN   0
#define SY_PLATFORM_BSD      0
#define SY_PLATFORM_WINDOWS  0
#define SY_PLATFORM_GENERIC  0

#if defined(SY_PORTABLE) || defined(__wasm__)
#    undef SY_PLATFORM_PORTABLE
#    define SY_PLATFORM_PORTABLE 1
#elif defined(SY_POSIX)
#    undef SY_PLATFORM_GENERIC
#    define SY_PLATFORM_GENERIC 1
#elif defined(__linux__)
#    undef SY_PLATFORM_LINUX
#    define SY_PLATFORM_LINUX 1
#elif defined(__APPLE__)
#    undef SY_PLATFORM_DARWIN
#    define SY_PLATFORM_DARWIN 1
#elif defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__) || defined(__DragonFly__)
#    undef SY_PLATFORM_BSD
#    define SY_PLATFORM_BSD 1
#elif defined(_WIN32)
#    undef SY_PLATFORM_WINDOWS
#    define SY_PLATFORM_WINDOWS 1
#else
#    error "unknown system: define SY_PORTABLE to do with malloc alone (docs/platforms.md)"
#endif

#define SY_PLATFORM_POSIX \
    (SY_PLATFORM_LINUX || SY_PLATFORM_DARWIN || SY_PLATFORM_BSD || SY_PLATFORM_GENERIC)

/* What a product or a program may replace by a function of its own. Some linkers for Windows find
 * no weak definitions in a library. So there such functions are alone in their file: a linker takes
 * from a library only files that define what is still missing. */
#if SY_PLATFORM_WINDOWS
#    define SY_REPLACEABLE
#else
#    define SY_REPLACEABLE __attribute__((weak))
#endif

/* A reference to a function that nothing defines is NULL. */
#if SY_PLATFORM_WINDOWS && !defined(__clang__)
#    define SY_PLATFORM_WEAK_REFERENCES 0
#else
#    define SY_PLATFORM_WEAK_REFERENCES 1
#endif

/* Files have descriptors, as in POSIX. Else there are the C library's streams alone. */
#define SY_PLATFORM_DESCRIPTORS SY_PLATFORM_POSIX

#if SY_PLATFORM_PORTABLE && defined(__has_include)
#    if __has_include(<unistd.h>) && __has_include(<fcntl.h>)
#        undef SY_PLATFORM_DESCRIPTORS
#        define SY_PLATFORM_DESCRIPTORS 1
#    endif
#endif

#if defined(__NetBSD__) || defined(__DragonFly__)
#    define SY_PLATFORM_NO_FUTEX SY_PLATFORM_BSD
#else
#    define SY_PLATFORM_NO_FUTEX 0
#endif

/* Threads wait in the library's parking lot (parking.c), because the system has no call to wait for
 * a word of memory. */
#define SY_PLATFORM_PARKS                                                                 \
    ((SY_PLATFORM_PORTABLE && (SY_OS_SERVICES & SY_OS_THREADS)) || SY_PLATFORM_GENERIC || \
     SY_PLATFORM_NO_FUTEX)

/*
 * Services that a platform may lack. Each is a bit of SY_OS_SERVICES, a constant, so that code for
 * a service that is absent is not compiled. A layer asks for the service (sy_os_has), never for the
 * platform. That a platform has a service does not mean that each system has it: then the function
 * of os.h fails, or a function beside it answers.
 */
#define SY_OS_FREE_ADDRESSES (1u << 0)  /* address space takes no memory before it is written */
#define SY_OS_DISCARDS       (1u << 1)  /* pages go back to the system, their addresses stay */
#define SY_OS_MOVES          (1u << 2)  /* pages move to other addresses */
#define SY_OS_HUGE_PAGES     (1u << 3)  /* the library asks for huge pages */
#define SY_OS_LOCKS          (1u << 4)  /* memory that is never swapped out */
#define SY_OS_GUARDS         (1u << 5)  /* pages that cannot be accessed */
#define SY_OS_ACCESSES       (1u << 6)  /* reports explain a refused access */
#define SY_OS_THREADS        (1u << 7)  /* more than one */
#define SY_OS_BACKGROUND     (1u << 8)  /* background threads */
#define SY_OS_OBSERVER       (1u << 9)  /* a thread that reads files and is not seen */
#define SY_OS_BARRIERS       (1u << 10) /* a memory barrier on all threads at once */
#define SY_OS_FORKS          (1u << 11) /* children that have a copy of the memory */
#define SY_OS_COPIES         (1u << 12) /* children for the library's own work: leaks, names */
#define SY_OS_LIMITS         (1u << 13) /* the system tells how much memory may be used */
#define SY_OS_RESIDENT       (1u << 14) /* the system tells how much memory is in use */
#define SY_OS_STACKS         (1u << 15) /* stacks are recorded */
#define SY_OS_PLACES         (1u << 16) /* reports name files and functions */
#define SY_OS_DETECTORS      (1u << 17) /* detectors of races are told what is in order */
#define SY_OS_LOCKED_RETURNS (1u << 18) /* locked pages go back to the system, and stay locked */
#define SY_OS_REPORTS        (1u << 19) /* reports, accounts, leaks; not with SY_NO_REPORTS */
#define SY_OS_SIGNALS        (1u << 20) /* the library notes a signal */

#if SY_PLATFORM_LINUX
#    define SY_PLATFORM_SERVICES (((1u << 19) - 1) | SY_OS_SIGNALS)
#elif SY_PLATFORM_WINDOWS
#    define SY_PLATFORM_SERVICES                                                               \
        (SY_OS_FREE_ADDRESSES | SY_OS_DISCARDS | SY_OS_LOCKS | SY_OS_GUARDS | SY_OS_ACCESSES | \
         SY_OS_THREADS | SY_OS_BACKGROUND | SY_OS_OBSERVER | SY_OS_LIMITS | SY_OS_RESIDENT |   \
         SY_OS_STACKS | SY_OS_PLACES)
#elif SY_PLATFORM_POSIX
#    define SY_PLATFORM_SERVICES                                                              \
        (SY_OS_FREE_ADDRESSES | SY_OS_DISCARDS | SY_OS_LOCKS | SY_OS_GUARDS | SY_OS_THREADS | \
         SY_OS_BACKGROUND | SY_OS_FORKS | SY_OS_LIMITS | SY_OS_SIGNALS |                      \
         (SY_PLATFORM_DARWIN ? SY_OS_RESIDENT : 0))
#elif SY_PLATFORM_PORTABLE && (defined(__STDC_NO_THREADS__) || defined(__wasm__))
#    define SY_PLATFORM_SERVICES 0u
#elif SY_PLATFORM_PORTABLE
#    define SY_PLATFORM_SERVICES SY_OS_THREADS
#endif

#ifdef SY_NO_REPORTS
#    define SY_OS_SERVICES SY_PLATFORM_SERVICES
#else
#    define SY_OS_SERVICES (SY_PLATFORM_SERVICES | SY_OS_REPORTS)
#endif

#endif
