/*
 * system.c: the parts of os.h for processors, limits, random numbers, and where the program is, for
 * systems that tell no more than POSIX demands.
 */
#define _GNU_SOURCE

#include "os/os.h"
#include "os/random.h"

#if SY_PLATFORM_POSIX && !SY_PLATFORM_LINUX

#    include <dlfcn.h>
#    include <errno.h>
#    include <signal.h>
#    include <stdlib.h>
#    include <sys/resource.h>
#    include <unistd.h>

/* ---- processors, limits ---- */

/* Threads that are numbered one after the other mostly run at the same time. */
unsigned sy_os_cpu(void) { return sy_os_thread() - 1; }

unsigned sy_os_affinity_count(void) {
    int saved = errno;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    errno = saved;
    return count > 0 ? (unsigned)count : 1;
}

unsigned sy_os_cpu_count(void) { return sy_os_affinity_count(); }

static size_t least_of(size_t least, int resource) {
    struct rlimit limit;
    bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited && (uintmax_t)limit.rlim_cur < least ? (size_t)limit.rlim_cur : least;
}

/* Of address space (where there is such a limit) and of data. */
size_t sy_os_memory_limit(void) {
    int saved = errno;
    size_t least = least_of(SIZE_MAX, RLIMIT_DATA);
#    if defined(RLIMIT_AS)
    least = least_of(least, RLIMIT_AS);
#    endif
    errno = saved;
    return least;
}

bool sy_os_space_is_limited(void) { return sy_os_memory_limit() != SIZE_MAX; }

/* ---- random numbers ---- */

uint64_t sy_os_random(void) {
#    if SY_PLATFORM_DARWIN || SY_PLATFORM_BSD
    uint64_t bits;
    arc4random_buf(&bits, sizeof bits);
    return bits;
#    else
    return sy_os_weak_random();
#    endif
}

/* ---- where the program is ---- */

bool sy_os_on_signal_stack(void) {
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK;
}

void sy_os_on_own_stack(void (*body)(void *arg), void *arg) { body(arg); }

bool sy_os_is_traced(void) { return false; }

void *sy_os_symbol(void *library, const char *name) {
    return dlsym(library ? library : RTLD_DEFAULT, name);
}

void *sy_os_load(const char *library) { return dlopen(library, RTLD_NOW | RTLD_LOCAL); }

/* The object that contains the library opens itself once more, and never closes this handle. An
 * executable is not unloaded, whether this finds it or not. */
void sy_os_stay_loaded(void) {
    static const char own = 0;
    int saved = errno;
    Dl_info about;
    if (dladdr(&own, &about) && about.dli_fname) (void)dlopen(about.dli_fname, RTLD_LAZY);
    errno = saved;
}

#endif
