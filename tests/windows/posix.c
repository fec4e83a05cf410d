/*
 * posix.c: the functions of posix.h that are not inline. The tests of cmocka are linked with it as
 * compiled with WITH_CMOCKA. Stress programs are linked with it as compiled with
 * WITH_IMAGINED_CHILDREN: they fork among other things, and go on as if the child had ended well.
 */
#include "posix.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* Text is written as it is: tests compare what programs have written. */
__attribute__((constructor)) static void write_as_it_is(void) {
    _fmode = _O_BINARY;
    _setmode(STDOUT_FILENO, _O_BINARY);
    _setmode(STDERR_FILENO, _O_BINARY);
}

#ifdef WITH_CMOCKA
#    include <setjmp.h>
#    include <stdarg.h>

#    include <cmocka.h>

/* A fork that is skipped leaves the test where it is, perhaps with locks held. So tests of forks,
 * which have this word in their names, do not begin. */
__attribute__((constructor)) static void leave_out_forks(void) {
    const char *pattern = getenv("SLABYARD_TEST_SKIPS");
    cmocka_set_skip_filter(pattern ? pattern : "*child*");
}

_Noreturn void posix_lacks(const char *function) {
    fprintf(stderr, "skipped: Windows has no %s\n", function);
    _skip(__FILE__, __LINE__);
    abort();
}

#else

_Noreturn void posix_lacks(const char *function) {
    fprintf(stderr, "skipped: Windows has no %s\n", function);
    exit(77);
}

#endif

#ifdef WITH_IMAGINED_CHILDREN

pid_t fork(void) { return (pid_t)GetCurrentProcessId(); }

pid_t waitpid(pid_t pid, int *status, int how) {
    (void)how;
    *status = 0;
    return pid;
}

#else

pid_t fork(void) { posix_lacks("fork"); }

pid_t waitpid(pid_t pid, int *status, int how) {
    (void)pid, (void)status, (void)how;
    posix_lacks("fork");
}

#endif

static DWORD protection(int access) {
    if (access & PROT_EXEC) return access & PROT_WRITE ? PAGE_EXECUTE_READWRITE : PAGE_EXECUTE_READ;
    if (access & PROT_WRITE) return PAGE_READWRITE;
    return access & PROT_READ ? PAGE_READONLY : PAGE_NOACCESS;
}

void *mmap(void *place, size_t bytes, int access, int how, int file, off_t offset) {
    if (!(how & MAP_ANONYMOUS) || how & (MAP_SHARED | MAP_FIXED) || offset != 0 || file != -1)
        posix_lacks("mmap of files, of shared memory and at fixed places");
    void *start = VirtualAlloc(place, bytes, MEM_RESERVE | MEM_COMMIT, protection(access));
    if (!start && place)
        start = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, protection(access));
    if (!start) errno = ENOMEM;
    return start ? start : MAP_FAILED;
}

int munmap(void *start, size_t bytes) {
    MEMORY_BASIC_INFORMATION about;
    if (!VirtualQuery(start, &about, sizeof about) || about.AllocationBase != start ||
        !VirtualFree(start, 0, MEM_RELEASE))
        return VirtualFree(start, bytes, MEM_DECOMMIT) ? 0 : -1;
    return 0;
}

int mprotect(void *start, size_t bytes, int access) {
    DWORD before;
    if (VirtualProtect(start, bytes, protection(access), &before)) return 0;
    errno = ENOMEM;
    return -1;
}

int posix_memalign(void **block, size_t align, size_t bytes) {
    *block = _aligned_malloc(bytes, align);
    return *block ? 0 : ENOMEM;
}

int getpagesize(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwPageSize;
}

long sysconf(int which) {
    if (which != _SC_PAGESIZE) posix_lacks("sysconf of this");
    return getpagesize();
}

int setenv(const char *name, const char *value, int over) {
    if (!over && getenv(name)) return 0;
    return _putenv_s(name, value) == 0 ? 0 : -1;
}

int unsetenv(const char *name) { return _putenv_s(name, "") == 0 ? 0 : -1; }
