/*
 * machine.c: the part of os.h for processors, limits and random numbers.
 */
#define _GNU_SOURCE

#include "os/linux/limits.h"
#include "os/linux/thread.h"
#include "os/os.h"
#include "os/random.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <limits.h>
#    include <sched.h>
#    include <sys/auxv.h>
#    include <sys/resource.h>
#    include <sys/syscall.h>
#    include <unistd.h>

/* glibc 2.35. Headers for several versions may have the file for all of them. */
#    if defined(__has_include) && defined(__GLIBC__)
#        if __has_include(<sys/rseq.h>) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
#            include <sys/rseq.h>
#            define HAVE_RSEQ 1
#        endif
#    endif

/* Names of the kernel and of glibc that older headers lack. */
#    define AUXV_RSEQ_FEATURE_SIZE 27 /* 6.3 */
#    define DO_NOT_WAIT            1  /* GRND_NONBLOCK */

/* ---- processors ---- */

#    if defined(HAVE_RSEQ)

/* The kernel keeps each thread's processor number, and since 6.3 its concurrency id, in a structure
 * that the C library registered, at a fixed distance from the thread pointer. */
enum { RSEQ_CPU_ID = 4, RSEQ_MM_CID = 24, RSEQ_MM_CID_END = 28 };

enum { OFFSET_UNKNOWN = 0, OFFSET_NONE = 1 }; /* real ones are multiples of 4 and never 0 */

static ptrdiff_t find_cpu_offset(void) {
    if (__rseq_size == 0) return OFFSET_NONE;
    int saved = errno;
    bool has_mm_cid = getauxval(AUXV_RSEQ_FEATURE_SIZE) >= RSEQ_MM_CID_END;
    errno = saved;
    return __rseq_offset + (has_mm_cid ? RSEQ_MM_CID : RSEQ_CPU_ID);
}

/* This thread's number in the structure; negative if the thread is not registered. */
static int registered_cpu(void) {
    static _Atomic ptrdiff_t known;
    ptrdiff_t offset = atomic_load_explicit(&known, memory_order_relaxed);
    if (offset == OFFSET_UNKNOWN) {
        offset = find_cpu_offset();
        atomic_store_explicit(&known, offset, memory_order_relaxed);
    }
    if (offset == OFFSET_NONE) return -1;
    return *(const volatile int *)(const volatile void *)(sy_linux_thread_pointer() + offset);
}

#    else

static int registered_cpu(void) { return -1; }

#    endif

unsigned sy_os_cpu(void) {
    int cpu = registered_cpu();
    if (cpu >= 0) return (unsigned)cpu;
    int saved = errno;
    cpu = sched_getcpu();
    errno = saved;
    return cpu < 0 ? 0 : (unsigned)cpu;
}

static size_t bytes_allowed(rlim_t limit) {
    return limit == RLIM_INFINITY || limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
}

size_t sy_os_memory_limit(void) {
    size_t least = sy_linux_group_memory("");
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && bytes_allowed(limit.rlim_cur) < least)
        least = bytes_allowed(limit.rlim_cur);
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && bytes_allowed(limit.rlim_cur) < least)
        least = bytes_allowed(limit.rlim_cur);
    return least;
}

bool sy_os_space_is_limited(void) {
    struct rlimit space, data;
    return getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY ||
           getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY;
}

bool sy_os_huge_is_usual(void) { return sy_linux_huge_setting("") == SY_LINUX_HUGE_ALWAYS; }

bool sy_os_huge_is_possible(void) { return sy_linux_huge_setting("") != SY_LINUX_HUGE_NEVER; }

size_t sy_os_resident(void) { return sy_linux_resident("") * sy_os_page_size(); }

uint64_t sy_os_memory_stall(void) { return sy_linux_memory_stall(""); }

uint64_t sy_os_memory_stall_again(void) { return sy_linux_memory_stall_again(); }

/* ---- random numbers ---- */

/* The C library's function is a cancellation point. */
uint64_t sy_os_random(void) {
    int saved = errno;
    uint64_t bits;
    if (syscall(SYS_getrandom, &bits, sizeof bits, DO_NOT_WAIT) != (long)sizeof bits)
        bits = sy_os_weak_random();
    errno = saved;
    return bits;
}

#endif
