/*
 * memory.c: the part of os.h for memory, by mmap, for systems that have nothing better.
 *
 * Reserved address space is a private anonymous mapping without access; commit is mprotect. To
 * discard a range, a new mapping is put in its place in one call, since the advice that such
 * systems have (MADV_FREE) does not promise zeros.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/os.h"
#include "os/posix/pages.h"
#include "os/touch.h"

#if SY_PLATFORM_POSIX && !SY_PLATFORM_LINUX

#    include <errno.h>
#    include <sys/mman.h>
#    include <unistd.h>

#    if !defined(MAP_ANONYMOUS)
#        define MAP_ANONYMOUS MAP_ANON
#    endif

static void *map_aligned(size_t bytes, size_t align) {
    size_t slack = align - sy_os_page_size();
    if (bytes > SIZE_MAX - slack) return NULL;
    unsigned char *base = mmap(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : sy_posix_cut(base, bytes + slack, bytes, align);
}

void *sy_os_reserve(size_t bytes, size_t align, const char *name) {
    (void)name;
    if (sy_os_is_failing("reserve")) return NULL;
    int saved = errno;
    void *start = map_aligned(bytes, align);
    errno = start ? saved : ENOMEM;
    return start;
}

void sy_os_show_names(bool shown) { (void)shown; }

int sy_os_commit(void *start, size_t bytes) {
    if (sy_os_is_failing("commit")) return -1;
    return mprotect(start, bytes, PROT_READ | PROT_WRITE);
}

int sy_os_populate(void *start, size_t bytes) {
    if (sy_os_is_failing("populate")) return -1;
    sy_os_touch(start, bytes);
    return 0;
}

/* Puts a new mapping in the place of an old one; -1 with ENOMEM: the old one is still there,
 * because a limit refuses a new one. Systems look at limits before they take the old one away. If
 * it is gone for another reason, another thread could get a mapping there: then nothing goes on. */
static int map_over(void *start, size_t bytes, int access) {
    const int here = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(start, bytes, access, here, -1, 0) == start) return 0;
    if (msync(start, bytes, MS_ASYNC) != 0)
        sy_os_abort("slabyard: the system cannot map memory again\n");
    return sy_os_failed(ENOMEM);
}

int sy_os_discard(void *start, size_t bytes) {
    if (sy_os_is_failing("discard")) return -1;
    return map_over(start, bytes, PROT_READ | PROT_WRITE);
}

int sy_os_decommit(void *start, size_t bytes) {
    if (sy_os_is_failing("decommit")) return -1;
    return map_over(start, bytes, PROT_NONE);
}

int sy_os_release(void *start, size_t bytes) {
    if (sy_os_is_failing("release")) return -1;
    return munmap(start, bytes);
}

int sy_os_lock(void *start, size_t bytes, bool wanted) {
    int saved = errno;
    if ((wanted ? mlock(start, bytes) : munlock(start, bytes)) != 0) return sy_os_failed(ENOMEM);
    errno = saved;
    return 0;
}

/* A new mapping loses the content and the memory. */
int sy_os_guard(void *start, size_t bytes, bool wanted) {
    if (sy_os_is_failing("guard")) return -1;
    if (wanted) return map_over(start, bytes, PROT_NONE);
    return mprotect(start, bytes, PROT_READ | PROT_WRITE);
}

bool sy_os_guards_split(void) { return true; }

#endif
