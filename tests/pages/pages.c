/*
 * pages.c: a library to preload, with which a program runs as on a kernel with larger pages.
 * sysconf reports pages of SLABYARD_TEST_PAGES bytes (a power of two, 4,096 or more). The calls
 * that change mappings work on whole pages of this size: they fail with EINVAL if an address is not
 * a multiple of it, and round lengths up.
 *
 * Calls that the C library makes for itself are not affected. /proc/self/pagemap still has an entry
 * for each small page.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SMALL = 4096 };

static size_t page_bytes;

__attribute__((constructor(101))) static void read_page_bytes(void) {
    const char *text = getenv("SLABYARD_TEST_PAGES");
    page_bytes = text ? strtoul(text, NULL, 10) : 0;
    if (page_bytes < SMALL || (page_bytes & (page_bytes - 1)) != 0) _exit(99);
}

/* A library may ask before the constructor has run. */
static size_t large(void) {
    if (page_bytes == 0) read_page_bytes();
    return page_bytes;
}

static size_t whole(size_t bytes) { return (bytes + large() - 1) & ~(large() - 1); }
static bool is_page(const void *start) { return ((uintptr_t)start & (large() - 1)) == 0; }

static int refuse(void) {
    errno = EINVAL;
    return -1;
}

/* The C library's own, for all but the page size. */
extern long __sysconf(int name);

int getpagesize(void) { return (int)large(); }

long sysconf(int name) { return name == _SC_PAGESIZE ? (long)large() : __sysconf(name); }

static void *map(void *start, size_t bytes, int access, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, start, bytes, access, flags, file, offset);
}

/* A new anonymous mapping at a large page: longer than needed at first, then cut at both ends. */
static char *map_anonymous(size_t bytes, int access, int flags) {
    char *got = map(NULL, bytes + large(), access, flags | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return got;
    size_t front = (size_t)(-(uintptr_t)got & (large() - 1));
    if (front != 0) syscall(SYS_munmap, got, front);
    syscall(SYS_munmap, got + front + bytes, large() - front);
    return got + front;
}

/* A file is mapped over anonymous memory, which stays behind the file's end up to the next large
 * page. */
void *mmap(void *start, size_t bytes, int access, int flags, int file, off_t offset) {
    const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE), anonymous = flags & MAP_ANONYMOUS;
    if (fixed) {
        if (!is_page(start)) return refuse(), MAP_FAILED;
        return map(start, anonymous ? whole(bytes) : bytes, access, flags, file, offset);
    }
    if (anonymous && is_page(start)) { /* the hint may be free */
        char *got = map(start, whole(bytes), access, flags, file, offset);
        if (got == MAP_FAILED || is_page(got)) return got;
        syscall(SYS_munmap, got, whole(bytes));
    }
    char *got = map_anonymous(whole(bytes), access, anonymous ? flags : MAP_PRIVATE);
    if (got == MAP_FAILED || anonymous) return got;
    if (map(got, bytes, access, flags | MAP_FIXED, file, offset) != MAP_FAILED) return got;
    int error = errno;
    syscall(SYS_munmap, got, whole(bytes));
    errno = error;
    return MAP_FAILED;
}

int munmap(void *start, size_t bytes) {
    return is_page(start) ? (int)syscall(SYS_munmap, start, whole(bytes)) : refuse();
}

int mprotect(void *start, size_t bytes, int access) {
    return is_page(start) ? (int)syscall(SYS_mprotect, start, whole(bytes), access) : refuse();
}

int madvise(void *start, size_t bytes, int advice) {
    return is_page(start) ? (int)syscall(SYS_madvise, start, whole(bytes), advice) : refuse();
}

/* A free place at a large page. A mapping is lengthened there, and removed: a new one would count
 * as locked memory where all is locked. */
static char *find_place(size_t bytes) {
    char *one = map(NULL, SMALL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one == MAP_FAILED) return NULL;
    syscall(SYS_munlock, one, (size_t)SMALL);
    size_t all = bytes + large();
    char *got = (char *)syscall(SYS_mremap, one, (size_t)SMALL, all, MREMAP_MAYMOVE);
    int error = errno;
    if (got == MAP_FAILED)
        syscall(SYS_munmap, one, (size_t)SMALL);
    else
        syscall(SYS_munmap, got, all);
    errno = error;
    return got == MAP_FAILED ? NULL : got + (-(uintptr_t)got & (large() - 1));
}

void *mremap(void *start, size_t bytes, size_t wanted, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (!is_page(start) || !is_page(to)) return refuse(), MAP_FAILED;
    int in_place = flags & ~MREMAP_MAYMOVE;
    void *got =
        (void *)syscall(SYS_mremap, start, whole(bytes), whole(wanted), to ? flags : in_place, to);
    if (got != MAP_FAILED || to || !(flags & MREMAP_MAYMOVE)) return got;
    to = find_place(whole(wanted));
    if (!to) return MAP_FAILED;
    flags |= MREMAP_FIXED;
    return (void *)syscall(SYS_mremap, start, whole(bytes), whole(wanted), flags, to);
}

/* A large page is resident if one of its parts is. */
int mincore(void *start, size_t bytes, unsigned char *resident) {
    if (!is_page(start)) return refuse();
    for (size_t at = 0; at < whole(bytes); at += SMALL) {
        unsigned char part;
        if (syscall(SYS_mincore, (char *)start + at, (size_t)SMALL, &part) != 0) return -1;
        unsigned char *page = &resident[at / large()];
        *page = at % large() == 0 ? part & 1 : *page | (part & 1);
    }
    return 0;
}
