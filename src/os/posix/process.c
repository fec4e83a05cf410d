/*
 * process.c: the part of os.h for the process: its environment, blocks of the C library's malloc,
 * and its end. It needs the C library alone, so the portable platform has it too.
 */
#define _GNU_SOURCE

#include "base/cpu.h"
#include "os/failing.h"
#include "os/os.h"

#if SY_PLATFORM_POSIX || SY_PLATFORM_PORTABLE

#    include <errno.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    if SY_PLATFORM_LINUX
#        include <sys/auxv.h>
#    endif
#    if SY_PLATFORM_DESCRIPTORS
#        include <unistd.h>
#    endif

/* ---- the environment ---- */

/* Whether the process has more rights than its user. */
static bool is_privileged(void) {
#    if SY_PLATFORM_LINUX
    return getauxval(AT_SECURE) != 0;
#    elif SY_PLATFORM_DARWIN || SY_PLATFORM_BSD
    return issetugid() != 0;
#    elif SY_PLATFORM_DESCRIPTORS && !defined(__wasm__)
    return getuid() != geteuid() || getgid() != getegid();
#    else
    return false; /* such systems have no users */
#    endif
}

const char *sy_os_option(const char *name) {
    int saved = errno;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets variables meanwhile. */
    const char *text = is_privileged() ? NULL : getenv(name);
    errno = saved;
    return text;
}

SY_REPLACEABLE const char *sy_os_default_options(void) { return ""; }

/* ---- blocks of the C library ---- */

/* Tools take a stack here (sy_cpu_keep_frame keeps this function on it). */
SY_REPLACEABLE void *sy_os_block(size_t bytes, size_t align) {
    sy_cpu_keep_frame();
    int saved = errno;
    void *block = NULL;
    if (align <= _Alignof(max_align_t)) block = malloc(bytes);
#    if SY_PLATFORM_POSIX
    else if (posix_memalign(&block, align, bytes) != 0)
        block = NULL;
#    else
    else if (bytes <= SIZE_MAX - (align - 1)) /* a multiple of the alignment, for C11 */
        block = aligned_alloc(align, (bytes + align - 1) & -align);
#    endif
    errno = block == NULL ? ENOMEM : saved;
    return block;
}

SY_REPLACEABLE void sy_os_block_free(void *block) {
    sy_cpu_keep_frame();
    int saved = errno;
    free(block);
    errno = saved;
}

/* ---- the process, and its end ---- */

#    if SY_PLATFORM_DESCRIPTORS && !defined(__wasm__)
int sy_os_process(void) { return (int)getpid(); }
#    else
int sy_os_process(void) { return 1; }
#    endif

int sy_os_at_exit(void (*hook)(void)) {
    sy_os_keep_stderr();
    return atexit(hook) == 0 ? 0 : sy_os_failed(ENOMEM);
}

_Noreturn void sy_os_end(int status) {
    fflush(NULL);
    _Exit(status);
}

_Noreturn void sy_os_abort(const char *why) {
    if (why) (void)sy_os_write(sy_os_stderr(), why, strlen(why));
    abort();
}

#endif
